// A store over several objects gets the same calls as a single store. Their answers must be equal. The objects here are synchronous
// stores in memory. Between them and the client are the real requests and replies, cloned as the platform does it.

import { serialize } from 'node:v8';
import { expect, test } from 'vitest';
import type { Writes } from '../../js/src/api.ts';
import type { StoreRequest } from '../../js/src/cloudflare/rpc.ts';
import { serve } from '../../js/src/cloudflare/serve.ts';
import { encodeKey } from '../../js/src/codec/keys.ts';
import { VarveError } from '../../js/src/errors.ts';
import { rebalance } from '../../js/src/shards/rebalance.ts';
import { connect, type RemoteStore, shards } from '../../js/src/shards/remote-store.ts';
import { murmur3, Rendezvous } from '../../js/src/shards/rendezvous.ts';
import { open, type SyncStore, type SyncView } from '../../js/src/synchronous.ts';
import type { Key } from '../../js/src/types.ts';
import { randomFrom, wasm } from './support/engine.ts';

type Store = SyncStore<Key, unknown>;
type View = SyncView<Key, unknown>;

/** The platform sends no more at once. */
const SENT_BYTES_MAX = 32 * 2 ** 20;

/** A request or a reply on its way. */
function sent<T>(message: T): T {
  const { length } = serialize(message);
  if (length > SENT_BYTES_MAX)
    throw new Error(`Serialized RPC arguments or return values are limited to 32MiB, not ${length}.`);
  return structuredClone(message);
}

/** A namespace of objects, which are created when they are first requested. */
class FakeNamespace {
  readonly stores = new Map<string, Promise<Store>>();
  calls = 0;
  /** Objects that no longer answer. */
  readonly broken = new Set<string>();

  idFromName(name: string): string {
    return `id of ${name}`;
  }

  get(id: string): object {
    return { varve: (request: StoreRequest<Key, unknown>) => this.#answer(id, sent(request)) };
  }

  async close(): Promise<void> {
    for (const store of this.stores.values()) await (await store).close();
  }

  async #answer(id: string, request: StoreRequest<Key, unknown>): Promise<unknown> {
    this.calls++;
    if (this.broken.has(id)) throw new Error('Durable Object reset');
    const opened = this.stores.get(id) ?? open<Key, unknown>(id, { storage: 'memory', wasm, memoryBytes: 2 ** 20 });
    this.stores.set(id, opened);
    return sent(serve(await opened, request));
  }
}

async function listed<T>(scan: AsyncIterable<T>): Promise<T[]> {
  const items: T[] = [];
  for await (const item of scan) items.push(item);
  return items;
}

function someKey(random: (below: number) => number): Key {
  const number = random(300);
  return [number, `key ${number}`, ['tuple', number], BigInt(number), new Date(number)][random(5)] as Key;
}

/** Makes the same write in both. */
async function write(db: RemoteStore, single: View, random: (below: number) => number): Promise<void> {
  const key = someKey(random);
  const value = `${random(1e6)}`.repeat(1 + random(3));
  switch (random(6)) {
    case 0:
      await db.delete(key);
      single.delete(key);
      return;
    case 1: {
      const entries = Array.from({ length: random(200) }, () => [someKey(random), random(1e6)] as const);
      await db.setMany(entries, { atomic: false });
      single.setMany(entries);
      return;
    }
    case 2: {
      const range = { gte: random(300), lt: random(300) };
      await db.batch().set(key, value).deleteRange(range).commit({ atomic: false });
      single.batch().set(key, value).deleteRange(range).commit();
      return;
    }
    default:
      await db.set(key, value);
      single.set(key, value);
  }
}

/** Makes the same read in both. */
async function compare(db: RemoteStore, single: View, random: (below: number) => number): Promise<void> {
  const keys = Array.from({ length: random(30) }, () => someKey(random));
  expect(await db.getMany(keys)).toEqual(single.getMany(keys));
  expect(await db.hasMany(keys)).toEqual(single.hasMany(keys));
  const [from, to] = [someKey(random), someKey(random)];
  const bounds = [{}, { gte: from }, { gt: from, lte: to }, { lt: to }, { prefix: ['tuple'] }, { prefix: 'key 1' }];
  const bound = bounds[random(bounds.length)];
  const range = {
    ...bound,
    reverse: random(2) === 0,
    limit: random(2) === 0 ? random(100) : undefined,
  };
  expect(await listed(db.entries(range))).toEqual([...single.entries(range)]);
  expect(await db.keys(range).toArray()).toEqual([...single.keys(range)]);
  expect(await db.values(range).toArray()).toEqual([...single.values(range)]);
  expect(await db.count(bound)).toBe(single.count(bound));
}

