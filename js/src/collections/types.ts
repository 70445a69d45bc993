/**
 * The types of the definition and the methods of a collection.
 *
 * Invariant: the names of indexes and the types of their values come from the definition alone; nothing is repeated by hand.
 */

import type { Snapshot } from '../store/snapshot.ts';
import type { Transaction } from '../store/transaction.ts';
import type { View } from '../store/view.ts';
import type { Key, Progress, ScanOptions, WaitOptions, WriteOptions } from '../types.ts';

/**
 * The store of a collection, or a view of a store: it takes any keys and any values. (`set` is repeated here as a property because the
 * compiler compares the parameters of properties, but not those of methods. It would otherwise accept a store of strings and numbers.)
 */
export type DocumentStore = View<Key, unknown> & { readonly set: (key: Key, value: unknown) => unknown };

/** The value of a document in an index: a key, or null or undefined if the index should not contain the document. */
export type IndexValue = Key | null | undefined;

// `as` finds the properties of a type that has an index signature, too: its `keyof` is all strings.

/** Names of the properties whose values can be keys. */
export type KeyProperty<T> = keyof { [P in keyof T as T[P] extends IndexValue ? P : never]: P } & string;

/** Names of the properties that contain several keys. */
export type ListProperty<T> = keyof {
  [P in keyof T as T[P] extends Iterable<IndexValue> | null | undefined ? P : never]: P;
} &
  string;

/** An index with one value for each document. */
export interface SingleIndex<T> {
  /**
   * A property, several properties or a function of the document. The values of several properties form one array; a document without one
   * of them is not indexed. A function must return the same value for an equal document. Raise `version` when you change the function.
   */
  readonly of: KeyProperty<T> | readonly KeyProperty<T>[] | ((document: T) => IndexValue);
  readonly multi?: false | undefined;
  /** Whether no two documents may have the same value. Default false. */
  readonly unique?: boolean | undefined;
}

/** An index with any number of values for each document. A value that occurs twice counts once. */
export interface MultiIndex<T> {
  /** A property that contains an array or a Set of keys, or a function that returns one. */
  readonly of: ListProperty<T> | ((document: T) => Iterable<IndexValue> | null | undefined);
  readonly multi: true;
  /** Whether no two documents may share a value. Default false. */
  readonly unique?: boolean | undefined;
}

/** An index: a property, several properties, a function, or one of these with options. */
export type Index<T> = SingleIndex<T>['of'] | SingleIndex<T> | MultiIndex<T>;

/** Indexes by name. */
export type Indexes<T> = Readonly<Record<string, Index<T>>>;

/** The definition that `collection` takes. */
export interface Definition<T, P, I, G> {
  /** The property that contains a document's key, or a function of the document. The key of a document never changes. */
  readonly key: P;
  /** Makes the key of a document that is inserted or put without one: `uuid7`, or your own function. Only if `key` is a property. */
  readonly newKey?: G | undefined;
  /** Indexes by name. */
  readonly indexes?: I | undefined;
  /**
   * An integer from 1, default 1. Raise it when a function of an index computes a different value: such indexes are then built anew.
   * (Other changes of `indexes` are detected without this.) Code with a lower version than the collection is refused with `VARVE_VERSION`.
   */
  readonly version?: number | undefined;
  /** Never set. It carries the type of the documents. */
  readonly document?: T;
}

/** The type of a document's key. */
export type KeyOf<T, P> = P extends keyof T
  ? Extract<NonNullable<T[P]>, Key>
  : P extends (document: never) => infer K
    ? Extract<K, Key>
    : never;

/** The type of an index's values. */
export type ValueOf<T, X> = X extends { readonly of: infer O; readonly multi: true }
  ? ElementOf<O extends keyof T ? NonNullable<T[O]> : O extends (document: never) => infer R ? NonNullable<R> : never>
  : X extends { readonly of: infer O }
    ? SingleOf<T, O>
    : SingleOf<T, X>;

