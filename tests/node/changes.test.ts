// The change feed of the asynchronous store, over the real engine: which changes it reports, from which sequence on, and how it ends.

import { inspect } from 'node:util';
import { describe, expect, expectTypeOf, test } from 'vitest';
import { deletedRange } from '../../js/src/changes/deleted-range.ts';
import type { Change, ChangeIterator, ChangesOptions } from '../../js/src/changes/types.ts';
import { KeyFormat } from '../../js/src/codec/key-format.ts';
import { compareBytes, encodeRange, halfOpen } from '../../js/src/codec/range.ts';
import { open } from '../../js/src/index.ts';
import { openStore } from '../../js/src/store/open.ts';
import type { OpenOptions } from '../../js/src/store/open-options.ts';
import type { Store } from '../../js/src/store/store.ts';
import type { Key, KeyRange } from '../../js/src/types.ts';
import { applied, inOrder } from './support/applied.ts';
import { spawnServer, tools, wasm } from './support/engine.ts';
import { KeptDevices } from './support/kept-devices.ts';
import { Random } from './support/random.ts';
import { closedAfterTest } from './support/stores.ts';
import { tabs } from './support/two-tabs.ts';

async function opened(options: OpenOptions<Key, unknown> = {}, spawn = spawnServer): Promise<Store<Key, unknown>> {
  return closedAfterTest(
    await openStore<Key, unknown>(
      'test',
      { wasm, storage: 'memory', memoryBytes: 2 ** 20, cache: false, ...options },
      spawn,
    ),
  );
}

/** The next changes. */
async function take<T>(changes: AsyncIterator<T, undefined>, count: number): Promise<T[]> {
  const taken: T[] = [];
  while (taken.length < count) {
    const { value, done } = await changes.next();
    if (done) break;
    taken.push(value as T);
  }
  return taken;
}

/** All changes behind a sequence up to the store's last one. */
async function behind(db: Store<Key, unknown>, since: number, last: number): Promise<Change<Key, unknown>[]> {
  const all: Change<Key, unknown>[] = [];
  if (since >= last) return all;
  for await (const change of db.changes({ since })) {
    all.push(change);
    if (change.sequence >= last) break;
  }
  return all;
}

test('every kind of change is reported from the call on, a batch with sequences one after another', async () => {
  const db = await opened();
  await db.set('before', 1);
  const changes = db.changes();
  const { sequence } = await db.set('a', { n: 1 });
  db.batch().delete('b').set('c', 'text').deleteRange({ gte: 'x', lt: 'z' }).commit();
  await db.set('d', 1, { expiresIn: 60_000 });
  await db.clear();
  const seen = await take(changes, 6);
  const [, , , , expiring] = seen;
  expect(seen).toEqual([
    { type: 'set', key: 'a', value: { n: 1 }, sequence, expiresAt: undefined },
    { type: 'delete', key: 'b', sequence: sequence + 1 },
    { type: 'set', key: 'c', value: 'text', sequence: sequence + 2, expiresAt: undefined },
    { type: 'deleteRange', range: { gte: 'x', lt: 'z' }, sequence: sequence + 3 },
    { type: 'set', key: 'd', value: 1, sequence: sequence + 4, expiresAt: expect.any(Date) },
    { type: 'deleteRange', range: {}, sequence: sequence + 5 },
  ]);
  if (expiring?.type !== 'set') throw new Error('not what was set');
  expect(Number(expiring.expiresAt) - Date.now()).toBeGreaterThan(30_000);
});

test('changes begin at the call, not at the first read, and are reported to every tab', async () => {
  const [first, second] = tabs(2);
  const db = await opened({}, first);
  const other = await opened({}, second);
  const changes = other.changes();
  // It is in order with the other tab's call, because it was requested before.
  await other.get('x');
  await db.set('a', 1);
  expect(await take(changes, 1)).toMatchObject([{ type: 'set', key: 'a' }]);
  const waiting = changes.next();
  await db.set('b', 2);
  expect(await waiting).toMatchObject({ done: false, value: { key: 'b', value: 2 } });
});

test('calls of the same turn before it are not reported, calls after it are', async () => {
  const db = await opened();
  const writes = [db.set('a', 1)];
  const changes = db.changes();
  writes.push(db.set('b', 2));
  await Promise.all(writes);
  expect(await take(changes, 1)).toMatchObject([{ type: 'set', key: 'b' }]);
});

