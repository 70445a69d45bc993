/**
 * How often a transaction is tried, and how long it waits in between.
 *
 * Invariant: of transactions that conflict with each other, one commits in every round. So if each waits a random time, longer
 * from round to round, all of them commit in the end.
 */

import { invalid } from '../errors.ts';
import { untilAborted } from '../runtime/until-aborted.ts';

/** How often a transaction is tried again by default. */
export const RETRIES_DEFAULT = 100;
/** Longest wait between two attempts, in milliseconds. */
const WAIT_MS_MAX = 200;

/** Throws unless it is a number of retries. */
export function checkRetries(retries: number): void {
  if (!Number.isInteger(retries) || retries < 0) {
    throw invalid(`retries is an integer from 0, not ${String(retries)}.`);
  }
}

/** Waits before attempt number `attempt`, the first retry being 1: up to 1, 2, 4 ... 200 ms. */
export function backOff(attempt: number, signal: AbortSignal | undefined): Promise<void> {
  const waitMs = Math.random() * Math.min(WAIT_MS_MAX, 2 ** (attempt - 1));
  return untilAborted(new Promise((resolve) => setTimeout(resolve, waitMs)), signal);
}

/** The beginning of the error message of the last conflict. */
export function lastConflict(attempts: number): string {
  return `Others wrote what the transaction had read, ${attempts === 1 ? 'once' : `${attempts} times`}`;
}
