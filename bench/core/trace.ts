/**
 * The calls of a suite, one by one, decided before any clock runs; and the content that the store must have afterwards.
 *
 * Invariant: the state is brought up to date after each group of calls, outside of its time. It is the whole truth
 * about the store: each key is absent or holds one numbered value of the pool.
 */

import { drawer, type Order, shuffled } from './draw.ts';
import { at, type Dataset, type Key, Random, salted } from './generator.ts';
import type { Mix, Work } from './work.ts';

/** A key of the state that is not in the store. */
export const ABSENT = 0xffff;
/** Instead of the number of a value: the call is a get, a delete, or (in a mix of kinds) a range. */
export const GET = -1;
export const DELETE = -2;
export const SCAN = -3;

export interface TraceChoice {
  readonly calls: number;
  /** Varies what is drawn at random, and nothing else. */
  readonly round: number;
  /** The plan's seed. Default 1. */
  readonly seed?: number | undefined;
  /** Keys that the store holds, the first ones; inserts go on behind them. Default: all. */
  readonly there?: number | undefined;
}

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

/** The content of a store: per key the number of its value, or ABSENT. */
export type State = Uint16Array;

/** The state of an empty store. */
export function emptyState(dataset: Dataset): State {
  return new Uint16Array(dataset.keys.length).fill(ABSENT);
}

/** The numbers of the keys that a state holds, in key order. */
export function liveInOrder({ sorted }: Dataset, state: State): Uint32Array {
  return sorted.filter((number) => state[number] !== ABSENT);
}

/** How many keys a state holds from the first on without a gap. */
export function countFromFirst(state: State): number {
  const gap = state.indexOf(ABSENT);
  return gap < 0 ? state.length : gap;
}

/** The point calls of a suite. */
export function pointTrace(
  dataset: Dataset,
  { mix, order }: Work & { kind: 'points' },
  { calls, round, seed, there = dataset.keys.length }: TraceChoice,
): PointTrace {
  const random = new Random(salted(0xc0ffee + round, seed));
  const numbers = new Uint32Array(calls);
  const values = new Int32Array(calls).fill(GET);
  const number = numberOf(dataset, mix, order, there, random);
  let inserted = there;
  for (let i = 0; i < calls; i++) {
    const drawn = typeof mix === 'object' ? random.next() / 0x1_0000_0000 : 1;
    const writes = typeof mix === 'object' ? drawn >= mix.reads : mix === 'set';
    const isInsert = writes && typeof mix === 'object' && drawn >= 1 - (mix.inserts ?? 0);
    numbers[i] = isInsert && inserted < dataset.keys.length ? inserted++ : number(i, inserted);
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

/** Which key the call `i` concerns. Writes and deletes touch each key once before any twice; others draw freely. */
function numberOf(
  dataset: Dataset,
  mix: Mix,
  order: Order,
  there: number,
  random: Random,
): (i: number, inserted: number) => number {
  if (order === 'sequential') {
    const path = there === dataset.keys.length ? dataset.sorted : dataset.sorted.filter((number) => number < there);
    return (i) => at(path, i % path.length);
  }
  if ((mix === 'set' || mix === 'delete') && order === 'uniform') {
    const path = shuffled(there, random);
    return (i) => at(path, i % path.length);
  }
  const draw = drawer(order, there, random);
  return (_, inserted) => draw(inserted);
}

/** Calls of several kinds: call `i` is a get, a set (of an absent key: an insert), a range, or a get and then a set. */
interface MixTrace {
  readonly numbers: Uint32Array;
  /** The number of the value to set, GET, or SCAN. */
  readonly values: Int32Array;
  /** Entries of a range. */
  readonly sizes: Uint16Array;
  /** Whether a set first gets what it replaces. */
  readonly modifies: Uint8Array;
}

/** The calls of a mix of kinds. */
export function mixTrace(
  dataset: Dataset,
  { shares, order, size }: Work & { kind: 'mix' },
  { calls, round, seed, there = dataset.keys.length }: TraceChoice,
): MixTrace {
  const random = new Random(salted(0xe44a + round, seed));
  const draw = drawer(order, there, random);
  const trace: MixTrace = {
    numbers: new Uint32Array(calls),
    values: new Int32Array(calls).fill(GET),
    sizes: new Uint16Array(calls),
    modifies: new Uint8Array(calls),
  };
  let inserted = there;
  for (let i = 0; i < calls; i++) {
    const drawn = random.next() / 0x1_0000_0000;
    const isInsert = drawn < shares.inserts && inserted < dataset.keys.length;
    const isScan = !isInsert && drawn < shares.inserts + shares.scans;
    const modifies = !isInsert && !isScan && drawn < shares.inserts + shares.scans + shares.modifies;
    trace.numbers[i] = isInsert ? inserted++ : draw(there);
    if (isScan) trace.values[i] = SCAN;
    if (isScan) trace.sizes[i] = 1 + random.below(size);
    if (isInsert || modifies) trace.values[i] = random.below(dataset.pool.length);
    trace.modifies[i] = Number(modifies);
  }
  return trace;
}

/** The keys of one batch and the numbers of their values. */
export interface BatchTrace {
  readonly numbers: Uint32Array;
  readonly values: Uint16Array;
}

/** Batches over the keys in the order of their numbers, around again when they are used up. */
export function batchTraces(
  dataset: Dataset,
  size: number,
  { calls, round, seed, there = dataset.keys.length }: TraceChoice,
): BatchTrace[] {
  const random = new Random(salted(0xba7c4 + round, seed));
  return Array.from({ length: calls }, (_, call) => ({
    numbers: Uint32Array.from({ length: size }, (_, i) => (call * size + i) % there),
    values: Uint16Array.from({ length: size }, () => random.below(dataset.pool.length)),
  }));
}

/** Batches of different keys, drawn at random: each concerns `size` of them. */
export function scatteredTraces(dataset: Dataset, size: number, { calls, round, seed }: TraceChoice): BatchTrace[] {
  const random = new Random(salted(0x7c4 + round, seed));
  const path = shuffled(dataset.keys.length, random);
  return Array.from({ length: calls }, (_, call) => ({
    numbers: Uint32Array.from({ length: size }, (_, i) => at(path, (call * size + i) % path.length)),
    values: Uint16Array.from({ length: size }, () => random.below(dataset.pool.length)),
  }));
}