/** The types of the index values, by name; empty for a definition without indexes. */
export type ValuesOf<T, I> = string extends keyof I
  ? Record<never, never>
  : { readonly [N in keyof I]: ValueOf<T, I[N]> };

type SingleOf<T, X> = X extends keyof T
  ? NonNullable<T[X]>
  : X extends (document: never) => infer R
    ? NonNullable<R>
    : X extends readonly (keyof T)[]
      ? { readonly [N in keyof X]: NonNullable<T[X[N] & keyof T]> }
      : never;

type ElementOf<L> = L extends Iterable<infer E> ? NonNullable<E> : never;

/** The type of a prefix of a value: the beginning of a string or of bytes, or the first elements of an array. */
export type PrefixOf<V> = V extends string
  ? string
  : V extends Uint8Array
    ? Uint8Array
    : V extends readonly Key[]
      ? FirstOf<V>
      : never;

type FirstOf<V extends readonly unknown[]> = number extends V['length']
  ? V
  : V extends readonly [...infer Init, unknown]
    ? V | FirstOf<Init>
    : V;

/** A bound: a value, or the first elements of an array. */
type BoundOf<V> = V extends readonly Key[] ? FirstOf<V> : V;

/** Which documents to find, in which order, and how many. At most one of `gt`/`gte` and one of `lt`/`lte`; `prefix` narrows the range. */
export interface Where<V> extends Pick<ScanOptions, 'limit' | 'signal'> {
  /** Exactly this value, without other bounds. */
  readonly eq?: V | undefined;
  readonly gt?: BoundOf<V> | undefined;
  readonly gte?: BoundOf<V> | undefined;
  readonly lt?: BoundOf<V> | undefined;
  readonly lte?: BoundOf<V> | undefined;
  /** Only strings or bytes that begin with this, or arrays whose first elements are these. */
  readonly prefix?: PrefixOf<V> | undefined;
  /** Highest value first. Default false: ordered by value and, if values are equal, by key. */
  readonly reverse?: boolean | undefined;
}

/** Which documents to find, and after which document. */
export interface WhereAfter<V, T> extends Where<V> {
  /**
   * Only what comes after this document in the order of the query: the last document of the page before. Documents with equal values
   * are in the order of their keys, so no document comes twice, and none is left out. The document need not be stored any more: only
   * its key and its value in the index are used. Undefined: from the start.
   */
  readonly after?: Partial<T> | undefined;
}

/** A document that may come without its key, if the definition has `newKey`. */
export type NewDocument<T, P, G> = G extends () => Key ? WithoutKey<T, P> : T;

/** For each member of a union: `Omit` of the whole union has only the properties that all members have. */
type WithoutKey<T, P> = T extends unknown ? (P extends keyof T ? Omit<T, P> & Partial<Pick<T, P>> : T) : never;

/** The result of a query. Nothing is read until you iterate it, and each iteration reads at the read point at which it begins. */
export interface Found<T> extends AsyncIterable<T> {
  [Symbol.asyncIterator](): AsyncGenerator<T, void, undefined>;
  /** All results as an array. */
  toArray(): Promise<T[]>;
}

