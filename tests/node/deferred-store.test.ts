// Whole stores over a storage that commits later: nothing is acknowledged early, nothing is lost, nothing happens twice.

import { expect, test } from 'vitest';
import { type Key, open, type Store } from '../../js/src/index.ts';
import { nextTurn } from '../../js/src/runtime/turn.ts';
import { SlotError } from '../../js/src/storage/device.ts';
import { ChunkAdapter } from './support/chunk-adapter.ts';
import { randomFrom, tools, wasm } from './support/engine.ts';

const noise = ((random) => Uint8Array.from({ length: 8192 }, () => random(256)))(randomFrom(1));

/** A value that begins with a mark and does not compress, so that tables take many chunks. */
function value(seed: number, bytes: number): Uint8Array {
  const filled = noise.slice((seed * 31) % 4096, ((seed * 31) % 4096) + bytes);
  filled[0] = (seed % 255) + 1;
  return filled;
}

test('the next opening reads the acknowledged writes of the one before', async () => {
  const storage = new ChunkAdapter();
  const db = await open('notes', { storage, wasm });
  expect([db.storage.kind, db.recovery.state]).toEqual(['fake', 'new']);
  await Promise.all([db.set('a', 1), db.set('b', 2), db.delete('a')]);
  await db.close();
  const again = await open('notes', { storage, wasm });
  expect(again.recovery.state).toBe('clean');
  expect([await again.get('a'), await again.get('b')]).toEqual([undefined, 2]);
  await again.close();
});

test('an answer waits for its commit, and so does the answer of a read that may have seen it', async () => {
  const storage = new ChunkAdapter();
  const db = await open('waits', { storage, wasm });
  await db.set('k', 'old');
  const { commits } = storage.chunks;
  const before = commits.length;
  storage.chunks.pause();
  const seen: string[] = [];
  const writing = db.set('k', 'new').then(() => seen.push('written'));
  await expect.poll(() => commits.length, { timeout: 30_000 }).toBeGreaterThan(before);
  const reading = db.get('k').then((found) => seen.push(`read ${found}`));
  for (let turn = 0; turn < 20; turn++) await nextTurn();
  expect(seen).toEqual([]);
  storage.chunks.resume();
  await Promise.all([writing, reading]);
  expect(seen).toEqual(['written', 'read new']);
  await db.close();
});

test('writes of one turn are one commit; strict ones are strict', async () => {
  const storage = new ChunkAdapter();
  const db = await open('groups', { storage, wasm });
  await db.set('first', 0);
  const { commits } = storage.chunks;
  const before = commits.length;
  await Promise.all(Array.from({ length: 100 }, (_, i) => db.set(i, i)));
  expect(commits.slice(before).map(({ isStrict }) => isStrict)).toEqual([false]);
  await db.set('s', 1, { durability: 'strict' });
  expect(commits.at(-1)?.isStrict).toBe(true);
  await db.close();
});

test('tables are flushed, merged and read back, whatever order keys are asked for', { timeout: 60_000 }, async () => {
  const storage = new ChunkAdapter();
  let db = await open('tables', { storage, wasm, memoryBytes: 1024 * 1024 });
  for (let round = 0; round < 40; round++) {
    await Promise.all(
      Array.from({ length: 250 }, (_, i) => db.set((i * 7919 + round * 13) % 5000, value(round, 1000))),
    );
  }
  await db.compact();
  const { levels } = await db.stats();
  expect(levels.reduce((tables, level) => tables + level.tables, 0)).toBeGreaterThan(0);
  const count = await db.count();
  await db.close();
  db = await open('tables', { storage, wasm, memoryBytes: 1024 * 1024 });
  expect(await db.count()).toBe(count);
  const { reads } = storage.chunks;
  const keys = Array.from({ length: 500 }, (_, i) => (i * 37) % 5000);
  const many = await db.getMany(keys);
  expect(many.filter((found) => found !== undefined).length).toBeGreaterThan(300);
  // 500 keys in a few dozen chunks: at most one fetch for each level of a table, not one for each key.
  expect(storage.chunks.reads - reads).toBeLessThan(25);
  const report = await db.check({ tools });
  expect(report.problems).toEqual([]);
  await db.close();
});

