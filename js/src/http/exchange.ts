/**
 * One request on its way through an endpoint: its query, its store and its limits.
 *
 * Invariant: `key` and `range` have the store's own key type. All other code uses Varve keys as JSON.
 */

import { VarveError } from '../errors.ts';
import type { Key, KeyCodec, KeyRange, Receipt, WaitOptions } from '../types.ts';
import type { Query } from './query.ts';
import type { HttpLimits, HttpStore } from './types.ts';

/** Limits with their defaults. */
export type Limits = { readonly [name in keyof HttpLimits]-?: number };

/** The input of an endpoint. */
export interface Exchange<K, V> {
  readonly request: Request;
  /** The request's signal, for calls of the store. */
  readonly wait: WaitOptions;
  readonly query: Query;
  readonly store: HttpStore<K, V>;
  readonly limits: Limits;
  readonly keys: KeyCodec<K> | undefined;
  /** The path that the handler is mounted at, without its last slash. */
  readonly base: string;
  /** Notes the error of one operation of several, or of a response whose head was sent. */
  readonly failed: (error: unknown) => void;
}

/** The key as the store takes it. */
export function storeKey<K>(key: Key, keys: KeyCodec<K> | undefined): K {
  // Without a codec a store's keys are Varve keys.
  if (keys === undefined) return key as K;
  try {
    return keys.decode(key);
  } catch (cause) {
    if (cause instanceof VarveError) throw cause;
    throw new VarveError('VARVE_INVALID_KEY', `The key codec ${keys.name} refused a key.`, { cause });
  }
}

/** The Varve key of a store's key. */
export function varveKey<K>(key: K, keys: KeyCodec<K> | undefined): Key {
  return keys === undefined ? (key as Key) : keys.encode(key);
}

/** The range as the store takes it. */
export function storeRange<K>({ gt, gte, lt, lte, prefix }: KeyRange, keys: KeyCodec<K> | undefined): KeyRange<K> {
  const bound = (key: Key | undefined): K | undefined => (key === undefined ? undefined : storeKey(key, keys));
  return { gt: bound(gt), gte: bound(gte), lt: bound(lt), lte: bound(lte), prefix };
}

/** A receipt that is true when it is sent: writes that `varve/synchronous` has only buffered are written to the log first. */
export function logged<K, V>(store: HttpStore<K, V>, receipt: Receipt): Receipt {
  if (receipt.durability !== 'buffered' || store.commit === undefined) return receipt;
  return { ...receipt, durability: store.commit().durability };
}

/** A response in JSON. */
export function jsonResponse(body: unknown, status = 200, headers: Record<string, string> = {}): Response {
  return new Response(JSON.stringify(body), {
    status,
    headers: { 'content-type': 'application/json', 'cache-control': 'no-store', ...headers },
  });
}
