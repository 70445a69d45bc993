/** The options of the fetch handler, and the parts of a store that it uses. Types only. */

import type { Reads, Writes } from '../api.ts';
import type { Eventual, Key, KeyCodec, Receipt, StoreStats } from '../types.ts';

/**
 * The part of a store that the handler uses. Stores of `varve` and `varve/synchronous` have it, and their views. Do not implement it
 * yourself: a minor version may add members.
 */
export interface HttpStore<K, V>
  extends Pick<Reads<K, V>, 'getEntry' | 'keys' | 'entries' | 'count'>,
    Pick<Writes<K, V>, 'set' | 'delete' | 'deleteRange' | 'batch'> {
  flush(): Eventual<void>;
  /** Not in views: then there are no metrics of the store, only of requests. */
  readonly name?: string;
  stats?(): Eventual<StoreStats>;
  /** Only in `varve/synchronous`: writes the buffered writes to the log, so that the durability in a response is true. */
  commit?(): Receipt;
}

/** The part of a collection that the handler uses (`varve/collections`). */
export interface HttpCollection {
  readonly name: string;
  /** Its types are those of `Collection`. */
  find(...where: never): AsyncIterable<unknown>;
  countBy(...where: never): AsyncIterable<unknown>;
}

/** Limits on the size of one request and of its response. */
export interface HttpLimits {
  /** Most bytes of a request's body. A longer one gets 413. Default 8 MiB. */
  bodyBytes?: number | undefined;
  /**
   * Most bytes of a key in its stored form, at most 65,537. A longer key gets 413, except where it only says where a range begins or ends.
   * Default 4096.
   */
  keyBytes?: number | undefined;
  /** Most entries of a JSON page; a higher `limit` is lowered to this. NDJSON streams have no such limit. Default 1000. */
  results?: number | undefined;
  /** Bytes of entries after which a JSON page ends (with its `next`), and after which a batch runs no more operations. Default 16 MiB. */
  answerBytes?: number | undefined;
  /** Most operations of a batch. More get 413. Default 1000. */
  operations?: number | undefined;
  /** Bytes from which a response is compressed, if the client accepts gzip. Default 4096. */
  gzipBytes?: number | undefined;
}

/** The description of a request that `authorize` gets. */
export interface Access {
  /**
   * `read`: entries, ranges, counts. `write`: everything that can change the store, batches too. `metrics`: `/metrics` and `/stats`. A minor
   * version may add a kind: refuse a kind that you do not know.
   */
  readonly kind: 'read' | 'write' | 'health' | 'metrics';
  /** The token of `Authorization: Bearer <token>`; undefined without one. */
  readonly token: string | undefined;
  readonly request: Request;
}

/** The origins, besides the handler's own, whose pages may call it. */
export interface CorsOptions {
  /** Origins in the form that browsers send (`https://app.example`), or `'*'` for all. */
  origins: '*' | readonly string[];
  /** How long a browser may cache the response to its preflight, in seconds. Default 600. */
  maxAge?: number | undefined;
}

/** Options of `createHandler`. */
export interface HttpOptions<K = Key> {
  /** The path at which the handler is mounted, such as `/api/store`. Default: the root. */
  base?: string | undefined;
  /**
   * Decides whether a request is accepted: return true to accept it, or false to respond with 401. Called for every request
   * except preflights. Default: everyone who can reach the handler is accepted, except other sites. See `bearer` for tokens.
   */
  authorize?: ((access: Access) => boolean | PromiseLike<boolean>) | undefined;
  /** Other origins that may call the handler. Default: none, and no CORS header is ever sent. */
  cors?: CorsOptions | undefined;
  /**
   * Host names that requests may be addressed to, with the port unless it is the default port. Requests to other hosts get 421.
   * Set this on a private network or on localhost: it refuses a site whose name is made to resolve to your address. Default: any.
   */
  hosts?: readonly string[] | undefined;
  limits?: HttpLimits | undefined;
  /** The key codec that the store was opened with. Default: keys are Varve keys. */
  keys?: KeyCodec<K> | undefined;
  /** Collections of the store that `/find/<name>` and `/count-by/<name>` read by their indexes. Default: none, and no such paths. */
  collections?: readonly HttpCollection[] | undefined;
  /**
   * Called with every error whose response has a status of 500 or above, and with such errors of single operations of a batch and of
   * streams that have begun. Default: no function is called.
   */
  onError?: ((error: unknown, request: Request) => void) | undefined;
}

/** A fetch handler, as Workers, Deno, Bun and service workers take it. */
export type Handler = (request: Request) => Promise<Response>;
