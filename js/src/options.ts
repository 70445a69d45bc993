/**
 * Which options a call has.
 *
 * A misspelt option would do nothing, and nobody would notice: a value lives for ever, a write is less durable than intended, a
 * range is too wide. So every call refuses options that it does not know.
 *
 * Invariant: a list has exactly the options of its type; the compiler checks that.
 */

import { invalid } from './errors.ts';
import type {
  CompactOptions,
  Condition,
  CountOptions,
  DeleteKeyOptions,
  KeyCodec,
  KeyRange,
  Lifetime,
  ScanOptions,
  SetItemOptions,
  SetOptions,
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
export const DELETE: Known<DeleteKeyOptions> = { ...WRITE, ...CONDITION };
export const RANGE: Known<KeyRange> = { gt: 1, gte: 1, lt: 1, lte: 1, prefix: 1 };
export const COUNT: Known<CountOptions> = { ...RANGE, ...WAIT };
export const COMPACT: Known<CompactOptions> = { onProgress: 1 };
export const SCAN: Known<ScanOptions> = { ...RANGE, ...WAIT, reverse: 1, limit: 1 };

/** Throws `VARVE_INVALID_ARGUMENT` for anything that is not an object, or has an unknown property. */
export function checkOptions(options: unknown, known: Readonly<Record<string, 1>>): void {
  if (options === undefined) return;
  if (typeof options !== 'object' || options === null) throw invalid(`Options are an object, not ${String(options)}.`);
  for (const name of Object.keys(options)) {
    if (!Object.hasOwn(known, name))
      throw invalid(`There is no option ${name} here; there is ${Object.keys(known).join(', ')}.`);
  }
}

/** Throws unless it is a limit for a scan. */
export function checkLimit(limit: number): void {
  if (!Number.isInteger(limit) || limit < 0) throw invalid(`limit is an integer from 0, not ${shown(limit)}.`);
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

/** One of several entries. Throws `VARVE_INVALID_ARGUMENT` for a value that is not an array. */
export function pair<K, V>(entry: readonly [K, V]): readonly [K, V] {
  if (Array.isArray(entry)) return entry;
  throw invalid(`An entry is an array of a key and a value, not ${typeName(entry)}.`);
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

/** A value in the text of an error. */
export function shown(value: unknown): string {
  return typeof value === 'string' ? `'${value}'` : String(value);
}
