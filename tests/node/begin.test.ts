/** Transactions as handles, of both stores: `begin`, `commit`, `rollback`, and the lock of exclusive ones. */

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import type { TransactionHandle } from '../../js/src/index.ts';
import { openStore } from '../../js/src/store/open.ts';
import type { Store } from '../../js/src/store/store.ts';
import type { SyncStore } from '../../js/src/synchronous.ts';
import type { Key } from '../../js/src/types.ts';
import { spawnServer, wasm } from './support/engine.ts';
import { FakeLocks, stubOpfs } from './support/fake-opfs.ts';
import { add, code, collect, conflict, openAsync, openSync } from './support/stores.ts';

setFlagsFromString('--expose-gc');
const collectGarbage: () => void = runInNewContext('gc');

type Either = Store<Key, unknown> | SyncStore<Key, unknown>;

/** The outcome of a call: its result, or the code of its error. A synchronous call throws at once. */
async function outcome(call: () => unknown): Promise<unknown> {
  try {
    return await call();
  } catch (error) {
    return (error as { code?: string }).code ?? error;
  }
}

describe.each([
  ['asynchronous', () => openAsync() as Promise<Either>],
  ['synchronous', () => openSync() as Promise<Either>],
])('a handle of the %s store', (_, openEither) => {
  test('reads its snapshot and its own writes, and commits all of them', async () => {
    const db = await openEither();
    const { durability } = await db.set('a', 1);
    const [tx, reader] = [await db.begin(), await db.begin()];
    tx.set('b', 2);
    tx.at(['part']).set('c', 3);
    tx.delete('a');
    expect(await tx.getMany(['a', 'b'])).toStrictEqual([undefined, 2]);
    expect(await collect(tx.entries())).toStrictEqual([
      ['b', 2],
      [['part', 'c'], 3],
    ]);
    expect(await collect(db.keys())).toStrictEqual(['a']);
    expect(await tx.commit(), 'the receipt of three writes').toStrictEqual({ sequence: 4, durability });
    expect(await collect(db.keys())).toStrictEqual(['b', ['part', 'c']]);
    expect(await collect(reader.entries())).toStrictEqual([['a', 1]]);
    expect(await reader.commit(), 'it has written nothing').toBeUndefined();
    expect((await db.stats()).snapshots).toBe(0);
  });

  test('writes nothing when it is rolled back, and accepts nothing after its end', async () => {
    const db = await openEither();
    const tx = await db.begin();
    tx.set('a', 1);
    await tx.rollback();
    await tx.rollback();
    expect(await db.count()).toBe(0);
    expect((await db.stats()).snapshots).toBe(0);
    const committed = await db.begin();
    await committed.commit();
    await committed.rollback();
    for (const over of [tx, committed]) {
      for (const call of [() => over.commit(), () => over.get('a'), () => over.set('a', 1), () => over.count()])
        expect(await outcome(call)).toBe('VARVE_CLOSED');
    }
  });

  test('has a conflict with a write of what it has read, and is not run again', async () => {
    const db = await openEither();
    const tx = await db.begin();
    tx.set('n', add(await tx.get('n')));
    await db.set('n', 7);
    const committing = (async () => tx.commit())();
    await expect(committing).rejects.toThrow(conflict('n', 1));
    expect(await db.get('n')).toBe(7);
    expect(await outcome(() => tx.commit())).toBe('VARVE_CLOSED');
  });

  test('ends when its signal aborts', async () => {
    const db = await openEither();
    const why = new Error('too late');
    expect(await outcome(() => db.begin({ signal: AbortSignal.abort(why) }))).toBe(why);
    const stop = new AbortController();
    const tx = await db.begin({ exclusive: true, signal: stop.signal });
    tx.set('a', 1);
    stop.abort(why);
    expect(await outcome(() => tx.commit())).toBe(why);
    const next = await db.begin({ exclusive: true });
    expect(await next.get('a')).toBe(undefined);
    await next.rollback();
    expect((await db.stats()).snapshots).toBe(0);
  });

  test('refuses options that it does not have, and a store that is closed', async () => {
    const db = await openEither();
    const begin = (options: object): Promise<unknown> => outcome(() => db.begin(options));
    expect(await begin({ exclusive: 1 })).toBe('VARVE_INVALID_ARGUMENT');
    expect(await begin({ retries: 1 })).toBe('VARVE_INVALID_ARGUMENT');
    expect(await begin({ durability: 'paper' })).toBe('VARVE_INVALID_ARGUMENT');
    const tx = await db.begin({ exclusive: true });
    tx.set('a', 1);
    await db.close();
    expect(await outcome(() => tx.commit())).toBe('VARVE_CLOSED');
    expect(await begin({ exclusive: true })).toBe('VARVE_CLOSED');
  });
});

