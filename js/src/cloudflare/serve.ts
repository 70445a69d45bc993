/** Responds to the requests of clients (rpc.ts) in an object. */

import { invalid, VarveError } from '../errors.ts';
import type { SyncView } from '../synchronous/view.ts';
import type { Receipt, ScanOptions } from '../types.ts';
import type { BatchRequest, KeysRequest, Page, StoreReply, StoreRequest } from './rpc.ts';

/** The most entries of a page. */
const PAGE_ENTRIES_MAX = 1000;
/** A page ends with the entry that makes it about this long: the platform takes 32 MiB at once, and the object has 128 MB. */
const PAGE_BYTES = 1024 * 1024;

/** About the most bytes of a part of several values. One value may be longer. */
const PART_BYTES = 16 * 1024 * 1024;

/** Responds to a request. A `VarveError` becomes a part of the response; other errors are thrown. */
export function serve<K, V>(store: SyncView<K, V>, request: StoreRequest<K, V>): StoreReply {
  try {
    return { value: answer(store, request) };
  } catch (error) {
    if (!(error instanceof VarveError)) throw error;
    return { error: { code: error.code, message: error.message, conflict: error.conflict } };
  }
}

function answer<K, V>(store: SyncView<K, V>, request: StoreRequest<K, V>): unknown {
  switch (request.call) {
    case 'get':
    case 'getEntry':
      return read(store, request);
    case 'has':
      return store.hasMany(request.keys);
    case 'batch':
      return write(store, request);
    case 'deleteAsking':
      return store.delete(request.key, { ...request.condition, existed: true, durability: 'strict' });
    case 'page':
      return page(store, request.range, request.values);
    case 'count':
      return store.count(request.range);
    case 'clear':
      return store.clear({ durability: 'strict' });
    case 'at':
      return answer(store.at<K, V>(request.prefix), request.request);
    default:
      throw invalid('The object does not know this request: it has another version of varve.');
  }
}

/** The values or the entries of keys, in one turn and so with one read point. */
function read<K, V>(store: SyncView<K, V>, { call, keys, part }: KeysRequest<K>): unknown[] {
  const found: unknown[] = [];
  let bytes = 0;
  for (const key of keys) {
    const entry = store.getEntry(key);
    if (part && entry !== undefined) {
      bytes += sizeOf(entry.value);
      if (bytes > PART_BYTES && found.length > 0) break;
    }
    const value = owned(entry?.value);
    found.push(call === 'get' || entry === undefined ? value : { ...entry, value });
  }
  return found;
}

/** Writes the whole batch as one record of the log. It is logged immediately, so that the caller gets the error if it is refused. */
function write<K, V>(store: SyncView<K, V>, { items, durability = 'strict' }: BatchRequest<K, V>): Receipt {
  const batch = store.batch();
  for (const item of items) {
    if (item[0] === 'set') batch.set(item[1], item[2], item[3]);
    else if (item[0] === 'delete') batch.delete(item[1], item[2]);
    else batch.deleteRange(item[1]);
  }
  const receipt = batch.commit({ durability });
  return receipt.durability === 'strict' ? receipt : store.commit({ durability: 'strict' });
}

function page<K, V>(store: SyncView<K, V>, range: ScanOptions<K>, withValues: boolean): Page<K, V> {
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

/** About how many bytes a value has when it is sent. An object that occurs twice in it is sent once. */
function sizeOf(value: unknown, met = new Set<object>()): number {
  if (typeof value === 'string') return value.length * 2;
  if (ArrayBuffer.isView(value)) return value.byteLength;
  if (typeof value !== 'object' || value === null || met.has(value)) return 16;
  if (value instanceof ArrayBuffer) return value.byteLength;
  met.add(value);
  const parts = value instanceof Map ? [...value].flat() : value instanceof Set ? [...value] : Object.values(value);
  return parts.reduce((sum: number, part) => sum + 16 + sizeOf(part, met), 16);
}

/** Copies a view of a larger buffer, because the platform would send the whole buffer with it. */
function owned<T>(value: T): T {
  return value instanceof Uint8Array && value.byteLength < value.buffer.byteLength ? (value.slice() as T) : value;
}
