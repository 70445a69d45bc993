/** The synchronous store over the real engine, in memory: against a model, and one behaviour at a time. */

import { describe, expect, test, vi } from 'vitest';
import { decodeKey } from '../../js/src/codec/key-reader.ts';
import { encodeKey } from '../../js/src/codec/keys.ts';
import { compareBytes } from '../../js/src/codec/range.ts';
import { nextTurn } from '../../js/src/runtime/turn.ts';
import { type OpenOptions, open, type SyncStore, utf8, VarveError } from '../../js/src/synchronous.ts';
import type { Key, ValueCodec } from '../../js/src/types.ts';
import { randomFrom, wasm } from './support/engine.ts';
import { closedAfterTest } from './support/stores.ts';

async function openMemory<K = Key, V = unknown>(options: OpenOptions<K, V> = {}): Promise<SyncStore<K, V>> {
  return closedAfterTest(await open<K, V>('test', { storage: 'memory', wasm, ...options }));
}

/** A Map in key order, which the store must agree with. */
class Model {
  readonly #entries = new Map<string, unknown>();

  static #name(key: Key): string {
    return Buffer.from(encodeKey(key)).toString('hex');
  }

  set(key: Key, value: unknown): void {
    this.#entries.set(Model.#name(key), value);
  }

  delete(key: Key): void {
    this.#entries.delete(Model.#name(key));
  }

  get(key: Key): unknown {
    return this.#entries.get(Model.#name(key));
  }

  /** Entries in key order. */
  entries(): [Key, unknown][] {
    return [...this.#entries]
      .map(([name, value]): [Uint8Array, unknown] => [Buffer.from(name, 'hex'), value])
      .sort(([a], [b]) => compareBytes(a, b))
      .map(([bytes, value]) => [decodeKey(new Uint8Array(bytes)), value]);
  }

  between(lower: Key, upper: Key): [Key, unknown][] {
    const [from, to] = [encodeKey(lower), encodeKey(upper)];
    return this.entries().filter(([key]) => {
      const bytes = encodeKey(key);
      return compareBytes(bytes, from) >= 0 && compareBytes(bytes, to) < 0;
    });
  }
}

function randomKey(random: (below: number) => number): Key {
  const n = random(400);
  switch (random(6)) {
    case 0:
      return n - 200;
    case 1:
      return `schlüssel ${n}`;
    case 2:
      return ['tuple', n % 20, `part${n}`];
    case 3:
      return new Uint8Array([n & 0xff, 0, n >> 8]);
    default:
      return `key${String(n).padStart(5, '0')}`;
  }
}

function randomValue(random: (below: number) => number): unknown {
  switch (random(5)) {
    case 0:
      return { n: random(1e9), text: 'x'.repeat(random(40)) };
    case 1:
      return `välue ${random(1e9)}`;
    case 2:
      return random(1e9);
    default:
      return new Uint8Array(random(900)).fill(random(256));
  }
}

describe.each([1, 2, 3])('random operations, seed %i', (seed) => {
  test('the store agrees with a Map at every step, through flushes and compactions', async () => {
    const random = randomFrom(seed);
    const store = await openMemory({ memoryBytes: 1024 * 1024 });
    const model = new Model();
    for (let turn = 0; turn < 40; turn++) {
      for (let i = 0; i < 150; i++) step(store, model, random);
      if (turn % 10 === 9) await store.compact();
      if (turn % 3 === 0) await nextTurn();
      compare(store, model, random);
    }
    expect(store.stats().flush.count).toBeGreaterThan(3);
  }, 60_000);
});

function step(store: SyncStore<Key, unknown>, model: Model, random: (below: number) => number): void {
  const key = randomKey(random);
  const what = random(100);
  if (what < 55) {
    const value = randomValue(random);
    store.set(key, value);
    model.set(key, value);
  } else if (what < 75) {
    store.delete(key);
    model.delete(key);
  } else if (what < 78) {
    const batch = store.batch();
    for (let i = 0; i < 10; i++) {
      const other = randomKey(random);
      const value = randomValue(random);
      batch.set(other, value).delete(key);
      model.set(other, value);
      model.delete(key);
    }
    batch.commit({ durability: random(2) === 0 ? 'strict' : undefined });
  } else if (what === 78) {
    const [lower, upper] = ['key00100', `key00${100 + random(60)}`];
    store.deleteRange({ gte: lower, lt: upper });
    for (const [found] of model.between(lower, upper)) model.delete(found);
  } else {
    expect(store.get(key)).toEqual(model.get(key));
    expect(store.has(key)).toBe(model.get(key) !== undefined);
  }
}

function compare(store: SyncStore<Key, unknown>, model: Model, random: (below: number) => number): void {
  const all = model.entries();
  expect([...store.entries()]).toEqual(all);
  expect([...store.keys({ reverse: true })]).toEqual(all.map(([key]) => key).reverse());
  const limit = random(30) + 1;
  expect([...store.values({ limit })]).toEqual(all.slice(0, limit).map(([, value]) => value));
  const lower = randomKey(random);
  const upper = randomKey(random);
  expect([...store.entries({ gte: lower, lt: upper })]).toEqual(model.between(lower, upper));
}

