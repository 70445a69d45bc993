/**
 * Writes the file of a slot, in the engine's thread and in the compactor's.
 *
 * Invariant: a count below what was asked for means that there is no room; every other failure is thrown.
 */

import type { FileCalls } from './calls.ts';
import { isFull } from './errno.ts';

/** Writes `bytes` from the start as far as there is room; returns how many. A nearly full disk takes a part and refuses the rest. */
export function writeAll(calls: FileCalls, file: number, bytes: Uint8Array, at: number): number {
  let written = 0;
  try {
    while (written < bytes.length) {
      const more = calls.writeSync(file, bytes, written, bytes.length - written, at + written);
      if (more === 0) break;
      written += more;
    }
  } catch (error) {
    if (!isFull(error) || written === 0) throw error;
  }
  return written;
}
