/**
 * The tasks that a visitor knows, in plain words: the cases of the charts on the benchmark page and in the README.
 *
 * Invariant: the list is fixed before anything is measured, so tasks at which Varve is slower stay in it.
 */

import { type Comparison, ratioText } from './comparison.ts';
import { times } from './figures.ts';
import { type Ratio, verdictOf } from './ratio.ts';
import type { Table } from './tables.ts';

export interface Bar {
  readonly ratio: number;
  readonly text: string;
  readonly look?: 'slower' | 'unclear';
}

export interface BarGroup {
  readonly name: string;
  readonly bars: readonly Bar[];
}

/** The figures that the page of the benchmark shows before it has run. */
export interface Published {
  readonly where: string;
  readonly groups: readonly BarGroup[];
  readonly count: string;
  readonly slowest: Table;
}

type Task = readonly [name: string, suite: string, access: string, engine: string, phase?: string];

const TASKS: readonly Task[] = [
  ['open a store and read one value', 'open-cold', 'page', 'varve'],
  ['read a value', 'read-rand-mem', 'page', 'varve'],
  ['read values, 100 calls at once', 'read-rand-mem', 'inflight', 'varve'],
  ['write a value', 'write-rand', 'page', 'varve'],
  ['write values, 100 calls at once', 'write-rand', 'inflight', 'varve'],
  ['write a value, flushed to the disk', 'strict-set', 'page', 'varve'],
  ['write 100 values in one batch', 'write-batch', 'page', 'varve'],
  ['read 100 entries in key order', 'range-100', 'page', 'varve'],
  ['read two values, write both', 'txn', 'page', 'varve'],
  ['find documents by an index', 'documents', 'page', 'varve', 'find'],
  ['in a worker: read a value', 'read-rand-mem', 'worker', 'varve-sync'],
  ['in a worker: write a value', 'write-rand', 'worker', 'varve-sync-each'],
];

const PEERS = new Map([
  ['indexeddb', 'IndexedDB'],
  ['sqlite-wasm', 'SQLite'],
]);

export function tasksIn(comparisons: readonly Comparison[]): { name: string; found: Comparison[] }[] {
  const tasks = TASKS.map(([name, suite, access, engine, phase]) => ({
    name,
    found: comparisons.filter(({ varve }) => {
      const isPart = phase === undefined ? varve.phase === undefined : varve.phase?.startsWith(phase);
      return varve.suite === suite && varve.access === access && varve.engine === engine && isPart;
    }),
  }));
  return tasks.filter(({ found }) => found.length > 0);
}

export function everydayOf(comparisons: readonly Comparison[]): BarGroup[] {
  return tasksIn(comparisons.filter(({ peer }) => PEERS.has(peer.engine))).map(({ name, found }) => ({
    name: `${name.charAt(0).toUpperCase()}${name.slice(1)}`,
    bars: found.map((one) => barOf(one, PEERS.get(one.peer.engine) ?? '')),
  }));
}

function barOf(one: Ratio, peer: string): Bar {
  const { ratio, high } = one;
  if (Number.isFinite(high) && verdictOf(one) === 'within noise')
    return { ratio, text: `${ratioText(ratio)} ${peer}, within noise`, look: 'unclear' };
  if (ratio < 1) return { ratio, text: `${times(1 / ratio)} slower than ${peer}`, look: 'slower' };
  return { ratio, text: `${times(ratio)} as fast as ${peer}` };
}