test('a batch of calls after commit() is refused, even before it has resolved', async () => {
  const db = await openAsync();
  const tx = await db.begin();
  tx.set('a', 1);
  const committed = tx.commit();
  expect(() => tx.set('late', 2)).toThrow(code('VARVE_CLOSED'));
  await committed;
  expect(await collect(db.keys())).toStrictEqual(['a']);
});

test('await using rolls back what was not committed', async () => {
  const db = await openAsync();
  const use = async (isCommitted: boolean): Promise<void> => {
    await using tx = await db.begin({ exclusive: true });
    tx.set(String(isCommitted), 1);
    if (isCommitted) await tx.commit();
  };
  await use(false);
  await use(true);
  expect(await collect(db.keys())).toStrictEqual(['true']);
});

test('many handles are no leak of listeners', async () => {
  const warnings: Error[] = [];
  const note = (warning: Error): void => void warnings.push(warning);
  process.on('warning', note);
  const db = await openAsync();
  const handles = await Promise.all(Array.from({ length: 12 }, () => db.begin()));
  for (const tx of handles) await tx.rollback();
  await db.close();
  process.off('warning', note);
  expect(warnings).toStrictEqual([]);
});

test('exclusive ones of one store run one after another, in the order of the calls, and never conflict', async () => {
  const db = await openAsync();
  const order: number[] = [];
  const count = async (i: number): Promise<void> => {
    await using tx = await db.begin({ exclusive: true });
    order.push(i);
    tx.set('n', add(await tx.get('n')));
    await tx.commit();
  };
  await Promise.all([0, 1, 2, 3, 4].map(count));
  expect([await db.get('n'), order]).toStrictEqual([5, [0, 1, 2, 3, 4]]);
});

test('a synchronous store cannot wait for an exclusive one', async () => {
  const db = await openSync();
  const tx = db.begin({ exclusive: true });
  expect(() => db.begin({ exclusive: true })).toThrow(code('VARVE_LOCKED'));
  db.begin().rollback();
  tx.commit();
  db.begin({ exclusive: true }).rollback();
});