test.each([
  [1, 1],
  [2, 3],
  [3, 8],
])('answers as one store does (seed %i, %i shards)', { timeout: 60_000 }, async (seed, count) => {
  const random = randomFrom(seed);
  const namespace = new FakeNamespace();
  const db = shards(namespace, { count });
  const single = await open<Key, unknown>('single', { storage: 'memory', wasm, memoryBytes: 2 ** 20 });
  const inView = [db.at(['tuple']).at([7]), single.at(['tuple', 7])] as const;
  for (let step = 0; step < 60; step++) {
    await write(db, single, random);
    if (step % 3 === 0) await write(...inView, random);
    if (step % 4 === 0) await compare(db, single, random);
    if (step % 8 === 0) await compare(...inView, random);
  }
  expect(await inView[0].getMany(['key 5', ['tuple', 5]])).toEqual(inView[1].getMany(['key 5', ['tuple', 5]]));
  expect(() => db.at('tuple' as never)).toThrow(expect.objectContaining({ code: 'VARVE_INVALID_KEY' }));
  expect(namespace.stores.size).toBe(count);
  await Promise.all([single.close(), namespace.close()]);
});

test('a write to several shards is refused unless that is asked for', async () => {
  const namespace = new FakeNamespace();
  const db = shards(namespace, { names: ['a', 'b', 'c'] });
  const entries = Array.from({ length: 30 }, (_, i) => [i, i] as const);
  await expect(db.setMany(entries)).rejects.toMatchObject({ code: 'VARVE_INVALID_ARGUMENT' });
  await expect(db.deleteRange({ gte: 0 })).rejects.toMatchObject({ code: 'VARVE_INVALID_ARGUMENT' });
  expect(namespace.calls).toBe(0);
  const together = entries.filter(([key]) => db.shardOf(key) === 'b');
  expect(await db.setMany(together)).toEqual([{ shard: 'b', sequence: together.length, durability: 'strict' }]);
  expect(await db.setMany([])).toEqual([]);
  const noList = { code: 'VARVE_INVALID_ARGUMENT', message: expect.stringContaining('iterable, not null.') };
  await expect(db.getMany(null as never)).rejects.toMatchObject(noList);
  await expect(db.hasMany(null as never)).rejects.toMatchObject(noList);
  await expect(db.setMany(null as never)).rejects.toMatchObject(noList);
  await expect(db.setMany([5 as never])).rejects.toThrow('An entry is an array of a key and a value, not number.');
  await namespace.close();
});

test('one call goes to each shard that has some of the keys', async () => {
  const namespace = new FakeNamespace();
  const db = shards(namespace, { count: 4 });
  const entries = Array.from({ length: 400 }, (_, i) => [i, i] as const);
  await db.setMany(entries, { atomic: false });
  expect(namespace.calls).toBe(4);
  expect(await db.getMany(entries.map(([key]) => key))).toEqual(entries.map(([, value]) => value));
  expect(namespace.calls).toBe(8);
  const keys = db.keys({ limit: 5 });
  expect(await keys.next()).toEqual({ done: false, value: 0 });
  expect(await keys.toArray()).toEqual([1, 2, 3, 4]);
  expect(await keys.toArray()).toEqual([]);
  expect(namespace.calls).toBe(12);
  await namespace.close();
});

test('an unknown option is refused, and nothing is written', async () => {
  const namespace = new FakeNamespace();
  const db = shards(namespace, { count: 2 });
  await db.set(1, 'one');
  const strange = { lifetime: 5 } as never;
  expect(() => shards(namespace, { count: 2, lifetime: 5 } as never)).toThrow('no option lifetime');
  expect(() => connect(namespace.get('a'), strange)).toThrow('no option lifetime');
  for (const call of [
    () => db.set(2, 'two', strange),
    () => db.delete(1, strange),
    () => db.setMany([[2, 'two']], strange),
    () => db.deleteRange({ gte: 1, lifetime: 5 } as never, { atomic: false }),
    () => db.batch().set(2, 'two').commit(strange),
    () => db.count(strange),
    () => db.get(1, strange),
    () => db.hasMany([1], strange),
    () => db.hasMany([], strange),
    () => db.setMany([], strange),
    () => db.getEntry(1, strange),
    () => rebalance(db, db, strange),
  ])
    await expect(call()).rejects.toThrow('There is no option lifetime here');
  // A scan is refused at the call, as in other stores.
  for (const scan of [db.keys, db.values, db.entries])
    expect(() => scan.call(db, strange)).toThrow('There is no option lifetime here');
  expect(await listed(db.entries())).toEqual([[1, 'one']]);
  await namespace.close();
});

