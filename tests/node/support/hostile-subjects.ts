/** The ways in which keys and values enter a store, each behind the same few calls. */

import type { Live } from '../../../js/src/changes/types.ts';
import { collection } from '../../../js/src/collections.ts';
import { openStore } from '../../../js/src/store/open.ts';
import type { OpenOptions } from '../../../js/src/store/open-options.ts';
import type { Store } from '../../../js/src/store/store.ts';
import { open, type SyncStore } from '../../../js/src/synchronous.ts';
import type { Key } from '../../../js/src/types.ts';
import { spawnServer, tools, wasm } from './engine.ts';
import { collect } from './stores.ts';

/** One way to write, read and delete under a key. Rejected promises and thrown errors count alike. */
export interface Way {
  set(key: Key, value: unknown): unknown;
  /** The key is made anew for each use. */
  get(key: () => Key): unknown;
  delete(key: () => Key): unknown;
}

/** A store, and all ways into it. */
export interface Subject {
  readonly db: Store<Key, unknown> | SyncStore<Key, unknown>;
  readonly ways: Readonly<Record<string, Way>>;
  /** Keys are parts of documents, and so they are values; `set` reports which key it was. */
  readonly isOfDocuments?: boolean;
}

/** Options of the stores. */
export const OPTIONS = { wasm, storage: 'memory', memoryBytes: 2 ** 20 } as const;

/** Everything in a store, read by a scan. */
export function contents(db: Subject['db']): Promise<[Key, unknown][]> {
  return collect<[Key, unknown]>(db.entries());
}

/** The problems that `check()` finds. */
export async function problems(db: Subject['db']): Promise<readonly unknown[]> {
  return (await db.check({ tools })).problems;
}

/** Whether a key is in the only place of a scan. */
async function only(items: AsyncIterable<unknown> | Iterable<unknown>): Promise<unknown> {
  return (await collect(items))[0];
}

const ranges = (key: () => Key): readonly object[] => [
  { gte: key(), lte: key() },
  { gte: key(), limit: 1 },
  { lte: key(), reverse: true, limit: 1 },
];

/** The common result of some reads; throws where they do not agree. */
function same(values: readonly unknown[]): unknown {
  const [first, ...others] = values;
  for (const other of others)
    if (JSON.stringify(shown(other)) !== JSON.stringify(shown(first))) throw new RangeError('reads differ');
  return first;
}

function shown(value: unknown): unknown {
  return value === undefined ? 'nothing' : typeof value;
}

/** Whether `live` takes it for a key: a function is a query, and a plain object is a range. */
function standsAlone(target: unknown): boolean {
  if (typeof target !== 'object' || target === null) return typeof target !== 'function';
  try {
    return ![null, Object.prototype].includes(Object.getPrototypeOf(target));
  } catch {
    return true;
  }
}

/** The asynchronous store. */
export async function asynchronous(options: Partial<OpenOptions<Key, unknown>> = {}): Promise<Subject> {
  const db = await openStore<Key, unknown>('hostile', { ...OPTIONS, ...options }, spawnServer);
  const of = (
    set: Way['set'],
    get: Way['get'] = (key) => db.get(key()),
    gone: Way['delete'] = (key) => db.delete(key()),
  ): Way => ({
    set,
    get,
    delete: gone,
  });
  return {
    db,
    ways: {
      set: of((key, value) => db.set(key, value)),
      'set beside other operations of the turn': of((key, value) => {
        const others = [db.set('other', 1), db.get('other'), db.delete('other')];
        const set = db.set(key, value);
        return Promise.all([set, db.has('other'), ...others]);
      }),
      'set with a lifetime': of((key, value) => db.set(key, value, { expiresIn: 1e9 })),
      setMany: of(
        (key, value) =>
          db
            .setMany([
              ['other', 1],
              [key, value],
            ])
            .then(() => db.delete('other')),
        async (key) => (await db.getMany(['other', key()]))[1],
        (key) => db.deleteRange({ gte: key(), lte: key() }),
      ),
      batch: of(
        (key, value) => db.batch().set('other', 1).set(key, value, { ifSequence: null }).delete('other').commit(),
        async (key) => (await db.getEntry(key()))?.value,
        (key) => db.batch().delete(key()).commit(),
      ),
      // In an array: the result of the function is awaited, which asks an object whether it is a promise.
      update: of(
        (key, value) => db.update(key, () => [value]),
        async (key) => ((await db.get(key())) as unknown[] | undefined)?.[0],
      ),
      transaction: of(
        (key, value) =>
          db.transaction((tx) => {
            tx.set('other', 1);
            tx.set(key, value);
            tx.delete('other');
          }),
        (key) =>
          db.transaction(async (tx) =>
            same([
              await tx.get(key()),
              (await tx.getMany([key()]))[0],
              (await tx.has(key())) ? await only(tx.values({ gte: key(), lte: key() })) : undefined,
            ]),
          ),
        (key) =>
          db.transaction(async (tx) => {
            await tx.get(key());
            tx.deleteRange({ gte: key(), lte: key() });
          }),
      ),
      'snapshots and scans': of(
        (key, value) => db.set(key, value),
        async (key) => {
          await using view = db.snapshot();
          const scans = await Promise.all(ranges(key).map((range) => only(view.values(range))));
          return same([await view.get(key()), ...((await db.has(key())) ? scans : [])]);
        },
      ),
      'live queries': of(
        (key, value) => db.set(key, value),
        (key) =>
          new Promise((resolve, reject) => {
            const target = key();
            const live = (standsAlone(target) ? db.live(target) : db.live((view) => view.get(target))) as Live<unknown>;
            const stop = live.subscribe((value) => {
              if (value === undefined) return;
              resolve(value);
              queueMicrotask(() => stop());
            }, reject);
          }),
      ),
    },
  };
}