test('reads and writes that are mixed in one frame take effect in order, though reads have to wait', async () => {
  const storage = new ChunkAdapter();
  let db = await open('mixed', { storage, wasm, memoryBytes: 1024 * 1024 });
  await Promise.all(Array.from({ length: 3000 }, (_, i) => db.set(i, value(i, 500))));
  await db.compact();
  await db.close();
  db = await open('mixed', { storage, wasm, memoryBytes: 1024 * 1024 });
  const before = db.get(1500);
  const written = db.set(1500, 'new');
  const after = db.get(1500);
  const other = db.get(2900);
  const asked = [2800, 3800].map((key) => db.delete(key, { existed: true }));
  const scanned = db.entries({ gte: 10, lt: 20 });
  const keys: unknown[] = [];
  for await (const [key] of scanned) keys.push(key);
  await db.delete(2900);
  expect([await before, await after, await other]).toEqual([value(1500, 500), 'new', value(2900, 500)]);
  expect((await written).sequence).toBe(3001);
  expect((await Promise.all(asked)).map(({ existed }) => existed)).toEqual([true, false]);
  expect(keys).toEqual([10, 11, 12, 13, 14, 15, 16, 17, 18, 19]);
  expect(await db.get(2900)).toBe(undefined);
  const { scans } = await db.stats();
  expect(scans).toBe(0);
  await db.close();
});

test('missing bytes of several tables, or for several keys of one call, are fetched together', async () => {
  const storage = new ChunkAdapter();
  // Closing makes a table of the log. Each table reaches over all keys, and there are too few tables for a merge.
  for (let round = 0; round < 6; round++) {
    const db = await open('spread', { storage, wasm });
    await Promise.all(Array.from({ length: 800 }, (_, i) => db.set(i * 6 + round, value(i, 1000))));
    await db.close();
  }
  /** How often a call fetches in a store that was just opened. */
  const fetchesOf = async (call: (db: Store<Key, unknown>) => Promise<unknown>): Promise<number> => {
    const db = await open('spread', { storage, wasm });
    expect((await db.stats()).levels[0]?.tables).toBe(6);
    const { reads } = storage.chunks;
    await call(db);
    const fetches = storage.chunks.reads - reads;
    await db.close();
    return fetches;
  };
  const scan = async (db: Store<Key, unknown>): Promise<void> => {
    const found: Key[] = [];
    for await (const [key] of db.entries({ gte: 1000, limit: 3 })) found.push(key);
    expect(found).toEqual([1000, 1001, 1002]);
  };
  const many = Array.from({ length: 40 }, (_, i) => i * 120 + 7);
  // First the ends of tables, then their blocks.
  expect([
    await fetchesOf(scan),
    await fetchesOf((db) => db.getMany(many)),
    await fetchesOf((db) => db.get(1000)),
  ]).toEqual([2, 2, 2]);
});

test('a transaction compares what it read with tables that are not in memory', async () => {
  const storage = new ChunkAdapter();
  let db = await open('transactions', { storage, wasm, memoryBytes: 1024 * 1024 });
  await Promise.all(Array.from({ length: 2000 }, (_, i) => db.set(i, value(i, 700))));
  await db.compact();
  await db.close();
  db = await open('transactions', { storage, wasm, memoryBytes: 1024 * 1024 });
  const conflict = db.set(7, 'mine', { ifSequence: 1 });
  await expect(conflict).rejects.toMatchObject({ code: 'VARVE_CONFLICT' });
  await db.transaction(async (tx) => {
    const found = (await tx.get(1000)) as Uint8Array;
    tx.set('sum', found.length + (await tx.count({ gte: 5, lt: 15 })));
  });
  expect(await db.get('sum')).toBe(710);
  await db.close();
});