test('a batch refuses unknown options when they are given, and anything after its commit', async () => {
  const namespace = new FakeNamespace();
  const batch = shards(namespace, { count: 2 }).batch();
  const strange = { lifetime: 5 } as never;
  expect(() => batch.set(1, 'one', strange)).toThrow('There is no option lifetime here');
  expect(() => batch.delete(1, strange)).toThrow('There is no option lifetime here');
  expect(() => batch.deleteRange(strange)).toThrow('There is no option lifetime here');
  expect(() => batch.set(Number.NaN, 'one')).toThrow(expect.objectContaining({ code: 'VARVE_INVALID_KEY' }));
  expect(() => batch.set(1, 'one', { expiresIn: 0 })).toThrow('expiresIn is a number of milliseconds above 0, not 0.');
  expect(() => batch.delete(1, { ifSequence: -1 })).toThrow('ifSequence is the sequence of an entry');
  expect(() => batch.deleteRange({})).toThrow('deleteRange takes a bound or a prefix');
  expect(() => batch.deleteRange({ gt: 1, gte: 1 })).toThrow('A range takes gt or gte, not both.');
  expect(batch.size).toBe(0);
  await batch.set(1, 'one').commit();
  expect(() => batch.set(2, 'two')).toThrow('The batch was committed already. Make a new one with batch().');
  await expect(batch.commit()).rejects.toThrow('The batch was committed already. Make a new one with batch().');
  await namespace.close();
});

test('the options of every store: a signal ends the wait, a durability is checked, and what is written is strict', async () => {
  const namespace = new FakeNamespace();
  const db = shards(namespace, { count: 2 });
  const reason = new Error('enough');
  const signal = AbortSignal.abort(reason);
  for (const call of [
    () => db.get(1, { signal }),
    () => db.getMany([1], { signal }),
    () => db.getEntry(1, { signal }),
    () => db.has(1, { signal }),
    () => db.set(1, 'one', { signal }),
    () => db.setMany([[1, 'one']], { signal }),
    () => db.delete(1, { signal }),
    () => db.deleteRange({ gte: 1 }, { signal, atomic: false }),
    () => db.count({ signal }),
  ])
    await expect(call()).rejects.toBe(reason);
  expect(() => db.keys({ signal })).toThrow(reason);
  const unsafe = { durability: 'safe' as never };
  for (const call of [
    () => db.set(1, 'two', unsafe),
    () => db.delete(1, unsafe),
    () => db.setMany([[1, 'two']], unsafe),
    () => db.deleteRange({ gte: 1 }, { ...unsafe, atomic: false }),
    () => db.batch().set(1, 'two').commit(unsafe),
  ])
    await expect(call()).rejects.toThrow("durability is 'memory', 'relaxed' or 'strict', not 'safe'.");
  await expect(db.set(1, 'two', { expiresAt: Number.NaN })).rejects.toThrow('expiresAt is a Date');
  await expect(db.delete(1, { ifSequence: 0.5 })).rejects.toThrow('ifSequence is the sequence of an entry');
  // As of `{ ifSequence: (await db.getEntry(key))?.sequence }` for an absent key.
  const unread = { ifSequence: undefined as never };
  for (const call of [
    () => db.set(1, 'two', unread),
    () => db.delete(1, unread),
    () => db.delete(1, { ...unread, existed: true }),
    async () => db.batch().set(1, 'two', unread),
    async () => db.batch().delete(1, unread),
  ])
    await expect(call()).rejects.toThrow('ifSequence is the sequence of an entry, or null for none, not undefined.');
  expect(namespace.calls).toBe(0);
  for (const durability of ['memory', 'relaxed', 'strict', undefined] as const)
    expect(await db.set(1, 'one', { durability })).toMatchObject({ durability: 'strict' });
  expect(await db.get(1)).toBe('one');

  const later = new AbortController();
  const waiting = db.count({ signal: later.signal });
  later.abort(reason);
  await expect(waiting).rejects.toBe(reason);
  await db.set(2, 'two');
  const during = new AbortController();
  const scan = db.keys({ signal: during.signal });
  await scan.next();
  during.abort(reason);
  await expect(scan.next()).rejects.toBe(reason);
  await namespace.close();
});

