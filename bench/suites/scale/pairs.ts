/**
 * Pairs of 32 + 32 bytes, as functions of a number.
 *
 * Invariant: keys of different numbers differ, keys and values do not compress, and a value can be checked without being
 * remembered. A key is written into one buffer that the next key uses again: the store copies it at once.
 */

import { mix, Random } from '../../core/generator.ts';

const KEY_BYTES = 32;
const VALUE_BYTES = 32;
export const PAIR_BYTES = KEY_BYTES + VALUE_BYTES;

const keyWords = new Uint32Array(KEY_BYTES / 4);
const keyBytes = new Uint8Array(keyWords.buffer);
const valueWords = new Uint32Array(VALUE_BYTES / 4);
const valueBytes = new Uint8Array(valueWords.buffer);

function fill(words: Uint32Array, seed: number): void {
  let state = seed;
  for (let i = 0; i < words.length; i++) {
    state = mix(state + 0x9e37_79b9);
    words[i] = state;
  }
}

/** The key of `number`; good until the next call. */
export function keyOf(number: number): Uint8Array {
  fill(keyWords, number);
  return keyBytes;
}

/** The value of `number`; good until the next call. */
export function valueFor(number: number): Uint8Array {
  fill(valueWords, ~number);
  return valueBytes;
}

/** Whether `found` is the value of `number`: its first and last words are compared. */
export function isValueFor(found: Uint8Array | undefined, number: number): boolean {
  if (found?.length !== VALUE_BYTES) return false;
  const wanted = valueFor(number);
  return found[0] === wanted[0] && found[1] === wanted[1] && found[30] === wanted[30] && found[31] === wanted[31];
}

/** Random numbers below `bound`, from a seed. */
export function randomBelow(bound: number, seed: number): () => number {
  const random = new Random(seed);
  return () => random.below(bound);
}