test('a write that the storage refuses is not acknowledged, and reads beside it are answered without it', async () => {
  const storage = new ChunkAdapter();
  const db = await open('full', { storage, wasm });
  await db.set('kept', 1, { durability: 'strict' });
  storage.chunks.failure = new SlotError('full', 'QuotaExceededError');
  const results = await Promise.allSettled([db.set('lost', 1), db.set('lost too', 2), db.get('lost')]);
  const refused = { reason: { code: 'VARVE_STORAGE_FULL' } };
  expect(results).toMatchObject([refused, refused, { value: undefined }]);
  await expect(db.set('later', 3)).rejects.toMatchObject({ code: 'VARVE_STORAGE_FULL' });
  storage.chunks.failure = undefined;
  await db.set('latest', 4);
  await db.close();
  const again = await open('full', { storage, wasm });
  expect(await again.getMany(['kept', 'lost', 'lost too', 'later', 'latest'])).toEqual([1, ...Array(3), 4]);
  await again.close();
});

test.each([2, 3])(
  'each of several deletes that are tried again gets its outcome, whichever commit is refused then (%i)',
  async (second) => {
    const storage = new ChunkAdapter();
    const db = await open('full', { storage, wasm });
    const keys = Array.from({ length: 50 }, (_, i) => i);
    await db.setMany(keys.map((key) => [key, value(key, 8000)] as const));
    await db.compact();
    let commits = 0;
    storage.chunks.refuses = () => [1, second].includes(++commits);
    // Reads have to wait, and the deletes before them are committed meanwhile.
    const deletes = keys.flatMap((key) => (key % 10 === 9 ? [db.delete(key), db.get(0)] : [db.delete(key)]));
    const [set, ...results] = await Promise.allSettled([db.set('lost', 1), ...deletes]);
    expect(commits).toBeGreaterThanOrEqual(second);
    storage.chunks.refuses = () => false;
    expect(set?.status).toBe('rejected');
    const refused = results.filter((_, i) => i % 11 !== 10).map(({ status }) => status === 'rejected');
    expect(await Promise.all(keys.map((key) => db.has(key)))).toEqual(refused);
    await db.close();
  },
);

test('a write that is under way when the store is closed is refused with an error', async () => {
  const storage = new ChunkAdapter();
  const db = await open('full', { storage, wasm });
  await db.set('kept', 1);
  storage.chunks.refuses = () => true;
  const results = Promise.allSettled([db.set('lost', 1), db.get('lost')]);
  await db.close();
  expect(await results).toMatchObject([{ reason: { code: 'VARVE_STORAGE_FULL' } }, { value: undefined }]);
});

test('a check that was under way when the store went back is refused, and finds no damage where there is none', async () => {
  const storage = new ChunkAdapter();
  const db = await open('full', { storage, wasm, memoryBytes: 1024 * 1024 });
  for (let i = 0; i < 3000; i += 50) {
    await db.setMany(Array.from({ length: 50 }, (_, n) => [i + n, value(i + n, 2500)] as const));
  }
  await db.compact();
  const { chunks } = storage;
  const read = chunks.read.bind(chunks);
  let [hasBegun, reads, resume] = [false, 0, (): void => undefined];
  const gate = new Promise<void>((resolve) => {
    resume = resolve;
  });
  chunks.read = async (names) => {
    if (hasBegun) reads++;
    if (hasBegun) await gate;
    return read(names);
  };
  const onProgress = (): void => {
    hasBegun = true;
  };
  const checking = expect(db.check({ tools, onProgress })).rejects.toMatchObject({ code: 'VARVE_STORAGE_FULL' });
  await expect.poll(() => reads).toBeGreaterThan(0);
  let isRefused = false;
  chunks.refuses = () => {
    isRefused = true;
    return true;
  };
  const refused = expect(db.set(0, 'refused')).rejects.toMatchObject({ code: 'VARVE_STORAGE_FULL' });
  await expect.poll(() => isRefused).toBe(true);
  resume();
  await Promise.all([checking, refused]);
  chunks.refuses = () => false;
  expect((await db.check({ tools })).problems).toEqual([]);
  await db.close();
});