describe('writes', () => {
  test('a set is readable at once, buffered until the turn ends, then relaxed', async () => {
    const store = await openMemory();
    const logged = store.stats().log.writtenBytes;
    expect(store.set('k', 'v')).toEqual({ sequence: 1, durability: 'buffered' });
    expect(store.get('k')).toBe('v');
    expect(store.stats().log.writtenBytes).toBe(logged);
    await Promise.resolve();
    expect(store.stats().log.writtenBytes).toBeGreaterThan(Number(logged));
  });

  test('64 KiB of staged writes are logged inside the turn', async () => {
    const store = await openMemory();
    const levels = new Set<string>();
    for (let i = 0; i < 100; i++) levels.add(store.set(i, new Uint8Array(1000)).durability);
    expect(levels).toEqual(new Set(['buffered', 'relaxed']));
    expect(store.stats().log.writtenBytes).toBeGreaterThan(60_000);
  });

  test('a strict write is flushed before it returns, with everything before it', async () => {
    const store = await openMemory();
    store.set('a', 1);
    const before = Number(store.stats().log.syncs);
    expect(store.set('b', 2, { durability: 'strict' })).toEqual({ sequence: 2, durability: 'strict' });
    expect(store.stats().log.syncs).toBe(before + 1);
  });

  test('commit returns the sequence and the level, and does nothing the second time', async () => {
    const store = await openMemory();
    store.set('a', 1);
    store.delete('a');
    expect(store.commit()).toEqual({ sequence: 2, durability: 'relaxed' });
    const logged = store.stats().log.writtenBytes;
    expect(store.commit()).toEqual({ sequence: 2, durability: 'relaxed' });
    expect(store.stats().log.writtenBytes).toBe(logged);
  });

  test('a store of durability memory logs nothing', async () => {
    const store = await openMemory({ durability: 'memory' });
    expect(store.set('a', 1).durability).toBe('memory');
    await nextTurn();
    expect(store.stats().log.writtenBytes).toBe(0);
    expect(store.get('a')).toBe(1);
  });

  test('a value larger than the scratch comes back whole', async () => {
    const store = await openMemory();
    const large = new Uint8Array(3_000_000).map((_, i) => i * 7);
    store.set('large', large);
    store.set('text', 'ü'.repeat(500_000));
    expect(Buffer.compare(store.get('large') as Uint8Array, large)).toBe(0);
    expect(store.get('text') === 'ü'.repeat(500_000)).toBe(true);
    expect(store.get('small')).toBeUndefined();
  });

  test('clear removes everything, and later writes stay', async () => {
    const store = await openMemory();
    store.setMany([
      ['a', 1],
      [new Date(0), 2],
      [[['z']], 3],
    ]);
    store.clear();
    store.set('b', 4);
    expect([...store]).toEqual([['b', 4]]);
  });

  test('a refused key or value leaves no trace', async () => {
    const store = await openMemory();
    expect(() => store.set(Number.NaN, 1)).toThrow(expect.objectContaining({ code: 'VARVE_INVALID_KEY' }));
    expect(() => store.set('x'.repeat(70_000), 1)).toThrow(expect.objectContaining({ code: 'VARVE_INVALID_KEY' }));
    expect(() => store.set('k', undefined)).toThrow(expect.objectContaining({ code: 'VARVE_INVALID_VALUE' }));
    expect(() => store.set('k', () => 1)).toThrow(expect.objectContaining({ code: 'VARVE_INVALID_VALUE' }));
    expect(store.commit().sequence).toBe(0);
    expect([...store.keys()]).toEqual([]);
  });

  test('a codec that calls the store while it encodes is refused, and the store continues', async () => {
    const store = await openMemory();
    const mischief = {
      get trap(): number {
        store.set('inner', { nested: true });
        return 1;
      },
    };
    expect(() => store.set('outer', mischief)).toThrow(VarveError);
    store.set('after', { fine: true });
    expect([...store.entries()]).toEqual([['after', { fine: true }]]);
  });
});

describe('reads', () => {
  test('values that were read stay as they were when the store changes', async () => {
    const store = await openMemory();
    const values = Array.from({ length: 200 }, (_, i) => new Uint8Array(i).fill(i));
    for (const [i, value] of values.entries()) store.set(i, value);
    const read = values.map((_, i) => store.get(i));
    const scanned = [...store.values()];
    for (const i of values.keys()) store.set(i, new Uint8Array(300).fill(7));
    for (const i of values.keys()) store.get(i);
    expect(read).toEqual(values);
    expect(scanned).toEqual(values);
  });

  test('an entry has the sequence of its write', async () => {
    const store = await openMemory();
    store.set('a', 1);
    store.set('b', 2);
    store.set('a', 3);
    expect(store.getEntry('a')).toEqual({ value: 3, sequence: 3, expiresAt: undefined });
    expect(store.getEntry('none')).toBeUndefined();
    expect(store.getMany(['b', 'none', 'a'])).toEqual([2, undefined, 3]);
    expect(store.hasMany(['b', 'none'])).toEqual([true, false]);
  });

  test('codecs map keys and values both ways', async () => {
    const store = await openMemory<number, string>({
      keys: { name: 'even', encode: (key) => key * 2, decode: (key) => Number(key) / 2 },
      values: utf8.as<string>(),
    });
    store.set(2, 'zwei').sequence;
    store.set(1, 'eins');
    expect([...store.entries({ gte: 1 })]).toEqual([
      [1, 'eins'],
      [2, 'zwei'],
    ]);
    expect(store.get(2)).toBe('zwei');
  });
});

