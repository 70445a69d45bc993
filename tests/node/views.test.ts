/**
 * Views of a part of a store: random operations on a store and on views of it, compared with a model, and one behaviour at a time.
 * The model knows only keys of the store: a view's key is the elements of the prefix and then its own.
 */

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, expectTypeOf, test, vi } from 'vitest';
import { bytes, json, utf8 } from '../../js/src/index.ts';
import { nextTurn } from '../../js/src/runtime/turn.ts';
import type { Batch } from '../../js/src/store/batch.ts';
import { openStore } from '../../js/src/store/open.ts';
import type { OpenOptions } from '../../js/src/store/open-options.ts';
import type { Store } from '../../js/src/store/store.ts';
import type { Transaction } from '../../js/src/store/transaction.ts';
import type { View } from '../../js/src/store/view.ts';
import { open as openSync, type SyncStore, type SyncTransaction, type SyncView } from '../../js/src/synchronous.ts';
import type { Key, KeyRange, Receipt, ScanOptions } from '../../js/src/types.ts';
import { spawnServer, wasm } from './support/engine.ts';
import { compareKeys } from './support/key-order.ts';
import { Random } from './support/random.ts';
import { closedAfterTest } from './support/stores.ts';

setFlagsFromString('--expose-gc');
const collectGarbage: () => void = runInNewContext('gc');

async function opened<K = Key, V = unknown>(options: OpenOptions<K, V> = {}): Promise<Store<K, V>> {
  return closedAfterTest(
    await openStore<K, V>('test', { wasm, storage: 'memory', memoryBytes: 2 ** 20, ...options }, spawnServer),
  );
}

async function openedSync(): Promise<SyncStore<Key, unknown>> {
  return closedAfterTest(await openSync('test', { wasm, storage: 'memory', memoryBytes: 2 ** 20 }));
}

const ELEMENTS: readonly Key[] = ['', 'a', 'a\0', 'ab', 'b', '\u{d7ff}', '\u{10ffff}', -1, 0, 2, true, 3n, []];
const BYTES = [Uint8Array.of(), Uint8Array.of(0), Uint8Array.of(255), Uint8Array.of(255, 255)];
/** The prefixes of the views. A view of a view has all of them in one. */
const PREFIXES: readonly (readonly Key[])[] = [
  [],
  ['a'],
  ['a', 'b'],
  ['a', -1],
  [[]],
  [Uint8Array.of(255)],
  ['a\0', []],
];

type Entries = [Key, unknown][];

/** The key in the store. */
function stored(prefix: readonly Key[], key: Key): Key {
  if (prefix.length === 0) return key;
  return [...prefix, ...(Array.isArray(key) ? key : [key])];
}

/** The key in the view, of a key in the store. */
function own(prefix: readonly Key[], key: Key): Key {
  if (prefix.length === 0) return key;
  const rest = (key as Key[]).slice(prefix.length);
  return rest.length === 1 && !Array.isArray(rest[0]) ? (rest[0] as Key) : rest;
}

function startsWith(key: Key, prefix: readonly Key[]): boolean {
  return Array.isArray(key) && key.length >= prefix.length && prefix.every((one, i) => compareKeys(one, key[i]) === 0);
}

function isText(text: Key | undefined, prefix: string | Uint8Array): boolean {
  if (typeof prefix === 'string') return typeof text === 'string' && text.startsWith(prefix);
  return text instanceof Uint8Array && prefix.every((byte, i) => text[i] === byte);
}

/** Whether a key of the store is in a range of a view. */
function isIn(key: Key, at: readonly Key[], { gt, gte, lt, lte, prefix }: KeyRange): boolean {
  if (at.length > 0 && !startsWith(key, at)) return false;
  const order = (bound: Key): number => compareKeys(key, stored(at, bound));
  if (gt !== undefined && order(gt) <= 0) return false;
  if (gte !== undefined && order(gte) < 0) return false;
  if (lt !== undefined && order(lt) >= 0) return false;
  if (lte !== undefined && order(lte) > 0) return false;
  if (prefix === undefined) return true;
  if (Array.isArray(prefix)) return startsWith(key, [...at, ...prefix]);
  return isText(at.length === 0 ? key : (key as Key[])[at.length], prefix as string | Uint8Array);
}

/** An ordered map of keys of the store. */
class Model {
  #entries: Entries = [];

