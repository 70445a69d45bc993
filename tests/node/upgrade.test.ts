/** open({ version, upgrade }) of both stores, on files that outlive the stores. */

import { beforeEach, describe, expect, test, vi } from 'vitest';
import { nextTurn } from '../../js/src/runtime/turn.ts';
import { openStore } from '../../js/src/store/open.ts';
import type { OpenOptions as AsyncOpenOptions } from '../../js/src/store/open-options.ts';
import type { Store } from '../../js/src/store/store.ts';
import { type OpenOptions, open, type SyncStore, type SyncTransaction } from '../../js/src/synchronous.ts';
import type { Key } from '../../js/src/types.ts';
import { LocalCompactor, spawnServer, wasm } from './support/engine.ts';
import { stubOpfs } from './support/fake-opfs.ts';

beforeEach(() => {
  stubOpfs();
  vi.stubGlobal('Worker', LocalCompactor);
  return () => vi.unstubAllGlobals();
});

type Either = Store<Key, unknown> | SyncStore<Key, unknown>;
type Options = AsyncOpenOptions<Key, unknown> & OpenOptions<Key, unknown>;

const openAsync = (options: object): Promise<Either> =>
  openStore('test', { wasm, lockTimeout: 0, ...(options as Options) }, spawnServer);
const openSync = (options: object): Promise<Either> =>
  open('test', { wasm, lockTimeout: 0, compactor: false, ...(options as Options) });

const code = (name: string): unknown => expect.objectContaining({ code: name });

async function contents(db: Either): Promise<unknown[]> {
  const all: unknown[] = [];
  for await (const entry of db.entries()) all.push(entry);
  return all;
}

describe.each([
  ['asynchronous', openAsync],
  ['synchronous', openSync],
])('the %s store', (_, openEither) => {
  test('is upgraded from the version that it has, once', async () => {
    const calls: unknown[] = [];
    const upgrade = (tx: { set(key: Key, value: unknown): void }, versions: unknown): void => {
      calls.push(versions);
      tx.set('made by', calls.length);
    };
    for (const version of [1, 1, 3, 2 ** 40]) await (await openEither({ version, upgrade })).close();
    expect(calls).toStrictEqual([
      { oldVersion: 0, newVersion: 1 },
      { oldVersion: 1, newVersion: 3 },
      { oldVersion: 3, newVersion: 2 ** 40 },
    ]);
    const db = await openEither({});
    expect(await db.get('made by')).toBe(3);
    await db.close();
  });

  test('has a version without an upgrade as well', async () => {
    await (await openEither({ version: 2 })).close();
    const upgrade = vi.fn();
    await (await openEither({ version: 3, upgrade })).close();
    expect(upgrade).toHaveBeenCalledWith(expect.anything(), { oldVersion: 2, newVersion: 3 });
  });

  test('that is newer is refused, and closed', async () => {
    await (await openEither({ version: 5 })).close();
    const older = openEither({ version: 4, upgrade: () => undefined });
    await expect(older).rejects.toThrow(code('VARVE_VERSION'));
    await expect(older).rejects.toThrow("'test' has version 5, this code is of version 4");
    await (await openEither({ version: 5 })).close();
  });

  test('stays as it was when its upgrade throws, and is closed', async () => {
    const first = await openEither({ version: 1, upgrade: (tx: { set(k: Key, v: unknown): void }) => tx.set('k', 1) });
    await first.close();
    const failing = (tx: { clear(): void; set(k: Key, v: unknown): void }): never => {
      tx.clear();
      tx.set('half', 'done');
      throw new Error('no such field');
    };
    await expect(openEither({ version: 2, upgrade: failing })).rejects.toThrow('no such field');
    const upgrade = vi.fn();
    const db = await openEither({ version: 2, upgrade });
    expect(upgrade).toHaveBeenCalledWith(expect.anything(), { oldVersion: 1, newVersion: 2 });
    expect(await contents(db)).toStrictEqual([['k', 1]]);
    await db.close();
  });

  test('never shows its version among its keys, and never deletes it', async () => {
    const db = await openEither({ version: 7 });
    expect([await contents(db), await db.count(), await db.count({ gt: [] })]).toStrictEqual([[], 0, 0]);
    const last: unknown[] = [];
    for await (const key of db.keys({ reverse: true, limit: 1 })) last.push(key);
    expect(last).toStrictEqual([]);
    await db.set('k', 1);
    const snapshot = db.snapshot();
    expect(await snapshot.count()).toBe(1);
    await snapshot.close();
    await db.transaction((tx: { clear(): void }) => tx.clear());
    await db.deleteRange({ gte: new Uint8Array(0) });
    await db.clear();
    await db.compact();
    await db.close();
    await expect(openEither({ version: 6 })).rejects.toThrow(code('VARVE_VERSION'));
  });

  test.each([
    { version: 0 },
    { version: 1.5 },
    { version: '1' },
    { upgrade: () => undefined },
    { version: 1, upgrade: 1 },
  ])('refuses %o', async (options) => {
    await expect(openEither(options)).rejects.toThrow(code('VARVE_INVALID_ARGUMENT'));
  });
});

test('an upgrade of the asynchronous store may wait, and reads what it writes', async () => {
  const db = await openAsync({
    version: 1,
    upgrade: async (tx: { set(k: Key, v: unknown): void; get(k: Key): Promise<unknown> }) => {
      tx.set('a', 1);
      await nextTurn();
      tx.set('b', await tx.get('a'));
    },
  });
  expect(await contents(db)).toStrictEqual([
    ['a', 1],
    ['b', 1],
  ]);
  await db.close();
});

test('an upgrade of the synchronous store reads all that there is, and what it writes', async () => {
  const first = await openSync({ version: 1 });
  await first.setMany([
    ['a', 1],
    ['b', 2],
  ]);
  await first.close();
  const seen: unknown[] = [];
  const upgrade = (tx: SyncTransaction<Key, unknown>): void => {
    const look = (): void =>
      void seen.push([...tx], [...tx.keys({ reverse: true })], tx.count(), [...tx.values({ gte: 'b' })]);
    look();
    tx.delete('a');
    tx.set('c', 3);
    look();
    tx.clear();
    look();
    tx.set('d', 4);
  };
  const db = await openSync({ version: 2, upgrade });
  expect(seen).toStrictEqual([
    ...[
      [
        ['a', 1],
        ['b', 2],
      ],
      ['b', 'a'],
      2,
      [2],
    ],
    ...[
      [
        ['b', 2],
        ['c', 3],
      ],
      ['c', 'b'],
      2,
      [2, 3],
    ],
    ...[[], [], 0, []],
  ]);
  expect(await contents(db)).toStrictEqual([['d', 4]]);
  await db.close();
  await expect(openSync({ version: 1 })).rejects.toThrow(code('VARVE_VERSION'));
});

test('an upgrade of the synchronous store that gives a promise is refused', async () => {
  await expect(openSync({ version: 1, upgrade: async () => undefined })).rejects.toThrow(
    code('VARVE_INVALID_ARGUMENT'),
  );
});

test('an upgrade stops at the signal of its opening', async () => {
  const control = new AbortController();
  const upgrade = async (): Promise<void> => {
    control.abort();
    await new Promise(() => undefined);
  };
  await expect(openAsync({ version: 1, upgrade, signal: control.signal })).rejects.toThrow(
    expect.objectContaining({ name: 'AbortError' }),
  );
  const db = await openAsync({ version: 1 });
  await db.close();
});
