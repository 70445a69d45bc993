/** The options of the fetch handler and what it needs of a store. Types only. */

import type {
  Condition,
  DeleteKeyOptions,
  Entry,
  Key,
  KeyCodec,
  KeyRange,
  Receipt,
  ScanOptions,
  SetItemOptions,
  SetOptions,
  StoreStats,
  WaitOptions,
  WriteOptions,
} from '../types.ts';

/** What a store of `varve` gives later and one of `varve/sync` at once. */
export type Eventual<T> = T | PromiseLike<T>;

/** A batch as both kinds of store have it. */
export interface HttpBatch<K, V> {
  set(key: K, value: V, options?: SetItemOptions): unknown;
  delete(key: K, options?: Condition): unknown;
  deleteRange(range: KeyRange<K>): unknown;
  commit(options?: WriteOptions): Eventual<Receipt>;
}

/** What the handler uses of a store: `Store` of `varve` and `SyncStore` of `varve/sync` both have it. */
export interface HttpStore<K, V> {
  readonly name: string;
  getEntry(key: K, options?: WaitOptions): Eventual<Entry<V> | undefined>;
  set(key: K, value: V, options?: SetOptions): Eventual<Receipt>;
  delete(key: K, options?: DeleteKeyOptions): Eventual<Receipt>;
  deleteRange(range: KeyRange<K>, options?: WriteOptions): Eventual<Receipt>;
  batch(): HttpBatch<K, V>;
  keys(options?: ScanOptions<K>): AsyncIterable<K> | Iterable<K>;
  entries(options?: ScanOptions<K>): AsyncIterable<[K, V]> | Iterable<[K, V]>;
  count(range?: KeyRange<K> & WaitOptions): Eventual<number>;
  flush(): Eventual<void>;
  stats(): Eventual<StoreStats>;
  /** Of `varve/sync`: logs what was buffered, so that an answer promises no more than is true. */
  commit?(): Receipt;
}

/** The most that one request may bring or ask for. */
export interface HttpLimits {
  /** Bytes of a request's body. Above: 413. Default 8 MiB. */
  body?: number | undefined;
  /** Bytes of a key as it is stored, at most 65,537. Above: 413. Default 4096. */
  key?: number | undefined;
  /** Entries of a JSON page; a higher `limit` is lowered to it. NDJSON streams have no such limit. Default 1000. */
  results?: number | undefined;
  /** Bytes of entries after which a JSON page ends (with its `next`), and after which a batch answers no more reads. Default 16 MiB. */
  answer?: number | undefined;
  /** Operations of a batch. Above: 413. Default 1000. */
  operations?: number | undefined;
}

/** What a request asks for, as `authorize` is told. */
export interface Access {
  /** `read`: entries, ranges, counts. `write`: everything that can change the store, batches too. */
  readonly kind: 'read' | 'write' | 'health' | 'metrics';
  /** The token of `Authorization: Bearer <token>`; undefined without one. */
  readonly token: string | undefined;
  readonly request: Request;
}

/** Origins, besides the handler's own, whose pages may call it. */
export interface CorsOptions {
  /** As browsers send them (`https://app.example`), or `'*'` for all. */
  origins: '*' | readonly string[];
  /** How long a browser may keep the answer to its preflight, in seconds. Default 600. */
  maxAge?: number | undefined;
}

/** Options of `createHandler`. */
export interface HttpOptions<K = Key> {
  /** The path it is mounted at, such as `/api/store`. Default: the root. */
  base?: string | undefined;
  /**
   * Lets a request in, or answers 401. Called for every request but preflights. Default: everyone is let in who can reach the
   * handler and is not another site. See `bearer` for tokens.
   */
  authorize?: ((access: Access) => boolean | PromiseLike<boolean>) | undefined;
  /** Other origins that may call. Default: none, and no CORS header is ever sent. */
  cors?: CorsOptions | undefined;
  /**
   * Host names (with the port, if it is none of the usual) that requests may be addressed to; others get 421. Name them on a
   * private network or on localhost: a site whose name is made to resolve to your address is then refused. Default: any.
   */
  hosts?: readonly string[] | undefined;
  limits?: HttpLimits | undefined;
  /** The key codec that the store was opened with. Default: keys are Varve keys. */
  keys?: KeyCodec<K> | undefined;
  /** Told of every error that answers with a status of 500 or above. Default: nobody is. */
  onError?: ((error: unknown, request: Request) => void) | undefined;
}

/** Limits with their defaults. */
export type Limits = { readonly [name in keyof HttpLimits]-?: number };

/** A fetch handler, as Workers, Deno, Bun and service workers take it. */
export type Handler = (request: Request) => Promise<Response>;