  get(key: Key): unknown {
    return this.#entries.find(([one]) => compareKeys(one, key) === 0)?.[1];
  }

  set(key: Key, value: unknown): void {
    this.delete(key);
    this.#entries.push([key, value]);
    this.#entries.sort(([a], [b]) => compareKeys(a, b));
  }

  delete(key: Key): void {
    this.#entries = this.#entries.filter(([one]) => compareKeys(one, key) !== 0);
  }

  deleteRange(at: readonly Key[], range: KeyRange): void {
    this.#entries = this.#entries.filter(([key]) => !isIn(key, at, range));
  }

  scan(at: readonly Key[], { reverse, limit, ...range }: ScanOptions): Entries {
    const entries = this.#entries.filter(([key]) => isIn(key, at, range));
    if (reverse) entries.reverse();
    return entries.slice(0, limit).map(([key, value]) => [own(at, key), value]);
  }

  copy(): Model {
    const copy = new Model();
    copy.#entries = [...this.#entries];
    return copy;
  }
}

class Draw extends Random {
  override key(): Key {
    const element = (): Key => this.pick(this.below(4) === 0 ? BYTES : ELEMENTS);
    return this.below(2) === 0 ? element() : Array.from({ length: this.below(4) }, element);
  }

  range(): KeyRange {
    const range: KeyRange = {};
    if (this.below(3) === 0) range[this.pick(['gt', 'gte'] as const)] = this.key();
    if (this.below(3) === 0) range[this.pick(['lt', 'lte'] as const)] = this.key();
    const prefixes = ['a', '', '\u{d7ff}', '\u{10ffff}', ['a'], [], ['a', 'b'], Uint8Array.of(255), Uint8Array.of()];
    if (this.below(3) === 0) range.prefix = this.pick(prefixes);
    return range;
  }

  scan(): ScanOptions {
    return { ...this.range(), reverse: this.below(2) === 0, limit: this.pick([undefined, undefined, 0, 1, 3]) };
  }
}

/** The reads of a store, a view, a snapshot or a transaction. */
type Readable = Pick<View<Key, unknown>, 'get' | 'has' | 'getMany' | 'count' | 'keys' | 'values' | 'entries'>;

/** All items: at once if the iterator is synchronous. */
function all<T>(items: AsyncIterable<T> | Iterable<T>): Promise<T[]> | T[] {
  if (Symbol.iterator in items) return [...items];
  return (async () => {
    const list: T[] = [];
    for await (const item of items) list.push(item);
    return list;
  })();
}

/** Some reads, each with the result that the model has. */
function* looks(view: Readable, at: readonly Key[], model: Model, random: Draw): Generator<[unknown, unknown]> {
  const keys = [random.key(), random.key()];
  const values = keys.map((key) => model.get(stored(at, key)));
  yield [view.getMany(keys), values];
  yield [view.get(keys[0] as Key), values[0]];
  yield [view.has(keys[1] as Key), values[1] !== undefined];
  const scan = random.scan();
  const entries = model.scan(at, scan);
  yield [all(view.entries(scan)), entries];
  yield [all(view.keys(scan)), entries.map(([key]) => key)];
  yield [all(view.values(scan)), entries.map(([, value]) => value)];
  const range = random.range();
  yield [view.count(range), model.scan(at, range).length];
}

async function compare(...arguments_: Parameters<typeof looks>): Promise<void> {
  for (const [result, expected] of looks(...arguments_)) expect(await result).toEqual(expected);
}

type Db = View<Key, unknown>;
type Whole = { readonly db: Db; readonly isSync: boolean };
const KINDS: readonly (readonly [string, () => Promise<Whole>])[] = [
  ['asynchronous', async () => ({ db: await opened(), isSync: false })],
  ['synchronous', async () => ({ db: (await openedSync()) as unknown as Db, isSync: true })],
  ['asynchronous, without a cache', async () => ({ db: await opened({ cache: false }), isSync: false })],
];

/** A view of a store, made in one step or in two. */
function viewOf(db: Db, at: readonly Key[], random: Draw): Db {
  const cut = random.below(at.length + 1);
  return db.at(at.slice(0, cut)).at(at.slice(cut));
}

type Tx = Transaction<Key, unknown>;

interface Writing {
  readonly at: readonly Key[];
  readonly other: readonly Key[];
  readonly view: Db;
  readonly key: Key;
  readonly model: Model;
  readonly random: Draw;
}