/** Reads of a collection. `T` is the type of a document, `K` of its key, and `X` of the index values by name. */
export interface CollectionReads<T, K, X> {
  /** The document with this key, or undefined if there is none. */
  get(key: K, options?: WaitOptions): Promise<T | undefined>;
  /** The documents with these keys, in the order of the keys; undefined where there is none. */
  getMany(keys: Iterable<K>, options?: WaitOptions): Promise<(T | undefined)[]>;
  /** Whether a document with this key exists. */
  has(key: K, options?: WaitOptions): Promise<boolean>;
  /**
   * Finds documents by their keys or by an index: those with one value, or with values in a range. If the index has several values for a
   * document, the document comes once, at the first of its values in the range.
   *
   * @example
   * for await (const note of notes.find('edited', { gte: monday, reverse: true, limit: 20 })) show(note);
   * const lakes = await notes.find('tags', 'lake').toArray();
   * const all = await notes.find().toArray();
   * const page = await notes.find('edited', { after: last, limit: 20 }).toArray();
   */
  find(where?: WhereAfter<K, T>): Found<T>;
  find<N extends keyof X & string>(index: N, where?: X[N] | WhereAfter<X[N], T>): Found<T>;
  /** The first document that `find` would return. */
  first(where?: WhereAfter<K, T>): Promise<T | undefined>;
  first<N extends keyof X & string>(index: N, where?: X[N] | WhereAfter<X[N], T>): Promise<T | undefined>;
  /** The keys of the documents that `find` would return. Documents are not read. */
  keys(where?: WhereAfter<K, T>): Found<K>;
  keys<N extends keyof X & string>(index: N, where?: X[N] | WhereAfter<X[N], T>): Found<K>;
  /** How many documents `find` would return without a limit. */
  count(where?: WhereAfter<K, T>): Promise<number>;
  count<N extends keyof X & string>(index: N, where?: X[N] | WhereAfter<X[N], T>): Promise<number>;
  /**
   * The values of an index that documents have, each once, in order. `limit` is how many values. Most entries are not read: a read of a
   * few entries jumps to the next value.
   *
   * @example
   * const folders = await notes.distinct('folder').toArray();
   */
  distinct<N extends keyof X & string>(index: N, where?: Where<X[N]>): Found<X[N]>;
  /**
   * The values that `distinct` would return, each with the number of its documents, which is counted in the engine.
   *
   * @example
   * for await (const [tag, count] of notes.countBy('tags')) show(tag, count);
   */
  countBy<N extends keyof X & string>(index: N, where?: Where<X[N]>): Found<[value: X[N], count: number]>;
}

/**
 * Writes of a collection. `N` is the type of a document that may have no key yet. A document and its entries in all indexes are written
 * together. Each method rejects with `VARVE_VERSION` if another tab has changed the indexes (reload to get its code), and with
 * `VARVE_INVALID_KEY` if the value of a document in an index is not a key. It also rejects with the errors of the store's `set`.
 */
export interface CollectionWrites<T, K, N, O> {
  /**
   * Adds a document; resolves with its key. Rejects with `VARVE_CONFLICT` if there is a document with this key, or with the same value
   * in a unique index: `conflict.key` is `[name, 'doc', key]` or `[name, 'by', index, value]`.
   */
  insert(document: N, options?: O): Promise<K>;
  /** Adds all documents or none; resolves with their keys. */
  insertMany(documents: Iterable<N>, options?: O): Promise<K[]>;
  /**
   * Adds a document, or replaces the document with the same key; resolves with the key. Rejects with `VARVE_CONFLICT` over a unique index,
   * as `insert` does.
   */
  put(document: N, options?: O): Promise<K>;
  /**
   * Replaces properties of a document, or replaces the document with the result of a function. Resolves with the document after the update,
   * or undefined if there is none. If somebody writes the document meanwhile, it is read and changed again. If the function returns
   * undefined, the document stays as it is.
   *
   * @example
   * await notes.update(id, { title: 'Silt' });
   * await notes.update(id, (note) => ({ ...note, views: note.views + 1 }));
   */
  update(key: K, change: DocumentChange<T>, options?: O): Promise<T | undefined>;
  /** Deletes a document; resolves with whether it existed. */
  delete(key: K, options?: O): Promise<boolean>;
  /** Deletes all documents, at the cost of one write. */
  clear(options?: O): Promise<void>;
}

/** Properties to replace, or a function of the document. */
export type DocumentChange<T> = Partial<T> | ((document: T) => T | undefined | PromiseLike<T | undefined>);