test('when a shard fails, the error states what the others did', async () => {
  const namespace = new FakeNamespace();
  const db = shards(namespace, { names: ['a', 'b'] });
  const keyIn = (name: string) => Array.from({ length: 99 }, (_, i) => i).find((i) => db.shardOf(i) === name) as number;
  await db.set(keyIn('a'), 'first');
  const batch = db.batch().set(keyIn('a'), 'second', { ifSequence: null }).set(keyIn('b'), 'second');
  await expect(batch.commit({ atomic: false })).rejects.toMatchObject({
    code: 'VARVE_CONFLICT',
    conflict: { key: keyIn('a'), sequence: 1 },
    message: expect.stringContaining('1 of 2 shards have applied their part'),
  });
  expect(await db.getMany([keyIn('a'), keyIn('b')])).toEqual(['first', 'second']);
  namespace.broken.add('id of b');
  await expect(db.count()).rejects.toThrow('Durable Object reset');
  await namespace.close();
});

test('an object by itself: entries, conditions, errors of its own class', async () => {
  const namespace = new FakeNamespace();
  const db = connect(namespace.get('one'));
  const { sequence } = await db.set('a', 1, { expiresIn: 60_000 });
  expect(await db.getEntry('a')).toEqual({ value: 1, sequence, expiresAt: expect.any(Date) });
  const refused = db.delete('a', { ifSequence: sequence + 1 });
  await expect(refused).rejects.toBeInstanceOf(VarveError);
  await expect(refused).rejects.toMatchObject({ code: 'VARVE_CONFLICT', conflict: { key: 'a', sequence } });
  await expect(db.set(Number.NaN, 1)).rejects.toMatchObject({ code: 'VARVE_INVALID_KEY' });
  expect(() => db.keys({ gt: 1, gte: 2 })).toThrow('A range takes gt or gte, not both.');
  expect(() => db.keys({ limit: -1 })).toThrow('limit is an integer from 0, not -1.');
  await expect(db.count({ lt: 1, lte: 2 })).rejects.toThrow('A range takes lt or lte, not both.');
  expect(await db.get('a')).toBe(1);
  const asks = { existed: true } as const;
  expect(await db.delete('a', asks)).toEqual({ existed: true, shard: '', sequence: 2, durability: 'strict' });
  expect((await db.delete('a', asks)).existed).toBe(false);
  await expect(db.delete('a', { ...asks, ifSequence: 9 })).rejects.toMatchObject({ code: 'VARVE_CONFLICT' });
  await namespace.close();
});

test('an object by itself takes the place of a store: every write has one receipt', async () => {
  const namespace = new FakeNamespace();
  const db = connect(namespace.get('one'));
  // A program that knows nothing of objects, as the type shows.
  const program = async (writes: Writes<Key, unknown>): Promise<unknown[]> => [
    await writes.setMany([
      [1, 'a'],
      [2, 'b'],
    ]),
    await writes.batch().set(3, 'c').delete(1).commit({ durability: 'relaxed' }),
    await writes.deleteRange({ gte: 3 }),
    await writes.setMany([]),
    await writes.batch().commit(),
    await writes.clear(),
  ];
  const receipt = (sequence: number) => ({ shard: '', sequence, durability: 'strict' });
  expect(await program(db)).toEqual([2, 4, 5, 5, 5, 6].map(receipt));
  expect(await db.at(['view']).setMany([[1, 'd']])).toEqual(receipt(7));
  // A shard is one object, too; a store of one shard is none.
  const one = shards(namespace, { names: ['one'] });
  expect(await one.shard('one').setMany([[1, 'e']])).toMatchObject({ shard: 'one' });
  expect(await one.setMany([[2, 'f']])).toEqual([{ shard: 'one', sequence: 2, durability: 'strict' }]);
  await namespace.close();
});

