/**
 * The suites of the comparison on Node: what is loaded before, and what one round calls.
 *
 * Invariant: a call and its check are apart: `check` looks at what `call` gave, outside of the time of the call. The names are
 * those of the suites in the browser.
 */

import type { Eventual, FileStore, Level, Pair } from './engine.ts';
import type { Model } from './model.ts';

/** One call of a round. */
export interface Call {
  /** Operations that it does. */
  readonly operations: number;
  run(store: FileStore): Eventual<unknown>;
  /** Whether what it gave is right. Default: nothing is looked at but the whole store, afterwards. */
  check?(given: unknown): boolean;
}

/** A count in the quick mode and in the full one. */
export interface Count {
  readonly quick: number;
  readonly full: number;
}

/** One suite. */
export interface FileSuite {
  readonly name: string;
  readonly title: string;
  readonly level: Level;
  readonly order: 'sequential' | 'random';
  /** Keys that the store may have. */
  readonly entries: Count;
  /** Whether all of them are loaded and settled before; else every round begins with an empty store. */
  readonly isLoaded: boolean;
  /** The call with this index in its round; undefined when there is nothing left to do. */
  readonly next: (model: Model, index: number) => Call | undefined;
}

const RANGE = 100;
const BATCH = 100;
const READ_SHARE = 70;

const set = (model: Model, number: number): Call => {
  const [key, value] = model.set(number);
  return { operations: 1, run: (store) => store.set(key, value) };
};
const get = (model: Model, number: number): Call => {
  const key = model.key(number);
  const check = (given: unknown): boolean => model.isRight(number, given as Uint8Array | undefined);
  return { operations: 1, run: (store) => store.get(key), check };
};
const remove = (model: Model, number: number): Call => {
  const key = model.delete(number);
  return { operations: 1, run: (store) => store.delete(key) };
};
const range = (model: Model, from: number): Call => {
  const key = model.key(from);
  const check = (given: unknown): boolean => model.isRange(from, given as readonly Pair[], RANGE);
  return { operations: 1, run: (store) => store.range(key, RANGE), check };
};
const batch = (model: Model, first: number): Call => {
  const pairs = Array.from({ length: BATCH }, (_, i) => model.set(first + i));
  return { operations: BATCH, run: (store) => store.batch(pairs) };
};

const count = (quick: number, full: number): Count => ({ quick, full });
const write = { level: 'relaxed', order: 'random', entries: count(10_000, 100_000), isLoaded: false } as const;
const read = { level: 'relaxed', order: 'random', entries: count(10_000, 100_000), isLoaded: true } as const;
/** Each key once, then no more. */
const once = (make: (model: Model, number: number) => Call) => (model: Model, index: number) =>
  index < model.entries ? make(model, index) : undefined;

/** Every suite, in the order in which they run. */
export const SUITES: readonly FileSuite[] = [
  { ...write, name: 'write-seq', title: 'sequential set', order: 'sequential', next: once(set) },
  { ...write, name: 'write-rand', title: 'random set', next: once(set) },
  {
    ...write,
    name: 'write-batch',
    title: 'batch of 100',
    next: (model, index) => (index < model.entries / BATCH ? batch(model, index * BATCH) : undefined),
  },
  { ...read, name: 'read-rand', title: 'random get', next: (model) => get(model, model.any()) },
  { ...read, name: 'range-100', title: 'range of 100', next: (model) => range(model, model.any()) },
  {
    ...read,
    name: 'mixed-70',
    title: '70% gets, 30% sets',
    next: (model) => (model.random.below(100) < READ_SHARE ? get : set)(model, model.any()),
  },
  {
    ...read,
    name: 'delete',
    title: 'delete',
    next: (model, index) => (index < model.entries ? remove(model, index) : undefined),
  },
  { ...write, name: 'strict-set', title: 'set, flushed', level: 'strict', entries: count(2000, 5000), next: once(set) },
];

/** The suite whose calls open a store: `compare.ts` runs it. */
export const REOPEN = { name: 'reopen', title: 'open and first get' } as const;
