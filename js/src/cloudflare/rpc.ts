/**
 * The requests that a client sends to an object, and the responses.
 *
 * Invariant: an error is a response, not an exception: across the platform's RPC an exception keeps only its message, and
 * operators should not see a conflict as an exception. Keys and values are sent as they are (structured clone).
 */

import { type Conflict, VarveError, type VarveErrorCode } from '../errors.ts';
import type {
  Condition,
  DeleteReceipt,
  Durability,
  Entry,
  Key,
  KeyRange,
  Receipt,
  ScanOptions,
  SetItemOptions,
} from '../types.ts';

/** One write of a batch. */
export type BatchItem<K, V> =
  | readonly ['set', K, V, SetItemOptions?]
  | readonly ['delete', K, Condition?]
  | readonly ['deleteRange', KeyRange<K>];

/** A batch. It is `strict` when it is done, whatever durability it asks for. */
export interface BatchRequest<K, V> {
  readonly call: 'batch';
  readonly items: readonly BatchItem<K, V>[];
  readonly durability?: Durability | undefined;
}

/**
 * A request about several keys. With `part` the response may end before the last key, but not before the second: the rest would make it
 * too long.
 */
export interface KeysRequest<K> {
  readonly call: 'get' | 'getEntry' | 'has';
  readonly keys: readonly K[];
  readonly part?: boolean | undefined;
}

/** A request. */
export type StoreRequest<K, V> =
  | KeysRequest<K>
  | BatchRequest<K, V>
  | { readonly call: 'deleteAsking'; readonly key: K; readonly condition: Condition | undefined }
  | { readonly call: 'page'; readonly range: ScanOptions<K>; readonly values: boolean }
  | { readonly call: 'count'; readonly range: KeyRange<K> }
  | { readonly call: 'clear' }
  /** A request to a view. */
  | { readonly call: 'at'; readonly prefix: readonly Key[]; readonly request: StoreRequest<K, V> };

/** Some entries of a scan; `values` is empty if only keys were asked for. */
export interface Page<K, V> {
  readonly keys: K[];
  readonly values: V[];
  /** No entries follow after the last of these. */
  readonly isLast: boolean;
}

/** The responses, by the kind of the request. */
export interface StoreAnswers<K, V> {
  get: (V | undefined)[];
  getEntry: (Entry<V> | undefined)[];
  has: boolean[];
  batch: Receipt;
  deleteAsking: DeleteReceipt;
  page: Page<K, V>;
  count: number;
  clear: Receipt;
  at: unknown;
}

/** A response, or the error instead of one. */
export type StoreReply =
  | { readonly value: unknown }
  | {
      readonly error: {
        readonly code: VarveErrorCode;
        readonly message: string;
        readonly conflict?: Conflict | undefined;
      };
    };

/** The value of a reply. Throws if the reply is an error. */
export function unwrap(reply: StoreReply): unknown {
  if ('value' in reply) return reply.value;
  const { code, message, conflict } = reply.error;
  throw new VarveError(code, message, conflict === undefined ? {} : { conflict });
}