/** Writes through two views of a transaction, and the reads in between, each with its result in the model. */
function* inTransaction(tx: Tx, { at, other, view, key, model, random }: Writing): Generator<[unknown, unknown]> {
  const [first, second] = [tx.at(view), tx.at(other)];
  first.set(key, 'in a transaction');
  model.set(stored(at, key), 'in a transaction');
  yield* looks(second, other, model, random);
  const from = { gte: random.key() };
  second.deleteRange(from);
  model.deleteRange(other, from);
  yield* looks(first, at, model, random);
  if (random.below(4) === 0) {
    second.clear();
    model.deleteRange(other, {});
  }
  yield [second.update(key, () => 'updated'), undefined];
  model.set(stored(other, key), 'updated');
  yield* looks(tx, [], model, random);
}

/** A write through a view, sometimes together with writes through another one. */
async function write({ db, isSync }: Whole, model: Model, random: Draw, step: number): Promise<void> {
  const [at, other] = [random.pick(PREFIXES), random.pick(PREFIXES)];
  const [view, key, range] = [viewOf(db, at, random), random.key(), random.range()];
  switch (random.below(9)) {
    case 0:
      await view.delete(key);
      return model.delete(stored(at, key));
    case 1:
      if (Object.keys(range).length > 0) await view.deleteRange(range);
      else if (random.below(3) > 0) return;
      else await view.clear();
      return model.deleteRange(at, range);
    case 2:
      await view.update(key, (old) => [old ?? null, step]);
      return model.set(stored(at, key), [model.get(stored(at, key)) ?? null, step]);
    case 3: {
      const [late, gone] = [random.key(), random.key()];
      const batch = view.batch().set(key, step);
      batch
        .at(viewOf(db, other, random))
        .set(late, step)
        .delete(gone);
      await batch.at(['a']).set(key, 'within').commit();
      model.set(stored(at, key), step);
      model.set(stored(other, late), step);
      model.delete(stored(other, gone));
      return model.set(stored([...at, 'a'], key), 'within');
    }
    case 4: {
      const steps = (tx: Tx) => inTransaction(tx, { at, other, view, key, model, random });
      // A synchronous transaction cannot wait.
      const run = isSync
        ? (tx: Tx): void => void [...steps(tx)].map(([result, expected]) => expect(result).toEqual(expected))
        : async (tx: Tx): Promise<void> => {
            for (const [result, expected] of steps(tx)) expect(await result).toEqual(expected);
          };
      return db.transaction(run);
    }
    default:
      await view.set(key, step);
      return model.set(stored(at, key), step);
  }
}

describe.each(KINDS)('a store that is %s', (_, make) => {
  test.each([1, 2])('and its views agree with a model, seed %d', async (seed) => {
    const random = new Draw(seed);
    const whole = await make();
    const { db, isSync } = whole;
    const model = new Model();
    const copies = isSync ? [] : PREFIXES.map((at) => follow(db.at(at), at));
    let before = { model: model.copy(), at: [] as readonly Key[], snapshot: db.snapshot() };
    for (let step = 0; step < 120; step++) {
      await write(whole, model, random, step);
      const [at, other] = [random.pick(PREFIXES), random.pick(PREFIXES)];
      await compare(viewOf(db, at, random), at, model, random);
      await compare(before.snapshot, before.at, before.model, random);
      await compare(before.snapshot.at(db.at(other)), other, before.model, random);
      if (step % 20 !== 0) continue;
      await before.snapshot.close();
      before = { model: model.copy(), at, snapshot: await viewOf(db, at, random).snapshot() };
    }
    await before.snapshot.close();
    for (const [i, copy] of copies.entries()) {
      const at = PREFIXES[i] as readonly Key[];
      expect(await copy(), `changes of ${JSON.stringify(at)}`).toEqual(model.scan(at, {}));
    }
  });
});

/** Keeps a copy of a view up to date by its changes. The result reads all changes so far, and returns the entries. */
function follow(view: Db, at: readonly Key[]): () => Promise<Entries> {
  const changes = view.changes();
  const copy = new Model();
  return async () => {
    const { sequence } = await view.set('marker', 1);
    for await (const change of changes) {
      expect(change.type).not.toBe('gap');
      if (change.sequence === sequence) break;
      if (change.type === 'set') copy.set(stored(at, change.key), change.value);
      if (change.type === 'delete') copy.delete(stored(at, change.key));
      if (change.type === 'deleteRange') copy.deleteRange(at, change.range);
    }
    await view.delete('marker');
    return copy.scan(at, {});
  };
}