test('a range, a prefix and a key narrow the reported changes; values can be left out', async () => {
  const db = await opened();
  const all = [
    db.changes({ prefix: ['note'] }),
    db.watch(['note', 2]),
    db.watch({ gt: ['note', 1], lte: ['note', 3] }, { keysOnly: true }),
  ];
  for (const key of [
    ['note', 1],
    ['note', 2],
    ['nose', 2],
    ['note', 3],
    ['note', 4],
  ])
    await db.set(key, key.join());
  await db.deleteRange({ prefix: ['note', 3] });
  await db.deleteRange({ prefix: ['note'] });
  const keys = await Promise.all(
    all.map(async (changes, i) =>
      (await take(changes, [6, 2, 4][i] as number)).map((change) => ('key' in change ? change.key : change.type)),
    ),
  );
  expect(keys).toEqual([
    [['note', 1], ['note', 2], ['note', 3], ['note', 4], 'deleteRange', 'deleteRange'],
    [['note', 2], 'deleteRange'],
    [['note', 2], ['note', 3], 'deleteRange', 'deleteRange'],
  ]);
  const [change] = await take(db.changes({ since: 1, keysOnly: true }), 1);
  expect(change).toEqual({ type: 'set', key: ['note', 2], value: undefined, sequence: 2, expiresAt: undefined });
});

test('changes can be resumed after the store was closed', async () => {
  const storage = new KeptDevices();
  const db = await open('kept', { storage, wasm, historyBytes: 2 ** 20 });
  for (let i = 0; i < 10; i++) await db.set(i, i);
  await db.compact();
  const { sequence } = await db.set(10, 10);
  await db.close();
  const again = closedAfterTest(await open('kept', { storage, wasm, historyBytes: 2 ** 20 }));
  const seen = await behind(again, 3, sequence);
  expect(seen.map((change) => change.type === 'set' && change.value)).toEqual([3, 4, 5, 6, 7, 8, 9, 10]);
  expect(await again.check({ tools })).toMatchObject({ ok: true, problems: [] });
  await again.close();
  // A store that is opened without history drops the history.
  const last = closedAfterTest(await open('kept', { storage, wasm, historyBytes: 0 }));
  expect(await take(last.changes({ since: 3 }), 1)).toMatchObject([{ type: 'gap', since: 3 }]);
});

test('a reader that comes back after its history was dropped gets a gap, and continues after it', async () => {
  const db = await opened({ historyBytes: 0 });
  for (let i = 0; i < 10; i++) await db.set(i, i);
  await db.compact();
  const changes = db.changes({ since: 4 });
  const next = changes.next();
  expect(await next).toEqual({ done: false, value: { type: 'gap', since: 4, sequence: 10 } });
  await db.set('later', 1);
  expect(await take(changes, 1)).toMatchObject([{ type: 'set', key: 'later', sequence: 11 }]);
  // A sequence that the store does not know: a crash lost it, or it belongs to another store.
  expect(await take(db.changes({ since: 99 }), 1)).toEqual([{ type: 'gap', since: 99, sequence: 11 }]);
});