test('clear deletes everything in all shards, or in a view, if that is asked for', async () => {
  const namespace = new FakeNamespace();
  const db = shards<Key, number>(namespace, { count: 3 });
  const view = db.at<number, number>(['view']);
  const numbers = Array.from({ length: 50 }, (_, i) => [i, i] as const);
  await db.setMany([...numbers, [['other'], 1], ['view', 2]], { atomic: false });
  await view.setMany(numbers, { atomic: false });
  await expect(db.clear()).rejects.toMatchObject({ code: 'VARVE_INVALID_ARGUMENT' });
  await expect(db.clear({ lifetime: 5 } as never)).rejects.toThrow('There is no option lifetime here');
  expect(await view.count()).toBe(50);
  expect((await view.clear({ atomic: false })).map(({ shard }) => shard)).toEqual(db.names);
  expect([await view.count(), await db.count()]).toEqual([0, 52]);
  await db.clear({ atomic: false });
  expect(await db.count()).toBe(0);
  await db.shard('shard-1').clear();
  await expect(db.clear({ atomic: false, signal: AbortSignal.abort('no') })).rejects.toBe('no');
  await namespace.close();
});

test('a scan ends with its block', async () => {
  const namespace = new FakeNamespace();
  const db = connect<number, number>(namespace.get('one'));
  await db.setMany([
    [1, 1],
    [2, 2],
  ]);
  const keys = db.keys();
  {
    await using scan = keys;
    expect(await scan.next()).toEqual({ done: false, value: 1 });
  }
  expect(await keys.next()).toEqual({ done: true, value: undefined });
  await namespace.close();
});

test('pages end with bytes as well as with entries', async () => {
  const namespace = new FakeNamespace();
  const db = connect<number, Uint8Array>(namespace.get('one'));
  for (let i = 0; i < 12; i++) await db.set(i, new Uint8Array(300_000).fill(i));
  namespace.calls = 0;
  const values = await listed(db.values());
  expect(values.map((value) => [value.length, value[0]])).toEqual(values.map((_, i) => [300_000, i]));
  expect([values.length, namespace.calls]).toEqual([12, 4]);
  await namespace.close();
});

// A hundred keys were moved at once, so with values of 400 kB each run failed at the same place.
test('values that are too long for one call together are read and moved in parts', async () => {
  const namespace = new FakeNamespace();
  const old = shards<number, Uint8Array>(namespace, { names: ['a'] });
  const next = shards<number, Uint8Array>(namespace, { names: ['b', 'c'] });
  const keys = Array.from({ length: 100 }, (_, i) => i);
  for (const key of keys) await old.set(key, new Uint8Array(400_000).fill(key));
  await old.set(100, new Uint8Array(20_000_000));
  const firsts = async (db: typeof old) => (await db.getMany([...keys, 100, 101])).map((value) => value?.[0]);
  expect(await firsts(old)).toEqual([...keys, 0, undefined]);
  expect(await rebalance(old, next)).toEqual({ copied: 101, deleted: 101 });
  expect(await firsts(next)).toEqual([...keys, 0, undefined]);
  expect((await next.getEntry(99))?.value[0]).toBe(99);
  expect(await old.count()).toBe(0);
  await namespace.close();
});

test('keys are moved to where other shards look for them, and a second run finds nothing to do', {
  timeout: 60_000,
}, async () => {
  const random = randomFrom(9);
  const namespace = new FakeNamespace();
  const old = shards(namespace, { count: 3 });
  const next = shards(namespace, { names: ['shard-0', 'shard-2', 'another', 'one more'] });
  const single = await open<Key, unknown>('single', { storage: 'memory', wasm, memoryBytes: 2 ** 20 });
  for (let step = 0; step < 60; step++) await write(old, single, random);
  await old.set('expires', 1, { expiresIn: 60_000 });
  single.set('expires', 1, { expiresIn: 60_000 });
  // A run that is interrupted after some keys.
  const cut = rebalance(old, next, {
    onProgress: ({ copied }) => {
      if (copied > 100) throw new Error('cut off');
    },
  });
  await expect(cut).rejects.toThrow('cut off');
  let inBoth = 0;
  const { copied, deleted } = await rebalance(old, next, {
    onCopied: async () => {
      inBoth = await old.count();
    },
  });
  expect(inBoth).toBeGreaterThan(single.count());
  expect(deleted).toBeGreaterThan(copied);
  for (let i = 0; i < 5; i++) await compare(next, single, random);
  expect(await next.count()).toBe(single.count());
  expect((await next.getEntry('expires'))?.expiresAt?.getTime()).toBeGreaterThan(Date.now() + 50_000);
  expect(await rebalance(old, next)).toEqual({ copied: 0, deleted: 0 });
  for (const name of next.names) {
    for await (const key of next.shard(name).keys()) expect(next.shardOf(key)).toBe(name);
  }
  await Promise.all([single.close(), namespace.close()]);
});

