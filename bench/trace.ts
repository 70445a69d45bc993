/**
 * What a suite will do, call by call, decided before any clock runs; and what the store must hold afterwards.
 *
 * Invariant: the state is brought up to date after each group of calls, outside of its time. It is the whole truth
 * about the store: each key is absent or holds one numbered value of the pool.
 */

import { at, type Dataset, type Key, Random } from './generator.ts';
import type { Work } from './workloads.ts';

/** A key of the state that is not in the store. */
export const ABSENT = 0xffff;
/** Instead of the number of a value: the call is a get, or a delete. */
export const GET = -1;
export const DELETE = -2;

/** Point calls: call `i` concerns key `numbers[i]` of `keys` and is what `values[i]` says. */
export interface PointTrace {
  readonly keys: readonly Key[];
  readonly numbers: Uint32Array;
  /** The number of the value to set, GET, or DELETE. */
  readonly values: Int32Array;
  /** The keys are ones that were never written. */
  readonly absent: boolean;
  /** All calls are of one kind, so that a loop need not ask. */
  readonly only: 'set' | 'get' | 'delete' | undefined;
}

/** What a store holds: per key the number of its value, or ABSENT. */
export type State = Uint16Array;

/** The state of an empty store. */
export function emptyState(dataset: Dataset): State {
  return new Uint16Array(dataset.keys.length).fill(ABSENT);
}

/** The point calls of a suite. `round` varies what is drawn at random, and nothing else. */
export function pointTrace(
  dataset: Dataset,
  { mix, order }: Work & { kind: 'points' },
  calls: number,
  round: number,
): PointTrace {
  const random = new Random(0xc0ffee + round);
  const entries = dataset.keys.length;
  const numbers = new Uint32Array(calls);
  const values = new Int32Array(calls).fill(GET);
  // Writes and deletes touch each key once before any twice; random reads draw freely.
  const once = mix === 'set' || mix === 'delete' || order === 'sequential';
  const path = order === 'sequential' ? dataset.sorted : shuffled(entries, random);
  for (let i = 0; i < calls; i++) {
    numbers[i] = once ? at(path, i % entries) : random.below(entries);
    const writes = typeof mix === 'object' ? random.next() / 0x1_0000_0000 >= mix.reads : mix === 'set';
    if (writes) values[i] = random.below(dataset.pool.length);
    if (mix === 'delete') values[i] = DELETE;
  }
  return {
    keys: mix === 'miss' ? dataset.absent : dataset.keys,
    absent: mix === 'miss',
    numbers,
    values,
    only: typeof mix === 'object' ? undefined : mix === 'miss' ? 'get' : mix,
  };
}

/** The numbers from 0 to `count` - 1 in random order. */
export function shuffled(count: number, random: Random): Uint32Array {
  const numbers = Uint32Array.from({ length: count }, (_, i) => i);
  for (let i = count - 1; i > 0; i--) {
    const j = random.below(i + 1);
    const other = at(numbers, j);
    numbers[j] = at(numbers, i);
    numbers[i] = other;
  }
  return numbers;
}

/** The keys of one batch and the numbers of their values. */
export interface BatchTrace {
  readonly numbers: Uint32Array;
  readonly values: Uint16Array;
}

/** Batches over the keys in the order of their numbers, around again when they are used up. */
export function batchTraces(dataset: Dataset, size: number, calls: number, round: number): BatchTrace[] {
  const random = new Random(0xba7c4 + round);
  return Array.from({ length: calls }, (_, call) => ({
    numbers: Uint32Array.from({ length: size }, (_, i) => (call * size + i) % dataset.keys.length),
    values: Uint16Array.from({ length: size }, () => random.below(dataset.pool.length)),
  }));
}