/** The synchronous store. */
export async function synchronous(): Promise<Subject> {
  const db = await open<Key, unknown>('hostile', OPTIONS);
  const of = (
    set: Way['set'],
    get: Way['get'] = (key) => db.get(key()),
    gone: Way['delete'] = (key) => db.delete(key()),
  ): Way => ({
    set,
    get,
    delete: gone,
  });
  return {
    db,
    ways: {
      set: of((key, value) => db.set(key, value)),
      'set with a lifetime': of((key, value) => db.set(key, value, { expiresIn: 1e9, durability: 'strict' })),
      setMany: of(
        (key, value) => db.setMany([[key, value]]),
        (key) => db.getMany([key()])[0],
        (key) => db.deleteRange({ gte: key(), lte: key() }),
      ),
      batch: of(
        (key, value) => db.batch().set('other', 1).set(key, value, { ifSequence: null }).delete('other').commit(),
        (key) => db.getEntry(key())?.value,
        (key) => db.batch().delete(key()).commit(),
      ),
      update: of((key, value) => db.update(key, () => value)),
      transaction: of(
        (key, value) =>
          db.transaction((tx) => {
            tx.set('other', 1);
            tx.set(key, value);
            tx.delete('other');
          }),
        (key) => db.transaction((tx) => tx.get(key())),
        (key) =>
          db.transaction((tx) => {
            tx.get(key());
            tx.delete(key());
          }),
      ),
      'snapshots and scans': of(
        (key, value) => db.set(key, value),
        (key) => {
          using view = db.snapshot();
          const scans = ranges(key).map((range) => [...view.values(range)][0]);
          return same([view.get(key()), ...(db.has(key()) ? scans : [])]);
        },
      ),
    },
  };
}

/** A collection: keys and values are parts of its documents, and of its index. */
export async function collected(): Promise<Subject> {
  const db = await openStore<Key, unknown>('hostile', OPTIONS, spawnServer);
  interface Item {
    readonly id: Key;
    readonly value: unknown;
  }
  const items = collection<Item>()(db, 'items', { key: 'id', indexes: { id: 'id' } });
  const get = async (key: () => Key): Promise<unknown> => (await items.get(key()))?.value;
  const found = async (key: () => Key): Promise<unknown> => (await items.first('id', { eq: key() }))?.value;
  const gone = (key: () => Key): unknown => items.delete(key());
  const set = (how: (item: Item) => unknown) => (id: Key, value: unknown) => how({ id, value });
  return {
    db,
    isOfDocuments: true,
    ways: {
      insert: { set: set((item) => items.insert(item)), get, delete: gone },
      insertMany: { set: set(async (item) => (await items.insertMany([item]))[0]), get: found, delete: gone },
      put: { set: set((item) => items.put(item)), get: found, delete: gone },
      'put in a transaction': {
        set: set((item) => db.transaction((tx) => items.in(tx).put(item))),
        get: (key) => db.transaction(async (tx) => (await items.in(tx).get(key()))?.value),
        delete: (key) => db.transaction((tx) => items.in(tx).delete(key())),
      },
    },
  };
}
