/**
 * What a collection is defined by and what it offers, as types.
 *
 * Invariant: the names of indexes and the types of their values come from the definition alone; nothing is repeated by hand.
 */

import type { Snapshot } from '../store/snapshot.ts';
import type { Store } from '../store/store.ts';
import type { Transaction } from '../store/transaction.ts';
import type { Key, ScanOptions, WaitOptions, WriteOptions } from '../types.ts';

/**
 * The store of a collection: one of any keys and any values. (`set` stands here once more as a property, whose parameters the compiler
 * compares: those of methods it does not, and would take a store of strings and numbers.)
 */
export type DocumentStore = Store<Key, unknown> & { readonly set: (key: Key, value: unknown) => unknown };

/** What an index makes of a document: a key, or null or undefined where the document is not to be found by it. */
export type IndexValue = Key | null | undefined;

/** Names of the properties whose values can be keys. */
export type KeyProperty<T> = { [P in keyof T & string]-?: T[P] extends IndexValue ? P : never }[keyof T & string];

/** Names of the properties that hold several keys. */
export type ListProperty<T> = {
  [P in keyof T & string]-?: T[P] extends Iterable<IndexValue> | null | undefined ? P : never;
}[keyof T & string];

/** An index with one value for each document. */
export interface SingleIndex<T> {
  /**
   * A property; several, whose values are then one array (a document without one of them is not indexed); or a function of the document,
   * which must give the same for an equal document (raise `version` when you change it).
   */
  readonly of: KeyProperty<T> | readonly KeyProperty<T>[] | ((document: T) => IndexValue);
  readonly multi?: false | undefined;
  /** Whether no two documents may have the same value. Default false. */
  readonly unique?: boolean | undefined;
}

/** An index with any number of values for each document; one that comes twice counts once. */
export interface MultiIndex<T> {
  /** A property that holds an array or a Set of keys, or a function that gives such. */
  readonly of: ListProperty<T> | ((document: T) => Iterable<IndexValue> | null | undefined);
  readonly multi: true;
  /** Whether no two documents may have one of the values in common. Default false. */
  readonly unique?: boolean | undefined;
}

/** An index: a property, several, a function, or one of these with options. */
export type Index<T> = SingleIndex<T>['of'] | SingleIndex<T> | MultiIndex<T>;

/** Indexes by name. */
export type Indexes<T> = Readonly<Record<string, Index<T>>>;