describe('a view', () => {
  const code = (code: string) => expect.objectContaining({ code });

  test('has codecs of its own; without them its keys are Varve keys, and its values are as outside', async () => {
    const db = await opened({ values: json });
    const upper = { name: 'upper', encode: (key: string) => [key.toUpperCase(), 1], decode: (key: Key) => `${key}` };
    const notes = db.at<string, string>(['note'], { keys: upper, values: utf8 });
    await notes.set('a', 'text');
    expect(await db.at(['note', 'A'], { values: bytes }).keys().next()).toEqual({ done: false, value: 1 });
    expect(await all(notes.entries({ gte: 'a' }))).toEqual([['A,1', 'text']]);
    expect(await db.at([], { values: utf8 }).get(['note', 'A', 1])).toBe('text');
    await expect(db.get(['note', 'A', 1])).rejects.toEqual(code('VARVE_INVALID_VALUE'));
    await notes.at(['b']).set([2], 'of the same codec');
    expect(await notes.at([]).get(['b', 2])).toBe('of the same codec');
  });

  test('has the live queries and changes of its keys', async () => {
    const db = await opened();
    const notes = db.at(['note']);
    const live = notes.live({ prefix: ['a'] });
    const values: unknown[] = [];
    const stop = live.subscribe((value) => values.push(value));
    const watched = notes.watch('a');
    await db.batch().set(['note', 'a', 2], 'two').set(['note', 'a'], 'one').set(['note', 'b'], 'three').commit();
    await vi.waitUntil(() => (values.at(-1) as unknown[] | undefined)?.length === 2);
    stop();
    expect(values.at(-1)).toEqual([
      ['a', 'one'],
      [['a', 2], 'two'],
    ]);
    expect((await watched.next()).value).toMatchObject({ type: 'set', key: 'a', value: 'one' });
    await db.clear();
    expect((await watched.next()).value).toMatchObject({ type: 'deleteRange', range: {} });
    const sum = notes.live(async (view) => (await view.at(db).count()) + (await view.count()), { initial: 0 });
    await notes.set('a', 1);
    const first = await new Promise((found) => sum.subscribe((count) => count > 0 && found(count)));
    expect(first).toBe(2);
  });

  test('is answered by the cache of its store', async () => {
    const db = await opened();
    const notes = db.at(['note']);
    await notes.set('a', 1);
    await vi.waitUntil(async () => {
      await notes.get('a');
      return notes.peek('a') === 1;
    });
    expect(db.peek(['note', 'a'])).toBe(1);
    await db.set(['note', 'a'], 2);
    expect(await notes.get('a')).toBe(2);
  });

  test('names its own keys in conflicts', async () => {
    const db = await opened();
    const notes = db.at(['note']);
    await notes.set('a', 1);
    const named = {
      code: 'VARVE_CONFLICT',
      message: expect.stringContaining('"a" has sequence'),
      conflict: { key: 'a' },
    };
    await expect(notes.set('a', 2, { ifSequence: null })).rejects.toMatchObject(named);
    const batch = notes.batch();
    batch.at(db).set('outside', 1, { ifSequence: 1 });
    await expect(batch.commit()).rejects.toMatchObject({ conflict: { key: undefined, sequence: null } });
    const stale = notes.transaction(
      async (tx) => {
        await tx.at(db).get(['note', 'a']);
        await notes.set('a', 3);
        tx.set('b', 1);
      },
      { retries: 0 },
    );
    await expect(stale).rejects.toMatchObject(named);
  });

  test('runs updates of a key in turn with those of other views', async () => {
    const db = await opened();
    const add = (old: unknown): number => ((old as number | undefined) ?? 0) + 1;
    await db.at(['note']).set('a', 0);
    const both = [db.at(['note']), db].flatMap((view, i) => Array(20).fill([view, i === 0 ? 'a' : ['note', 'a']]));
    await Promise.all(both.map(([view, key]) => view.update(key, add)));
    expect(await db.at(['note']).get('a')).toBe(40);
  });

  test('keeps a snapshot open as long as the views of it', async () => {
    const db = await opened();
    await db.set(['a', 1], 'before');
    const view = db.snapshot().at(['a']);
    await db.set(['a', 1], 'after');
    for (let i = 0; i < 5; i++) {
      collectGarbage();
      await nextTurn();
    }
    expect(await view.get(1)).toBe('before');
    expect((await db.stats()).snapshots).toBe(1);
  });

  test('refuses what is not a part of its store', async () => {
    const db = await opened();
    const other = await opened();
    const refused = code('VARVE_INVALID_ARGUMENT');
    for (const place of ['note', 5, null, undefined, {}, other, other.at(['a'])]) {
      expect(() => db.at(place as never)).toThrow(refused);
      expect(() => db.batch().at(place as never)).toThrow(refused);
      await expect(db.transaction((tx) => tx.at(place as never))).rejects.toEqual(refused);
    }
    expect(() => db.at(['a', Number.NaN])).toThrow(code('VARVE_INVALID_KEY'));
    expect(() => db.at(['a', null as never])).toThrow(code('VARVE_INVALID_KEY'));
    expect(() => db.at(['a'], { value: json } as never)).toThrow(refused);
    expect(() => db.at(['a'], { values: {} as never })).toThrow(refused);
    expect(() => db.at(db.at(['a']), { values: json })).toThrow(refused);
    await expect(db.at(['a']).deleteRange({})).rejects.toEqual(refused);
    await expect(db.at(['a']).set(Number.NaN, 1)).rejects.toEqual(code('VARVE_INVALID_KEY'));
    await db.close();
    await expect(db.at(['a']).get(1)).rejects.toEqual(code('VARVE_CLOSED'));
  });

  test('of a synchronous store has codecs, names its keys in conflicts, and keeps a snapshot open', async () => {
    const db = await openedSync();
    const notes = db.at<string, string>(['note'], { values: utf8 });
    notes.set('a', 'text');
    expect(() => db.get(['note', 'a'])).not.toThrow();
    expect(db.at(['note'], { values: bytes }).has('a')).toBe(true);
    expect(() => db.at(['note'], { values: bytes }).get('a')).toThrow(code('VARVE_INVALID_VALUE'));
    const named = expect.objectContaining({ code: 'VARVE_CONFLICT', conflict: expect.objectContaining({ key: 'a' }) });
    expect(() => notes.set('a', 'again', { ifSequence: null })).toThrow(named);
    const run = (tx: SyncTransaction<string, string>) => {
      tx.get('a');
      notes.set('a', 'meanwhile');
      tx.set('b', 'late');
    };
    expect(() => notes.transaction(run, { retries: 0 })).toThrow(named);
    expect(() => db.at('note' as never)).toThrow(code('VARVE_INVALID_ARGUMENT'));
    const view = db.snapshot().at(notes);
    notes.clear();
    for (let i = 0; i < 5; i++) {
      collectGarbage();
      await nextTurn();
    }
    expect(view.get('a')).toBe('meanwhile');
    expect(view.getEntry('a')?.value).toBe('meanwhile');
    expect([...notes]).toEqual([]);
    expectTypeOf(notes).toEqualTypeOf<SyncView<string, string>>();
    expectTypeOf(notes.batch().at(db).at(notes)).toEqualTypeOf<Batch<string, string, Receipt>>();
  });

  test('is typed by its codecs, or by type arguments', () => {
    const typed = (db: Store<Key, unknown>) => {
      const plain = db.at(['a']);
      const given = db.at<string, number>(['a']);
      const coded = db.at(['a'], { values: utf8 });
      return { plain, given, coded, inner: given.at(['b']), batch: db.batch().at(given), read: db.at(given) };
    };
    type Typed = ReturnType<typeof typed>;
    expectTypeOf<Typed['plain']>().toEqualTypeOf<View<Key, unknown>>();
    expectTypeOf<Typed['given']>().toEqualTypeOf<View<string, number>>();
    expectTypeOf<Typed['coded']>().toEqualTypeOf<View<Key, string>>();
    expectTypeOf<Typed['inner']>().toEqualTypeOf<View<Key, number>>();
    expectTypeOf<Typed['batch']>().toEqualTypeOf<Batch<string, number>>();
    expectTypeOf<Typed['read']>().toEqualTypeOf<View<string, number>>();
    const inTransaction = (db: Store<Key, unknown>, users: View<string, number>) =>
      db.transaction((tx) => tx.at(users).get('ada'));
    expectTypeOf<ReturnType<typeof inTransaction>>().toEqualTypeOf<Promise<number | undefined>>();
  });
});