describe('in several tabs', () => {
  let locks: FakeLocks;

  beforeEach(() => {
    locks = new FakeLocks();
    stubOpfs(undefined, locks);
  });

  const openTab = (name = 'tabs'): Promise<Store<Key, unknown>> =>
    openStore<Key, unknown>(name, { wasm, memoryBytes: 2 ** 20 }, spawnServer, {});
  const names = async (): Promise<string[]> =>
    (await locks.query()).held.map(({ name }) => name).filter((name) => name.startsWith('varve-transaction:'));
  const next = async (db: Store<Key, unknown>): Promise<void> => {
    await using tx = await db.begin({ exclusive: true });
    tx.set('n', add(await tx.get('n')));
    await tx.commit();
  };

  test('exclusive ones wait for each other, and others do not', async () => {
    const [first, second] = [await openTab(), await openTab()];
    const tx = await first.begin({ exclusive: true });
    const counting = next(second);
    const other = await second.begin();
    await second.set('free', 1);
    await other.rollback();
    tx.set('n', add(await tx.get('n')));
    await tx.commit();
    await counting;
    expect(await first.get('n')).toBe(2);
    const elsewhere = await openTab('another store');
    const [one, two] = [await first.begin({ exclusive: true }), await elsewhere.begin({ exclusive: true })];
    expect(await names()).toStrictEqual(['varve-transaction:tabs', 'varve-transaction:another store']);
    await one.rollback();
    await two.rollback();
    for (const db of [first, second, elsewhere]) await db.close();
  });

  test('one that waits stops waiting when its signal aborts or its store is closed, and leaves nothing behind', async () => {
    const [first, second] = [await openTab(), await openTab()];
    const tx = await first.begin({ exclusive: true });
    const stop = new AbortController();
    const aborted = second.begin({ exclusive: true, signal: stop.signal });
    const waiting = second.begin({ exclusive: true });
    const refused = expect(waiting).rejects.toThrow(code('VARVE_CLOSED'));
    stop.abort(new Error('no patience'));
    await expect(aborted).rejects.toThrow('no patience');
    await second.close();
    await refused;
    await tx.rollback();
    expect(await names()).toStrictEqual([]);
    await next(first);
    await first.close();
  });

  test('a store that is closed lets others begin', async () => {
    const [first, second] = [await openTab(), await openTab()];
    const tx = await first.begin({ exclusive: true });
    const counting = next(second);
    await first.close();
    await counting;
    await expect(tx.commit()).rejects.toThrow(code('VARVE_CLOSED'));
    await second.close();
  });

  test('a commit that waits for a Blob that never comes ends with its store, and lets others begin', async () => {
    const never = vi.spyOn(Blob.prototype, 'arrayBuffer').mockReturnValue(new Promise(() => undefined));
    const [first, second] = [await openTab(), await openTab()];
    const blob = new Blob(['x']);
    const tx = await first.begin({ exclusive: true });
    tx.set('a', blob);
    const writes = [tx.commit(), first.transaction((one) => one.set('b', blob)), first.update('c', () => blob)];
    const refused = Promise.all(writes.map((write) => expect(write).rejects.toThrow(code('VARVE_CLOSED'))));
    await vi.waitUntil(() => never.mock.calls.length === 3);
    await first.close();
    await refused;
    await next(second);
    never.mockRestore();
    await second.close();
  });

  test('a page that is frozen lets others begin; its transaction is over', async () => {
    const target = new EventTarget();
    vi.stubGlobal('document', Object.assign(target, { visibilityState: 'visible' }));
    const first = await openTab();
    vi.stubGlobal('document', undefined);
    const second = await openTab();
    const tx = await first.begin({ exclusive: true });
    tx.set('n', 100);
    const counting = next(second);
    target.dispatchEvent(new Event('freeze'));
    await counting;
    target.dispatchEvent(new Event('resume'));
    await expect(tx.commit()).rejects.toThrow(code('VARVE_RETRY'));
    await next(first);
    expect(await second.get('n')).toBe(2);
    await second.close();
    await first.close();
  });

  // Only transactions that were not committed yet gave their lock back. This one kept it until the page was back.
  test('a page that is frozen while its commit is under way lets others begin', async () => {
    const target = new EventTarget();
    vi.stubGlobal('document', Object.assign(target, { visibilityState: 'visible' }));
    const first = await openTab();
    vi.stubGlobal('document', undefined);
    const second = await openTab();
    const tx = await first.begin({ exclusive: true });
    tx.set('n', 100);
    const committed = tx.commit();
    // It is sent, and not answered: an answer takes another turn.
    for (let i = 0; i < 200; i++) await Promise.resolve();
    target.dispatchEvent(new Event('freeze'));
    await next(second);
    target.dispatchEvent(new Event('resume'));
    await committed;
    expect(await second.get('n')).toBe(100);
    expect(await names()).toStrictEqual([]);
    await second.close();
    await first.close();
  });
});

test('a handle that is forgotten is rolled back when it is collected', async () => {
  const registered: { readonly target: object; readonly collect: () => void }[] = [];
  vi.stubGlobal(
    'FinalizationRegistry',
    class<T> {
      readonly #callback: (held: T) => void;
      constructor(callback: (held: T) => void) {
        this.#callback = callback;
      }
      register(target: object, held: T): void {
        registered.push({ target, collect: () => this.#callback(held) });
      }
      unregister(): boolean {
        return false;
      }
    },
  );
  vi.resetModules();
  const fresh = await import('../../js/src/store/open.ts');
  const db = await fresh.openStore<Key, unknown>('test', { wasm, storage: 'memory' }, spawnServer);
  const begun: TransactionHandle<Key, unknown> = await db.begin({ exclusive: true });
  begun.set('a', 1);
  const waiting = db.begin({ exclusive: true });
  // The collector would do this at a time of its own.
  registered.at(-1)?.collect();
  const tx = await waiting;
  expect(await tx.get('a')).toBe(undefined);
  await tx.rollback();
  await db.close();
});

describe.each([
  ['asynchronous', () => openAsync() as Promise<Either>],
  ['synchronous', () => openSync() as Promise<Either>],
])('handles of the %s store that have ended', (_, openEither) => {
  // Each one that was rolled back once stayed for ever, with its writes: the registry that waits for its collection kept its error, and
  // the stack of that error kept the handle.
  test.each(['rollback', 'commit'] as const)('by %s are collected', async (end) => {
    const db = await openEither();
    const handles: WeakRef<object>[] = [];
    for (let i = 0; i < 5; i++) {
      await (async () => {
        const tx = await db.begin();
        tx.set('draft', new Uint8Array(1000));
        handles.push(new WeakRef(tx));
        await tx[end]();
      })();
    }
    await expect
      .poll(() => {
        collectGarbage();
        return handles.filter((handle) => handle.deref() !== undefined).length;
      })
      .toBe(0);
  });
});