// The story: the error of the storage passed for a fault of the engine (VARVE_INTERNAL).
test('a check of a storage that cannot be read any more reports its error', async () => {
  const storage = new ChunkAdapter();
  const db = await open('unread', { storage, wasm, memoryBytes: 1024 * 1024 });
  for (let i = 0; i < 1000; i++) await db.set(i, value(i, 2500));
  await db.compact();
  await db.close();
  const again = await open('unread', { storage, wasm, memoryBytes: 1024 * 1024 });
  storage.chunks.read = async () => {
    throw new SlotError('io', 'The disk is gone.');
  };
  await expect(again.check({ tools })).rejects.toMatchObject({ code: 'VARVE_IO' });
  await again.close().catch(() => undefined);
});

test('where the storage cannot go back, a refused write ends the session, and opening again gives what was', async () => {
  const storage = new ChunkAdapter();
  const db = await open('full', { storage, wasm });
  await db.set('kept', 1);
  storage.chunks.failure = new SlotError('full', 'QuotaExceededError');
  Object.assign(storage.chunks, { rows: undefined });
  await expect(db.set('lost', 1)).rejects.toMatchObject({ code: 'VARVE_STORAGE_FULL' });
  await expect(db.get('kept')).rejects.toMatchObject({ code: 'VARVE_STORAGE_FULL' });
  const again = await open('full', { storage, wasm });
  expect(await again.getMany(['kept', 'lost'])).toEqual([1, undefined]);
  await again.close();
});

test('a store that was taken over acknowledges nothing any more', async () => {
  const storage = new ChunkAdapter();
  const zombie = await open('taken', { storage, wasm });
  await zombie.set('k', 1);
  const heir = await open('taken', { storage, wasm });
  await heir.set('k', 2);
  await expect(zombie.set('k', 3)).rejects.toMatchObject({ code: 'VARVE_LOCKED' });
  expect(await heir.get('k')).toBe(2);
  await heir.close();
});

/** A store, and the possible values of each of its keys: the last acknowledged mark, and the marks whose outcome is not known. */
class Modelled {
  readonly #random: (below: number) => number;
  readonly #storage = new ChunkAdapter();
  readonly #model = new Map<number, Set<number | undefined>>();
  db!: Store<Key, unknown>;

  constructor(random: (below: number) => number) {
    this.#random = random;
  }