/** What `collection` takes. */
export interface Definition<T, P, I, G> {
  /** The property that holds a document's key, or a function of the document. The key of a document never changes. */
  readonly key: P;
  /** Makes the key of a document that is inserted or put without one, where `key` is a property: `uuid7`, or a function of yours. */
  readonly newKey?: G | undefined;
  /** Indexes by name. */
  readonly indexes?: I | undefined;
  /**
   * An integer from 1, default 1. Raise it when a function of an index computes something else: such indexes are then built anew. (Other
   * changes of `indexes` are noticed without.) Code with a lower version than the collection has is refused with `VARVE_VERSION`.
   */
  readonly version?: number | undefined;
  /** Never given: what the documents are. */
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

/** The types of the values of indexes, by name; of a definition without indexes there are none. */
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

/** What a prefix of such a value is: of a string or of bytes its beginning, of an array its first elements. */
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

/** Which documents, in which order, and how many of them. At most one of `gt`/`gte` and one of `lt`/`lte`; `prefix` narrows them further. */
export interface Where<V> extends Pick<ScanOptions, 'limit' | 'signal'> {
  /** Exactly this value, without other bounds. */
  readonly eq?: V | undefined;
  readonly gt?: BoundOf<V> | undefined;
  readonly gte?: BoundOf<V> | undefined;
  readonly lt?: BoundOf<V> | undefined;
  readonly lte?: BoundOf<V> | undefined;
  /** Strings and bytes that begin so; arrays whose first elements are these. */
  readonly prefix?: PrefixOf<V> | undefined;
  /** Highest value first. Default false: in the order of the values, and of the keys where values are equal. */
  readonly reverse?: boolean | undefined;
}

/** A document that may come without its key, where there is `newKey`. */
export type NewDocument<T, P, G> = G extends () => Key ? (P extends keyof T ? Omit<T, P> & Partial<Pick<T, P>> : T) : T;

/** Documents that are being found: nothing is read until they are walked, and each walk is of the moment at which it begins. */
export interface Found<T> extends AsyncIterable<T> {
  [Symbol.asyncIterator](): AsyncGenerator<T, void, undefined>;
  /** All of them. */
  toArray(): Promise<T[]>;
}

/**
 * Reads of a collection: `T` is what a document is, `K` its key, `X` the values of the indexes by name, `O` what reads by keys are given.
 */
export interface CollectionReads<T, K, X, O = WaitOptions> {
  /** A document, or undefined where there is none. */
  get(key: K, options?: O): Promise<T | undefined>;
  /** Documents in the order of the keys given, undefined where there is none. */
  getMany(keys: Iterable<K>, options?: O): Promise<(T | undefined)[]>;
  /** Whether there is a document. */
  has(key: K, options?: O): Promise<boolean>;
  /**
   * Documents by their keys, or by an index: those with a value, or with values in a range. Of an index with several values a
   * document comes once, at the first of its values in the range.
   *
   * @example
   * for await (const note of notes.find('edited', { gte: monday, reverse: true, limit: 20 })) show(note);
   * const lakes = await notes.find('tags', 'lake').toArray();
   * const all = await notes.find().toArray();
   */
  find(where?: Where<K>): Found<T>;
  find<N extends keyof X & string>(index: N, where?: X[N] | Where<X[N]>): Found<T>;
  /** The first document that `find` would give. */
  first(where?: Where<K>): Promise<T | undefined>;
  first<N extends keyof X & string>(index: N, where?: X[N] | Where<X[N]>): Promise<T | undefined>;
  /** The keys of what `find` would give; documents are not read. */
  keys(where?: Where<K>): Found<K>;
  keys<N extends keyof X & string>(index: N, where?: X[N] | Where<X[N]>): Found<K>;
  /** How many documents `find` would give, whatever the limit. */
  count(where?: Where<K>): Promise<number>;
  count<N extends keyof X & string>(index: N, where?: X[N] | Where<X[N]>): Promise<number>;
}

/**
 * Writes of a collection; `N` is what a document is that has no key yet. A document and its entries in all indexes are written
 * together. Each method rejects with `VARVE_VERSION` when another tab has changed the indexes (reload to get its code), with
 * `VARVE_INVALID_KEY` where an index makes something of a document that is no key, and with what `set` of the store rejects with.
 */
export interface CollectionWrites<T, K, N, O> {
  /**
   * Adds a document; resolves with its key. `VARVE_CONFLICT` when there is one with this key, or with the same value of a unique
   * index: `conflict.key` is `[name, 'doc', key]` or `[name, 'by', index, value]`.
   */
  insert(document: N, options?: O): Promise<K>;
  /** Adds documents, all or none; resolves with their keys. */
  insertMany(documents: Iterable<N>, options?: O): Promise<K[]>;
  /** Adds a document or replaces the one with its key; resolves with the key. `VARVE_CONFLICT` as `insert`, over a unique index. */
  put(document: N, options?: O): Promise<K>;
  /**
   * Replaces properties of a document, or the document by what a function makes of it; resolves with what it is then, undefined where
   * there is none. If somebody writes it meanwhile, it is read and changed again. A function that gives undefined leaves it as it is.
   *
   * @example
   * await notes.update(id, { title: 'Silt' });
   * await notes.update(id, (note) => ({ ...note, views: note.views + 1 }));
   */
  update(key: K, change: Change<T>, options?: O): Promise<T | undefined>;
  /** Deletes a document; resolves with whether it was there. */
  delete(key: K, options?: O): Promise<boolean>;
  /** Deletes all documents, at the cost of one write. */
  clear(options?: O): Promise<void>;
}

/** Properties to replace, or a function of the document. */
export type Change<T> = Partial<T> | ((document: T) => T | undefined | PromiseLike<T | undefined>);

/** How far a collection has been gone through. */
export interface BuildProgress {
  /** Documents looked at. */
  readonly done: number;
  /** Documents that there were when it began. */
  readonly total: number;
}

/** Options of `ready`, `reindex` and `check`. */
export interface ReadyOptions {
  /** Called after each page of documents, where indexes have to be built; by `check` also after those that it compares. */
  readonly onProgress?: ((progress: BuildProgress) => void) | undefined;
  /** Ends the wait with `VARVE_ABORTED`; and what is under way after its page, unless somebody else waits for it. The next use goes on with it. */
  readonly signal?: AbortSignal | undefined;
}

/** A document and an entry of an index that do not agree. */
export interface Difference<K> {
  /**
   * `missing`: a document has no entry for a value of its. `stray`: an entry is of no document, or of one that has not this value.
   * `conflict`: a document has a value of a unique index that `other` has. `refused`: an index makes no key of a document, see `error`.
   */
  readonly kind: 'missing' | 'stray' | 'conflict' | 'refused';
  /** The name of the index. */
  readonly index?: string | undefined;
  /** The value in it. */
  readonly value?: Key | undefined;
  /** The key of the document. Of what is foreign, whatever stands in the place of one: it need be no key. */
  readonly key: K;
  readonly other?: K | undefined;
  readonly error?: unknown;
}

/** What `check` of a collection resolves with. */
export interface CollectionReport<K> {
  /** Whether there is no difference. */
  readonly ok: boolean;
  readonly documents: number;
  /** Entries of all indexes; 0 where these could not be built, because of conflicts or refusals. */
  readonly entries: number;
  /** How many differences there are. */
  readonly found: number;
  /** The first 1,000 of them. */
  readonly differences: readonly Difference<K>[];
}

/** A collection inside a transaction. */
export type CollectionInTransaction<T, K, X, N = T> = CollectionReads<T, K, X, undefined> &
  CollectionWrites<T, K, N, undefined>;

/** Documents with indexes in a store. */
export interface Collection<T, K, X, N = T> extends CollectionReads<T, K, X>, CollectionWrites<T, K, N, WriteOptions> {
  readonly name: string;
  /**
   * Resolves when the indexes are as they are defined. Every other method waits for that by itself. Rejects with `VARVE_VERSION` when newer
   * code has defined them, and with `VARVE_CONFLICT` when documents have the same value in an index that is now unique.
   *
   * @example
   * await notes.ready({ onProgress: ({ done, total }) => show(done / total) });
   */
  ready(options?: ReadyOptions): Promise<void>;
  /**
   * Builds all indexes anew, from the documents, under whoever uses them: other calls, and other tabs, wait for it. An import asks for that
   * by itself. Rejects as `ready`.
   *
   * @example
   * await notes.reindex({ onProgress: ({ done, total }) => show(done / total), signal });
   */
  reindex(options?: ReadyOptions): Promise<void>;
  /**
   * Compares documents with the entries of indexes, at one moment, and tells what does not agree. Where documents cannot be indexed it lists
   * those: two with one value in a unique index, as an import can leave, or one that an index makes no key of.
   *
   * @example
   * const { ok, differences } = await notes.check();
   */
  check(options?: ReadyOptions): Promise<CollectionReport<K>>;
  /**
   * The same calls inside a transaction of the store, together with whatever else it does; or the reads in a snapshot, which
   * are then all of one moment.
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
   * The key that the store has a document under.
   *
   * @example
   * for await (const change of db.watch(notes.keyOf(42))) render(change);
   */
  keyOf(key: K): Key;
}