test('a run that stops when all is copied deletes nothing, and the next one does', async () => {
  const namespace = new FakeNamespace();
  const [old, next] = [shards(namespace, { count: 2 }), shards(namespace, { count: 3 })];
  const keys = Array.from({ length: 60 }, (_, i) => i);
  await old.setMany(
    keys.map((key) => [key, key]),
    { atomic: false },
  );
  let isDeployed = false;
  const run = () =>
    rebalance(old, next, {
      onCopied: () => {
        if (!isDeployed) throw new Error('deploy');
      },
    });
  await expect(run()).rejects.toThrow('deploy');
  for (const readers of [old, next]) expect(await readers.getMany(keys)).toEqual(keys);
  isDeployed = true;
  const { copied, deleted } = await run();
  expect(copied).toBe(0);
  expect(deleted).toBe(keys.filter((key) => next.shardOf(key) === 'shard-2').length);
  expect(await next.getMany(keys)).toEqual(keys);
  expect(await next.count()).toBe(keys.length);
  await namespace.close();
});

test('shards are named once, by a count or a list', () => {
  const namespace = new FakeNamespace();
  expect(shards(namespace, { count: 3 }).names).toEqual(['shard-0', 'shard-1', 'shard-2']);
  for (const options of [
    {},
    { count: 0 },
    { count: 1.5 },
    { names: [] },
    { names: ['a', 'a'] },
    { count: 1, names: ['a'] },
  ]) {
    expect(() => shards(namespace, options)).toThrow('shards takes a count');
  }
});

test('the hash is MurmurHash3, and places never change', () => {
  const hash = (text: string) => murmur3(new TextEncoder().encode(text));
  // Known values of MurmurHash3_x86_32 with seed 0.
  expect([hash(''), hash('test'), hash('Hello, world!')]).toEqual([0, 0xba6bd213, 0xc0363e43]);
  const places = new Rendezvous(['shard-0', 'shard-1', 'shard-2', 'shard-3', 'shard-4']);
  const keys: Key[] = ['a', 'b', 'c', 1, 2, 3, ['note', 42], ['note', 7], 10n, new Date(0), true];
  expect(keys.map((key) => places.shardOf(encodeKey(key)))).toEqual([3, 0, 0, 1, 0, 1, 3, 0, 2, 3, 2]);
});

test('keys spread evenly, and a new shard takes its share and moves nothing else', () => {
  const names = Array.from({ length: 10 }, (_, i) => `shard-${i}`);
  const before = new Rendezvous(names);
  const after = new Rendezvous(['another', ...names]);
  const counts = new Map<string, number>();
  let moved = 0;
  let elsewhere = 0;
  for (let i = 0; i < 20_000; i++) {
    const key = encodeKey(['user', i]);
    const from = before.names[before.shardOf(key)] as string;
    const to = after.names[after.shardOf(key)] as string;
    counts.set(from, (counts.get(from) ?? 0) + 1);
    if (from === to) continue;
    moved++;
    if (to !== 'another') elsewhere++;
  }
  expect(elsewhere).toBe(0);
  for (const count of counts.values()) expect(Math.abs(count - 2000)).toBeLessThan(200);
  expect(Math.abs(moved - 20_000 / 11)).toBeLessThan(200);
});

test('a batch writes what a value was when it was added, and refuses what cannot be copied', async () => {
  const objects = new FakeNamespace();
  const db = connect<Key, unknown>(objects.get('one'));
  const note = { title: 'Silt', tags: ['a'] };
  const key = ['note', 1];
  const batch = db.batch().set(key, note);
  note.title = 'Sand';
  note.tags.push('b');
  key[1] = 2;
  expect(() => batch.set('callback', () => note)).toThrow(expect.objectContaining({ code: 'VARVE_INVALID_VALUE' }));
  await batch.commit();
  expect(await listed(db.entries())).toEqual([[['note', 1], { title: 'Silt', tags: ['a'] }]]);
  await objects.close();
});