/** Options of `ready`, `reindex` and `check`. */
export interface ReadyOptions {
  /**
   * Called after each page of documents while indexes are built, with the documents that are read. The total is their number at the start.
   * `check` also calls it after each page that it compares.
   */
  readonly onProgress?: ((progress: Progress) => void) | undefined;
  /**
   * Ends the wait with the signal's `reason`. The work itself stops after its current page, unless somebody else waits for it. The next use
   * continues it.
   */
  readonly signal?: AbortSignal | undefined;
}

/** A difference between a document and the entries of an index. */
export interface Difference<K> {
  /**
   * `missing`: a document has no entry for one of its values. `stray`: an entry belongs to no document, or to a document that does not have
   * this value. `conflict`: a document has a value in a unique index that `other` also has. `refused`: the value of a document in an index
   * is not a key, see `error`. A minor version may add a kind.
   */
  readonly kind: 'missing' | 'stray' | 'conflict' | 'refused';
  /** The name of the index. */
  readonly index?: string | undefined;
  /** The value in the index. */
  readonly value?: Key | undefined;
  /** The key of the document. For an entry that a collection did not write, any value in the place of the key, which may not be a key. */
  readonly key: K;
  readonly other?: K | undefined;
  readonly error?: unknown;
}

/** The result of `check` of a collection. A minor version may add fields. */
export interface CollectionReport<K> {
  /** True if there are no differences. */
  readonly ok: boolean;
  readonly documents: number;
  /** Entries of all indexes; 0 if the indexes could not be built because of conflicts or refused documents. */
  readonly entries: number;
  /** How many differences there are. */
  readonly found: number;
  /** The first 1,000 of them. */
  readonly differences: readonly Difference<K>[];
}

/** A collection inside a transaction. */
export type CollectionInTransaction<T, K, X, N = T> = CollectionReads<T, K, X> & CollectionWrites<T, K, N, undefined>;

/** Documents with indexes in a store. */
export interface Collection<T, K, X, N = T> extends CollectionReads<T, K, X>, CollectionWrites<T, K, N, WriteOptions> {
  readonly name: string;
  /**
   * Resolves when the indexes match the definition. Every other method waits for that by itself. Rejects with `VARVE_VERSION` if newer
   * code has defined them, and with `VARVE_CONFLICT` if documents have the same value in an index that is now unique.
   *
   * @example
   * await notes.ready({ onProgress: ({ done, total }) => show(done / total) });
   */
  ready(options?: ReadyOptions): Promise<void>;
  /**
   * Builds all indexes anew from the documents. You can call it while the collection is in use: other calls and other tabs wait for it.
   * After an import or an upgrade of documents this happens by itself. Rejects with the same errors as `ready`.
   *
   * @example
   * await notes.reindex({ onProgress: ({ done, total }) => show(done / total), signal });
   */
  reindex(options?: ReadyOptions): Promise<void>;
  /**
   * Compares documents with index entries, at one read point, and reports the differences. It lists documents that cannot be indexed:
   * two with the same value in a unique index, which can happen after an import or an upgrade, or one whose value in an index is
   * not a key.
   *
   * @example
   * const { ok, differences } = await notes.check();
   */
  check(options?: ReadyOptions): Promise<CollectionReport<K>>;
  /**
   * The same methods inside a transaction of the store, together with its other reads and writes. With a snapshot: the reads, all at
   * the read point of the snapshot.
   *
   * @example
   * await db.transaction(async (tx) => {
   *   const id = await notes.in(tx).insert(note);
   *   await folders.in(tx).update(note.folder, (folder) => ({ ...folder, notes: [...folder.notes, id] }));
   * });
   */
  in(tx: Transaction<Key, unknown>): CollectionInTransaction<T, K, X, N>;
  in(snapshot: Snapshot<Key, unknown>): CollectionReads<T, K, X>;
  /**
   * The key under which the store keeps a document.
   *
   * @example
   * for await (const change of db.watch(notes.keyOf(42))) render(change);
   */
  keyOf(key: K): Key;
}
