/**
 * The calls of a suite, one by one, decided before any clock runs; and the content that the store must have afterwards.
 *
 * Invariant: the state is brought up to date after each group of calls, outside of its time. It is the whole truth
 * about the store: each key is absent or holds one numbered value of the pool.
 */

import { drawer, type Order, shuffled } from './draw.ts';
import { at, type Dataset, type Key, Random, salted } from './generator.ts';
import type { Mix, Shares, Work } from './work.ts';

export const ABSENT = 0xffff;
/** In place of the number of a value that is set: the call is a get or a delete. */
export const GET = -1;
export const DELETE = -2;
/** Added to the number of entries: a range of so many. */
const SCAN = 1 << 20;
/** Added to the number of a value: a get, and then a set of the value. */
const MODIFY = 1 << 21;

export const isGet = (call: number): boolean => call === GET || call >= MODIFY;
export const isScan = (call: number): boolean => call >= SCAN && call < MODIFY;
const isRead = (call: number): boolean => call === GET || isScan(call);
/** The number of the value that a call sets, or of the entries of a range. */
export const argumentOf = (call: number): number => call & (SCAN - 1);

export interface TraceChoice {
  readonly calls: number;
  /** Varies what is drawn at random, and nothing else. */
  readonly round: number;
  readonly seed?: number | undefined;
  /** Keys that the store holds, the first ones; inserts go on behind them. Default: all. */
  readonly there?: number | undefined;
  /** Calls that are timed as one, where the reads and the writes of a mix are timed apart. */
  readonly group?: number | undefined;
}

/** Point calls: call `i` concerns key `numbers[i]` of `keys` and is what `values[i]` says. */
export interface PointTrace {
  readonly keys: readonly Key[];
  readonly numbers: Uint32Array;
  readonly values: Int32Array;
  readonly absent: boolean;
  /** Of a mix whose kinds are apart: whether a call writes nothing. */
  readonly isRead?: (call: number) => boolean;
}

/** The content of a store: per key the number of its value, or ABSENT. */
export type State = Uint16Array;

export function emptyState(dataset: Dataset): State {
  return new Uint16Array(dataset.keys.length).fill(ABSENT);
}

export function liveInOrder({ sorted }: Dataset, state: State): Uint32Array {
  return sorted.filter((number) => state[number] !== ABSENT);
}

export function countFromFirst(state: State): number {
  const gap = state.indexOf(ABSENT);
  return gap < 0 ? state.length : gap;
}

export function pointTrace(
  dataset: Dataset,
  { mix, order }: Work & { kind: 'points' },
  { calls, round, seed, there = dataset.keys.length, group }: TraceChoice,
): PointTrace {
  const random = new Random(salted(0xc0ffee + round, seed));
  const numbers = new Uint32Array(calls);
  const values = new Int32Array(calls).fill(GET);
  const number = numberOf(dataset, mix, order, there, random);
  let inserted = there;
  for (let i = 0; i < calls; i++) {
    const kind = typeof mix === 'object' ? kindOf(mix, random.next() / 0x1_0000_0000) : mix;
    numbers[i] = kind === 'insert' && inserted < dataset.keys.length ? inserted++ : number(i, inserted);
    if (kind === 'get' || kind === 'miss') continue;
    if (kind === 'delete') values[i] = DELETE;
    else if (kind === 'scan') values[i] = SCAN + 1 + random.below((mix as Shares).size ?? 1);
    else values[i] = random.below(dataset.pool.length) + (kind === 'modify' ? MODIFY : 0);
  }
  const trace = { keys: mix === 'miss' ? dataset.absent : dataset.keys, absent: mix === 'miss', numbers, values };
  return group !== undefined && typeof mix === 'object' ? apart(trace, group) : trace;
}

/** A mix in another order: of every `group` calls, those that write come first. */
function apart({ numbers, values, ...trace }: PointTrace, group: number): PointTrace {
  const place = (call: number): number => 2 * Math.floor(call / group) + Number(isRead(at(values, call)));
  const order = Uint32Array.from(values.keys()).sort((a, b) => place(a) - place(b));
  const sorted = Int32Array.from(order, (call) => at(values, call));
  const isReadAt = (call: number): boolean => isRead(at(sorted, call));
  return { ...trace, numbers: order.map((call) => at(numbers, call)), values: sorted, isRead: isReadAt };
}

/** The kind of call that a number from 0 to 1 stands for. An insert into a store that is full is a set. */
function kindOf({ reads = 0, inserts = 0, scans = 0, modifies = 0 }: Shares, drawn: number) {
  if (drawn < inserts) return 'insert';
  if (drawn < inserts + scans) return 'scan';
  if (drawn < inserts + scans + modifies) return 'modify';
  return drawn < inserts + scans + modifies + reads ? 'get' : 'set';
}

/** Whether each call is a get, a set or a delete: those can be under way together in one wave. */
export function isOfPoints(mix: Mix): boolean {
  return typeof mix !== 'object' || !(mix.scans || mix.modifies);
}

type NumberOf = (i: number, inserted: number) => number;

/** Which key the call `i` concerns. Writes and deletes touch each key once before any twice; others draw freely. */
function numberOf(dataset: Dataset, mix: Mix, order: Order, there: number, random: Random): NumberOf {
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

export interface BatchTrace {
  readonly numbers: Uint32Array;
  readonly values: Uint16Array;
}

/** Batches over the keys in the order of their numbers, around again when they are used up. */
export function batchTraces(dataset: Dataset, size: number, choice: TraceChoice): BatchTrace[] {
  const { there = dataset.keys.length } = choice;
  return tracesOf(dataset, size, choice, new Random(salted(0xba7c4 + choice.round, choice.seed)), (i) => i % there);
}

/** Batches of different keys, drawn at random: each concerns `size` of them. */
export function scatteredTraces(dataset: Dataset, size: number, choice: TraceChoice): BatchTrace[] {
  const random = new Random(salted(0x7c4 + choice.round, choice.seed));
  const path = shuffled(dataset.keys.length, random);
  return tracesOf(dataset, size, choice, random, (i) => at(path, i % path.length));
}

function tracesOf(
  { pool }: Dataset,
  size: number,
  { calls }: TraceChoice,
  random: Random,
  pick: (i: number) => number,
) {
  return Array.from(
    { length: calls },
    (_, call): BatchTrace => ({
      numbers: Uint32Array.from({ length: size }, (_, i) => pick(call * size + i)),
      values: Uint16Array.from({ length: size }, () => random.below(pool.length)),
    }),
  );
}