describe('changes end', () => {
  const aborted = expect.objectContaining({ name: 'AbortError' });

  test('with their signal, also while they wait and when something was fetched already', async () => {
    const db = await opened();
    const controller = new AbortController();
    const waiting = db.changes({ signal: controller.signal });
    const fetched = db.changes({ signal: controller.signal, since: 0 });
    await db.setMany([
      ['a', 1],
      ['b', 2],
    ]);
    await take(fetched, 1);
    await take(waiting, 2);
    const next = waiting.next();
    const rejected = expect(next).rejects.toEqual(aborted);
    controller.abort();
    await rejected;
    await expect(fetched.next()).rejects.toEqual(aborted);
    expect(await fetched.next()).toEqual({ done: true, value: undefined });
    expect(() => db.changes({ signal: controller.signal })).toThrow(aborted);
  });

  test('when the loop is left, also while another step waits', async () => {
    const db = await opened();
    const changes = db.watch('a');
    const waiting = [changes.next(), changes.next()];
    await db.get('a');
    expect(await changes.return?.()).toEqual({ done: true, value: undefined });
    expect(await Promise.all(waiting)).toEqual([
      { done: true, value: undefined },
      { done: true, value: undefined },
    ]);
    await db.set('a', 1);
    for await (const change of db.changes({ since: 0 })) {
      expect(change.type).toBe('set');
      break;
    }
  });

  test('with the store', async () => {
    const db = await opened();
    const changes = db.changes();
    const next = changes.next();
    const rejected = expect(next).rejects.toMatchObject({ code: 'VARVE_CLOSED' });
    await db.get('a');
    await db.close();
    await rejected;
    expect(() => db.changes()).toThrow(expect.objectContaining({ code: 'VARVE_CLOSED' }));
  });

  test('and invalid options are refused at once', async () => {
    const db = await opened();
    for (const since of [-1, 0.5, Number.NaN, 2 ** 53]) {
      expect(() => db.changes({ since })).toThrow(expect.objectContaining({ code: 'VARVE_INVALID_ARGUMENT' }));
    }
    expect(() => db.watch({ gt: 1, gte: 2 })).toThrow(expect.objectContaining({ code: 'VARVE_INVALID_ARGUMENT' }));
    for (const option of [{ signal: AbortSignal.abort() }, { keysOnly: true }, { since: 0 }, { reverse: true }]) {
      const [name] = Object.keys(option);
      expect(() => db.watch({ prefix: 'a', ...option })).toThrow(`There is no option ${name} here`);
    }
    await expect(opened({ historyBytes: -1 })).rejects.toMatchObject({ code: 'VARVE_INVALID_ARGUMENT' });
  });
});

test('steps that are requested together come in order', async () => {
  const db = await opened();
  const changes = db.changes();
  const steps = Array.from({ length: 5 }, () => changes.next());
  for (let i = 0; i < 5; i++) await db.set(i, i);
  expect((await Promise.all(steps)).map(({ value }) => value?.type === 'set' && value.value)).toEqual([0, 1, 2, 3, 4]);
});

test('a reader that pauses delays nothing, and continues where it was', async () => {
  const db = await opened({ historyBytes: 2 ** 20 });
  const changes = db.changes();
  await db.set('first', 0);
  await take(changes, 1);
  for (let i = 0; i < 200; i++) await db.set(i % 7, i);
  await db.compact();
  const seen = await take(changes, 200);
  expect(seen.map((change) => change.type === 'set' && change.value)).toEqual(Array.from({ length: 200 }, (_, i) => i));
});

/** A copy of a store with numbers as keys, kept up to date by the changes of the store. */
class Copy {
  readonly entries = new Map<number, unknown>();
  gaps = 0;
  readonly #db: Store<Key, unknown>;
  #position = 0;

  constructor(db: Store<Key, unknown>) {
    this.#db = db;
  }

  /** Reads everything. */
  async read(): Promise<void> {
    const snapshot = this.#db.snapshot();
    this.entries.clear();
    for await (const [key, value] of snapshot.entries()) this.entries.set(key as number, value);
    await snapshot.close();
    this.#position = await snapshot.sequence;
  }

