/**
 * Which options a call has.
 *
 * A misspelt option would do nothing, and nobody would notice: a value never expires, a write is less durable than intended, a
 * range is too wide. So every call refuses options that it does not know.
 *
 * Invariant: a list has exactly the options of its type; the compiler checks that.
 */

import type { EncryptionKey, EncryptionOptions } from './encryption/types.ts';
import { invalid } from './errors.ts';
import type {
  BeginOptions,
  CompactOptions,
  Condition,
  CountOptions,
  DeleteOptions,
  Durability,
  KeyCodec,
  KeyRange,
  Lifetime,
  ScanOptions,
  SetItemOptions,
  SetOptions,
  TransactionOptions,
  UpdateOptions,
  WaitOptions,
  WriteOptions,
} from './types.ts';

/** The options of a type, by name. */
export type Known<O> = { readonly [name in keyof Required<O>]: 1 };

export const WAIT: Known<WaitOptions> = { signal: 1 };
export const WRITE: Known<WriteOptions> = { ...WAIT, durability: 1 };
export const CONDITION: Known<Condition> = { ifSequence: 1 };
export const LIFETIME: Known<Lifetime> = { expiresIn: 1, expiresAt: 1 };
export const SET_ITEM: Known<SetItemOptions> = { ...CONDITION, ...LIFETIME };
export const SET: Known<SetOptions> = { ...WRITE, ...SET_ITEM };
export const UPDATE: Known<UpdateOptions> = { ...WRITE, ...LIFETIME };
export const BEGIN: Known<BeginOptions> = { ...WRITE, exclusive: 1 };
export const TRANSACTION: Known<TransactionOptions> = { ...WRITE, retries: 1 };
export const DELETE: Known<DeleteOptions> = { ...WRITE, ...CONDITION, existed: 1 };
export const RANGE: Known<KeyRange> = { gt: 1, gte: 1, lt: 1, lte: 1, prefix: 1 };
export const COUNT: Known<CountOptions> = { ...RANGE, ...WAIT };
export const COMPACT: Known<CompactOptions> = { onProgress: 1 };
export const SCAN: Known<ScanOptions> = { ...RANGE, ...WAIT, reverse: 1, limit: 1 };

/** Throws `VARVE_INVALID_ARGUMENT` for anything that is not an object, or has an unknown property. */
export function checkOptions(options: unknown, known: Readonly<Record<string, number>>): void {
  if (options === undefined) return;
  if (typeof options !== 'object' || options === null) throw invalid(`Options are an object, not ${String(options)}.`);
  for (const name of Object.keys(options)) {
    if (!Object.hasOwn(known, name))
      throw invalid(`There is no option ${name} here; there is ${Object.keys(known).join(', ') || 'none'}.`);
  }
}

/** Checks the options of a call that a signal ends; throws the `reason` of a signal that has aborted. */
export function checkWait(options: WaitOptions | undefined, known: Known<WaitOptions> = WAIT): void {
  checkOptions(options, known);
  options?.signal?.throwIfAborted();
}

/** Checks the options of a write; returns the durability level that they name. */
export function durabilityOf(
  options: WriteOptions | undefined,
  known: Known<WriteOptions> = WRITE,
): Durability | undefined {
  checkWait(options, known);
  const durability = options?.durability;
  checkDurability(durability);
  return durability;
}

/** Throws unless it is a durability level or undefined. */
export function checkDurability(durability: unknown): void {
  if (durability !== undefined && durability !== 'memory' && durability !== 'relaxed' && durability !== 'strict')
    throw invalid(`durability is 'memory', 'relaxed' or 'strict', not ${shown(durability)}.`);
}

/** Throws unless it is what a live query returns for a range, or undefined. */
export function checkAs(as: unknown): void {
  if (as !== undefined && as !== 'entries' && as !== 'keys' && as !== 'values' && as !== 'count')
    throw invalid(`as is 'entries', 'keys', 'values' or 'count', not ${shown(as)}.`);
}

/** Throws unless it is a limit for a scan, or undefined. */
export function checkLimit(limit: number | undefined, name = 'limit'): void {
  if (limit !== undefined && (!Number.isInteger(limit) || limit < 0))
    throw invalid(`${name} is an integer from 0, not ${shown(limit)}.`);
}

/**
 * Several keys, entries or documents, unchanged. Throws `VARVE_INVALID_ARGUMENT` for a value that cannot be iterated, and for a string or
 * bytes: these are one key.
 */
export function several<T>(items: Iterable<T>): Iterable<T> {
  const given: Iterable<T> | null | undefined = items;
  const isOne = typeof given === 'string' || ArrayBuffer.isView(given);
  if (!isOne && typeof given?.[Symbol.iterator] === 'function') return items;
  throw invalid(`Several keys, entries or documents are an array or another iterable, not ${typeName(items)}.`);
}

/** Adds several entries to a batch. Throws `VARVE_INVALID_ARGUMENT` for an entry that is not an array. */
export function addAll<K, V, B extends { set(key: K, value: V): unknown }>(
  batch: B,
  entries: Iterable<readonly [K, V]>,
): B {
  for (const entry of several(entries)) {
    if (!Array.isArray(entry)) throw invalid(`An entry is an array of a key and a value, not ${typeName(entry)}.`);
    batch.set(entry[0], entry[1]);
  }
  return batch;
}

/** The type of a value, in one word. The value may be anything, and may refuse to become a string. */
function typeName(value: unknown): string {
  if (ArrayBuffer.isView(value)) return 'bytes';
  return value === null ? 'null' : typeof value;
}

/**
 * Whether it is a range and not a key: a plain object. With a key codec plain objects may be keys too, but not those that have only
 * `known` fields.
 */
export function isRange<K, R extends KeyRange<K>>(
  target: K | R,
  codec: KeyCodec<K> | undefined,
  known: Readonly<Record<string, 1>> = RANGE,
): target is R {
  if (typeof target !== 'object' || target === null) return false;
  try {
    const prototype: unknown = Object.getPrototypeOf(target);
    const isPlain = prototype === Object.prototype || prototype === null;
    return isPlain && (codec === undefined || Object.keys(target).every((field) => Object.hasOwn(known, field)));
  } catch {
    // A proxy that threw: it is treated as a key, and refused as an invalid one.
    return false;
  }
}

/** Options whose key is as it is now: the caller may overwrite its bytes while the code that uses them is still being loaded. */
export function withKeyOfNow<O extends { encryption?: EncryptionOptions | undefined }>(options: O): O {
  const { encryption } = options ?? {};
  return encryption?.key === undefined
    ? options
    : { ...options, encryption: { ...encryption, key: keyOfNow(encryption.key) } };
}

/** A key as it is now. */
export function keyOfNow(key: EncryptionKey): EncryptionKey {
  return key instanceof Uint8Array || key instanceof ArrayBuffer ? new Uint8Array(key).slice() : key;
}

/** A value in the text of an error. */
export function shown(value: unknown): string {
  return typeof value === 'string' ? `'${value}'` : String(value);
}
