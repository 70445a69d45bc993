/** The options of one item of a batch: its lifetime and its condition. */

import { invalid } from '../errors.ts';
import type { Condition, SetItemOptions, UpdateLifetime } from '../types.ts';
import { timeOf } from './intrinsics.ts';

/** Longest lifetime, in milliseconds: the time when it ends still fits into a Date. */
const EXPIRES_IN_MAX = 8e15;
/** The time of the last possible Date. */
const EXPIRES_AT_MAX = 8.64e15;

/** The options of an item as they are now; undefined if it has only a key and a value. Items with options need a batch. */
export function itemOf(given: SetItemOptions | undefined): SetItemOptions | undefined;
/** The lifetime in the options of an update as it is now; undefined if there is none. */
export function itemOf(given: UpdateLifetime | undefined): UpdateLifetime | undefined;
export function itemOf(given: (UpdateLifetime & Condition) | undefined): (UpdateLifetime & Condition) | undefined {
  const { expiresIn, expiresAt } = given ?? {};
  const condition = conditionOf(given);
  const isPlain = expiresIn === undefined && expiresAt === undefined && condition === undefined;
  return isPlain ? undefined : { expiresIn, expiresAt: msOf(expiresAt), ...condition };
}

/**
 * The condition in the options of a write, as it is now. An `ifSequence` that is there and undefined is one: `checkItem` refuses it. It is
 * the sequence of an entry that is absent, and the write must not overwrite an entry that somebody sets meanwhile.
 */
export function conditionOf(given: unknown): Condition | undefined {
  return given && 'ifSequence' in Object(given) ? { ifSequence: (given as Condition).ifSequence } : undefined;
}

/** The options of an item, as `itemOf`. Throws `VARVE_INVALID_ARGUMENT` for an invalid lifetime or sequence. */
export function checkItem(given: SetItemOptions | undefined): SetItemOptions | undefined {
  const item = itemOf(given);
  if (item === undefined) return undefined;
  const { expiresIn, expiresAt, ifSequence } = item;
  if (expiresIn !== undefined && !isTime(expiresIn, EXPIRES_IN_MAX))
    throw invalid(`expiresIn is a number of milliseconds above 0, not ${String(expiresIn)}.`);
  if (expiresAt !== undefined && (expiresIn !== undefined || !isTime(expiresAt, EXPIRES_AT_MAX)))
    throw invalid('expiresAt is a Date or milliseconds since 1970, without expiresIn.');
  if ('ifSequence' in item && ifSequence !== null && !(Number.isSafeInteger(ifSequence) && (ifSequence as number) > 0))
    throw invalid(`ifSequence is the sequence of an entry, or null for none, not ${String(ifSequence)}.`);
  return item;
}

/** An expiry in milliseconds. The time of a Date is read without its own methods, which may be overridden. */
function msOf(at: Date | number | undefined): number | undefined {
  return typeof at === 'object' ? (timeOf(at) ?? Number.NaN) : at;
}

function isTime(ms: unknown, max: number): boolean {
  return typeof ms === 'number' && ms > 0 && ms <= max;
}