  /** Applies what has changed, up to a sequence. */
  async follow(last: number): Promise<void> {
    if (this.#position >= last) return;
    for await (const change of this.#db.changes({ since: this.#position })) {
      this.#position = change.sequence;
      await this.#apply(change);
      if (this.#position >= last) return;
    }
  }

  async #apply(change: Change<Key, unknown>): Promise<void> {
    if (change.type !== 'gap') return applied(this.entries, change);
    this.gaps++;
    await this.read();
  }
}

/** Writes something; returns its sequence. */
async function write(db: Store<Key, unknown>, random: Random, value: string): Promise<number> {
  const [kind, key] = [random.below(10), random.below(40)];
  if (kind > 4) return (await db.set(key, value)).sequence;
  if (kind > 2) return (await db.delete(key)).sequence;
  const batch = db
    .batch()
    .set(key, value)
    .delete(key + 1);
  if (kind === 0) batch.deleteRange(random.pick<KeyRange<Key>>([{ gt: key, lt: key + 9 }, { gte: key }, { lte: 3 }]));
  return (await batch.commit()).sequence;
}

test('changes applied to a copy make it equal to the store, for writes of every tab and history cut anywhere', async () => {
  const gaps = [0, 0];
  for (let seed = 1; seed <= 6; seed++) {
    const random = new Random(seed);
    const [first, second] = tabs(2);
    const db = await opened({ historyBytes: seed % 2 === 0 ? 0 : 2 ** 16 }, first);
    const other = await opened({}, second);
    const copy = new Copy(other);
    await copy.read();
    for (let round = 0; round < 12; round++) {
      let last = 0;
      for (let i = random.below(30); i >= 0; i--) last = await write(random.pick([db, other]), random, `${round} ${i}`);
      if (random.below(3) === 0) await db.compact();
      await copy.follow(last);
      const entries: unknown[] = [];
      for await (const entry of db.entries()) entries.push(entry);
      expect(inOrder(copy.entries), `seed ${seed}, round ${round}`).toEqual(entries);
    }
    gaps[seed % 2] = (gaps[seed % 2] as number) + copy.gaps;
  }
  // Without history something was cut; with history nothing was cut.
  expect(gaps).toEqual([expect.any(Number), 0]);
  expect(gaps[0]).toBeGreaterThan(3);
});

test('a deleted range is reported as a range of the same keys', () => {
  const random = new Random(7);
  const keys: Key[] = ['', 'a', 'a\0', 'b', 'ab', -1, 0, 1, -0.5, 1e300, true, 5n, new Date(0)];
  keys.push(
    new Uint8Array([1, 255]),
    new Uint8Array([255, 255]),
    [],
    ['a'],
    ['a', -1],
    ['a', 'b'],
    [-1],
    [[1], 'x'],
    ['a\0'],
    ['p'],
    ['p', new Uint8Array([255])],
    ['p', new Uint8Array([255]), 'ab'],
    ['p', new Uint8Array([255]), 'a', -1],
    ['p', new Uint8Array([255, 0])],
    '\u{d7ff}a',
    '\ue000',
    '\u{10ffff}a',
  );
  const prefixes: (string | Uint8Array | Key[])[] = [
    '',
    'a',
    'é',
    [],
    ['a'],
    [-1],
    ['a', -1],
    new Uint8Array([1, 255]),
    new Uint8Array([255]),
    ['p'],
    ['p', new Uint8Array([255]), 'a'],
    '\ud7ff',
    '\u{10ffff}',
  ];
  const store = new KeyFormat<Key>(undefined);
  const view = store.at<Key>(['p', new Uint8Array([255])], undefined);
  const holds = ({ start, end }: ReturnType<typeof halfOpen>, at: Uint8Array): boolean =>
    compareBytes(at, start) >= 0 && (end.length === 0 || compareBytes(at, end) < 0);
  let overlaps = 0;
  for (let i = 0; i < 6000; i++) {
    const maker = random.pick([store, view]);
    const reader = random.pick([store, view]);
    const range: KeyRange<Key> = {};
    if (random.below(2)) range[random.pick(['gt', 'gte'] as const)] = random.pick(keys);
    if (random.below(2)) range[random.pick(['lt', 'lte'] as const)] = random.pick(keys);
    if (random.below(2)) range.prefix = random.pick(prefixes);
    const bytes = encodeRange(range, maker);
    if (bytes.empty) continue;
    const deletion = halfOpen(bytes);
    const { start, end } = deletion;
    // The engine reports only what overlaps the followed keys.
    const whole = halfOpen(encodeRange({}, reader));
    if (whole.end.length > 0 && compareBytes(start, whole.end) >= 0) continue;
    if (end.length > 0 && compareBytes(end, whole.start) <= 0) continue;
    overlaps++;
    const deleted = deletedRange<Key>(start, end.length === 0 ? Uint8Array.of(255) : end, reader);
    const again = halfOpen(encodeRange(deleted, reader));
    for (const key of keys) {
      const at = reader.encode(key);
      expect(holds(again, at), `${inspect(range)} reported as ${inspect(deleted)}`).toBe(holds(deletion, at));
    }
  }
  expect(overlaps).toBeGreaterThan(2000);
});

test('types follow keys and values', () => {
  type Db = Store<string, number>;
  expectTypeOf<ReturnType<Db['watch']>>().toExtend<AsyncIterable<Change<string, number | undefined>>>();
  const typed = (db: Db) => [db.changes(), db.changes({ since: 1, keysOnly: true })] as const;
  expectTypeOf<ReturnType<typeof typed>[0]>().toEqualTypeOf<ChangeIterator<string, number>>();
  expectTypeOf<ReturnType<typeof typed>[1]>().toEqualTypeOf<ChangeIterator<string, undefined>>();
  expectTypeOf<ChangesOptions<string>['gte']>().toEqualTypeOf<string | undefined>();
});