describe('scans', () => {
  test('a scan sees the store as it was when it was called', async () => {
    const store = await openMemory();
    for (let i = 0; i < 3000; i++) store.set(i, 'x'.repeat(50));
    const scan = store.keys();
    store.clear();
    store.set(1, 'new');
    expect([...scan]).toHaveLength(3000);
    expect([...store.keys()]).toEqual([1]);
  });

  test('leaving a loop closes the scan in the engine', async () => {
    const store = await openMemory();
    for (let i = 0; i < 3000; i++) store.set(i, 'x'.repeat(50));
    for (const key of store.keys()) if (key === 10) break;
    expect(store.stats().scans).toBe(0);
    const unfinished = store.values();
    expect(store.stats().scans).toBe(1);
    unfinished.return?.();
    expect([...unfinished]).toEqual([]);
    expect(store.stats().scans).toBe(0);
  });

  test('prefixes match tuples by element and strings by content', async () => {
    const store = await openMemory();
    const keys: Key[] = ['a', 'ab', 'b', ['a'], ['a', 1], ['ab', 1], ['b']];
    store.setMany(keys.map((key) => [key, true]));
    expect([...store.keys({ prefix: 'a' })]).toEqual(['a', 'ab']);
    expect([...store.keys({ prefix: ['a'] })]).toEqual([['a'], ['a', 1]]);
    expect([...store.keys({ prefix: ['a'], reverse: true, limit: 1 })]).toEqual([['a', 1]]);
  });

  test('a limit that is no whole number is refused', async () => {
    const store = await openMemory();
    expect(() => store.keys({ limit: -1 })).toThrow(expect.objectContaining({ code: 'VARVE_INVALID_ARGUMENT' }));
    expect([...store.keys({ limit: 0 })]).toEqual([]);
  });
});

describe('closing', () => {
  test('every call on a closed store is refused as closed', async () => {
    const store = await openMemory();
    store.set('a', 1);
    const scan = store.keys();
    await store.close();
    const closed = expect.objectContaining({ code: 'VARVE_CLOSED' });
    for (const call of [
      () => store.get('a'),
      () => store.set('a', 1),
      () => store.keys(),
      () => store.stats(),
      () => store.commit(),
    ]) {
      expect(call).toThrow(closed);
    }
    expect(scan.next()).toEqual({ value: 'a', done: false });
    await store.close();
  });

  test('several stores are open in one instance without touching each other', async () => {
    const [first, second] = [await openMemory(), await openMemory()];
    first.set('k', 1);
    second.set('k', 2);
    expect([first.get('k'), second.get('k')]).toEqual([1, 2]);
    await first.close();
    expect(second.get('k')).toBe(2);
  });
});

test('while nothing is written, merges drop overwritten entries', { timeout: 60_000 }, async () => {
  const db = await openMemory({ memoryBytes: 8 << 20 });
  const random = randomFrom(7);
  const value = (): Uint8Array => Uint8Array.from({ length: 1000 }, () => random(256));
  const save = async (from: number, to: number): Promise<void> => {
    for (let i = from; i < to; i++) {
      db.set(i, value());
      if (i % 100 === 99) await nextTurn();
    }
    await db.flush();
  };
  const overwritten = (): number => db.stats().levels[0]?.bytes ?? 0;
  await save(0, 6000);
  await db.compact();
  await save(0, 3000);
  expect(overwritten()).toBeGreaterThan(1 << 20);
  await vi.waitFor(() => expect(overwritten()).toBe(0), { timeout: 30_000, interval: 100 });
  expect(db.count()).toBe(6000);
});

test('has decodes no value, in the store, a snapshot and a transaction', async () => {
  let decoded = 0;
  const values: ValueCodec<string> = {
    name: 'counted',
    encode: (text) => utf8.encode(text),
    decode: (bytes) => {
      decoded++;
      return utf8.decode(bytes);
    },
  };
  const db = await openMemory<Key, string>({ values });
  db.set('a', 'one');
  using snapshot = db.snapshot();
  const both = ['a', 'b'];
  const here = [true, false];
  expect([db.hasMany(both), snapshot.hasMany(both), db.transaction((tx) => tx.hasMany(both))]).toEqual([
    here,
    here,
    here,
  ]);
  expect(decoded).toBe(0);
  expect([snapshot.get('a'), decoded]).toEqual(['one', 1]);
});
