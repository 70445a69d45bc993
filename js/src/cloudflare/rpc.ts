/**
 * What a client asks of an object, and how it is answered.
 *
 * Invariant: an error is an answer, not an exception: across the platform's RPC an exception keeps its message only, and a
 * conflict is nothing that an operator should be shown. Keys and values travel as they are (structured clone).
 */

import { type Conflict, VarveError, type VarveErrorCode } from '../errors.ts';
import type { SyncStore } from '../sync/sync-store.ts';
import type { Condition, Entry, KeyRange, Receipt, SetItemOptions } from '../types.ts';

/** One write of a batch. */
export type BatchItem<K, V> =
  | readonly ['set', K, V, SetItemOptions?]
  | readonly ['delete', K, Condition?]
  | readonly ['deleteRange', KeyRange<K>];

/** A range, which way, and at most how many. */
export interface PageOptions<K> extends KeyRange<K> {
  reverse?: boolean | undefined;
  limit?: number | undefined;
}

/** What is asked. */
export type StoreRequest<K, V> =
  | { readonly call: 'get'; readonly keys: readonly K[] }
  | { readonly call: 'getEntry'; readonly keys: readonly K[] }
  | { readonly call: 'has'; readonly keys: readonly K[] }
  | { readonly call: 'batch'; readonly items: readonly BatchItem<K, V>[] }
  | { readonly call: 'page'; readonly range: PageOptions<K>; readonly values: boolean }
  | { readonly call: 'count'; readonly range: KeyRange<K> };

/** Some entries of a scan; `values` is empty where only keys were asked for. */
export interface Page<K, V> {
  readonly keys: K[];
  readonly values: V[];
  /** Nothing lies behind the last of them. */
  readonly isLast: boolean;
}

/** The answers, by what was asked. */
export interface StoreAnswers<K, V> {
  get: (V | undefined)[];
  getEntry: (Entry<V> | undefined)[];
  has: boolean[];
  batch: Receipt;
  page: Page<K, V>;
  count: number;
}

/** An answer, or why there is none. */
export type StoreReply =
  | { readonly value: unknown }
  | {
      readonly error: {
        readonly code: VarveErrorCode;
        readonly message: string;
        readonly conflict?: Conflict | undefined;
      };
    };

/** Entries of a page at most. */
const PAGE_ENTRIES_MAX = 1000;
/** A page ends with the entry that makes it this long, about: the platform takes 32 MiB at once, and the object has 128 MB. */
const PAGE_BYTES = 1024 * 1024;

/** Answers a request; throws only what is no `VarveError`. */
export function serve<K, V>(store: SyncStore<K, V>, request: StoreRequest<K, V>): StoreReply {
  try {
    return { value: answer(store, request) };
  } catch (error) {
    if (!(error instanceof VarveError)) throw error;
    return { error: { code: error.code, message: error.message, conflict: error.conflict } };
  }
}

/** The value of a reply; throws the error of one that has none. */
export function unwrap(reply: StoreReply): unknown {
  if ('value' in reply) return reply.value;
  const { code, message, conflict } = reply.error;
  throw new VarveError(code, message, conflict === undefined ? {} : { conflict });
}

function answer<K, V>(store: SyncStore<K, V>, request: StoreRequest<K, V>): unknown {
  switch (request.call) {
    case 'get':
      return store.getMany(request.keys).map(owned);
    case 'getEntry':
      return request.keys.map((key) => {
        const entry = store.getEntry(key);
        return entry === undefined ? undefined : { ...entry, value: owned(entry.value) };
      });
    case 'has':
      return store.hasMany(request.keys);
    case 'batch':
      return write(store, request.items);
    case 'page':
      return page(store, request.range, request.values);
    case 'count':
      return store.count(request.range);
    default:
      throw new VarveError(
        'VARVE_INVALID_ARGUMENT',
        'The object does not know this request: its version is another one.',
      );
  }
}

/** All of it is one record of the log. Logged at once, so that what refuses it is told. */
function write<K, V>(store: SyncStore<K, V>, items: readonly BatchItem<K, V>[]): Receipt {
  const batch = store.batch();
  for (const item of items) {
    if (item[0] === 'set') batch.set(item[1], item[2], item[3]);
    else if (item[0] === 'delete') batch.delete(item[1], item[2]);
    else batch.deleteRange(item[1]);
  }
  return batch.commit({ durability: 'strict' });
}

function page<K, V>(store: SyncStore<K, V>, range: PageOptions<K>, withValues: boolean): Page<K, V> {
  const limit = Math.min(range.limit ?? PAGE_ENTRIES_MAX, PAGE_ENTRIES_MAX);
  const keys: K[] = [];
  const values: V[] = [];
  let bytes = 0;
  for (const [key, value] of store.entries({ ...range, limit })) {
    keys.push(key);
    if (withValues) values.push(owned(value));
    bytes += sizeOf(key) + (withValues ? sizeOf(value) : 0);
    if (bytes >= PAGE_BYTES) return { keys, values, isLast: false };
  }
  return { keys, values, isLast: keys.length < limit };
}

/** About how long a value is when it is sent; what it holds twice is sent once. */
function sizeOf(value: unknown, met = new Set<object>()): number {
  if (typeof value === 'string') return value.length * 2;
  if (ArrayBuffer.isView(value)) return value.byteLength;
  if (typeof value !== 'object' || value === null || met.has(value)) return 16;
  if (value instanceof ArrayBuffer) return value.byteLength;
  met.add(value);
  const parts = value instanceof Map ? [...value].flat() : value instanceof Set ? [...value] : Object.values(value);
  return parts.reduce((sum: number, part) => sum + 16 + sizeOf(part, met), 16);
}

/** A view of a larger buffer would be sent with all of that buffer. */
function owned<T>(value: T): T {
  return value instanceof Uint8Array && value.byteLength < value.buffer.byteLength ? (value.slice() as T) : value;
}