  async open(): Promise<void> {
    this.db = await open('model', { storage: this.#storage, wasm, memoryBytes: 1024 * 1024 });
  }

  /** The operations of one turn, acknowledged or cut short by a crash. */
  async turn(isCrash: boolean): Promise<void> {
    const random = this.#random;
    const underWay: Promise<unknown>[] = [];
    /** The writes of this turn, in order: after a crash a part of them may be there, from the start on. */
    const written = new Map<number, (number | undefined)[]>();
    for (let left = random(60); left >= 0; left--) underWay.push(this.#operation(written));
    if (!isCrash) {
      await Promise.all(underWay);
      for (const [key, marks] of written) this.#model.set(key, new Set([marks.at(-1)]));
      return;
    }
    for (const one of underWay) one.catch(() => undefined);
    for (const [key, marks] of written) this.#model.set(key, new Set([...this.#marks(key), ...marks]));
    if (random(2) === 0) {
      await Promise.race([this.#storage.chunks.dieAfter(random(4)), Promise.allSettled(underWay)]);
    }
    const old = this.db;
    await this.open();
    // The old store notices this sooner or later, and writes nothing.
    old.close().catch(() => undefined);
    for (let key = 0; key < 800; key += 1 + random(3)) {
      const mark = markOf(await this.db.get(key));
      expect(this.#marks(key).has(mark), `key ${key} is ${mark}`).toBe(true);
      this.#model.set(key, new Set([mark]));
    }
  }

  async compare(): Promise<void> {
    const all = new Map<unknown, number | undefined>();
    for await (const [key, found] of this.db.entries()) all.set(key, markOf(found));
    for (const [key, marks] of this.#model) expect(marks.has(all.get(key))).toBe(true);
    expect((await this.db.check({ tools })).problems).toEqual([]);
  }

  async #operation(written: Map<number, (number | undefined)[]>): Promise<void> {
    const random = this.#random;
    const [key, what, mark] = [random(800), random(10), 1 + random(250)];
    const mine = written.get(key);
    if (what > 6) {
      const expected = mine === undefined ? this.#marks(key) : new Set([mine.at(-1)]);
      const found = markOf(await this.db.get(key));
      expect(expected.has(found)).toBe(true);
      return;
    }
    written.set(key, [...(mine ?? []), what < 6 ? mark : undefined]);
    await (what < 6 ? this.db.set(key, value(mark - 1, 1 + random(2500))) : this.db.delete(key));
  }

  #marks(key: number): Set<number | undefined> {
    return this.#model.get(key) ?? new Set([undefined]);
  }
}

function markOf(found: unknown): number | undefined {
  return (found as Uint8Array | undefined)?.[0];
}

test.each([11, 12, 13])(
  'every acknowledged write survives crashes, and nothing else shows (seed %i)',
  { timeout: 120_000 },
  async (seed) => {
    const random = randomFrom(seed);
    const store = new Modelled(random);
    await store.open();
    for (let round = 0; round < 120; round++) {
      await store.turn(random(12) === 0);
      if (random(40) === 0) await store.db.compact();
    }
    await store.compare();
    await store.db.close();
  },
);

const keyOf = (number: number): Uint8Array => new Uint8Array(32).fill(number);

// Story: the engine has new data keys before they are committed. A check in between had the old ones, and reported a sound store as damaged.
test('a check beside a change of keys waits for it', async () => {
  const storage = new ChunkAdapter();
  const db = await open('keys', { storage, wasm, encryption: { key: keyOf(1) } });
  for (let i = 0; i < 50; i++) await db.set(i, value(i, 500));
  storage.chunks.pause();
  const before = storage.chunks.commits.length;
  const rotating = db.rotateKey({ keys: [keyOf(1)] });
  await expect.poll(() => storage.chunks.commits.length, { timeout: 30_000 }).toBeGreaterThan(before);
  const checking = db.check({ tools });
  for (let turn = 0; turn < 50; turn++) await nextTurn();
  storage.chunks.resume();
  await rotating;
  expect(await checking).toMatchObject({ ok: true, problems: [], withoutKey: false });
  await db.close();
});

// Story: the store was opened again without its new key, so every call got VARVE_KEY from then on.
test('a store that was encrypted in this session goes on after a refused commit', async () => {
  const storage = new ChunkAdapter();
  const db = await open('fresh', { storage, wasm, memoryBytes: 1024 * 1024 });
  await db.set('a', 1);
  await db.encrypt({ key: keyOf(1) });
  storage.setRoom(0);
  const fill = async (): Promise<void> => {
    for (let i = 0; i < 100; i++) await db.set(i, value(i, 8192));
  };
  await expect(fill()).rejects.toMatchObject({ code: 'VARVE_STORAGE_FULL' });
  storage.setRoom(undefined);
  expect(await db.get('a')).toBe(1);
  await db.set('b', 2);
  await db.close();
  const again = await open('fresh', { storage, wasm, encryption: { key: keyOf(1) } });
  expect(await again.getMany(['a', 'b'])).toEqual([1, 2]);
  await again.close();
});
