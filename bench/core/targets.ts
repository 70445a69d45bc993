/**
 * The figures to reach, and what a run says about them. Suites add their own thresholds.
 *
 * Invariant: a target that names a ratio is judged by that ratio to a floor or peer of the same run. One that was set
 * in operations a second is reached by that figure, or by the same ratio to the floor that was measured beside it: a
 * slower or busier machine then asks for the same ratio. A threshold is judged on the worst of its rows, which is shown.
 */

import { duration, percent, rate, times } from './figures.ts';
import { caseName, type Row } from './row.ts';

/** A target beside what was measured: its cells, and whether it was reached (undefined where that is unknown). */
export interface Judged {
  readonly cells: readonly string[];
  readonly reached: boolean | undefined;
}

export const TARGET_COLUMNS = ['target', 'Varve', 'against', 'measured', 'ratio', 'wanted', 'reached'] as const;

interface Target {
  readonly title: string;
  readonly suite: string;
  readonly access: string;
  readonly engine: string;
  readonly against: string | undefined;
  readonly ratio?: number;
  /** The figure to reach, in the row's unit a second, on the machine where the floors were measured. */
  readonly figure?: number;
}

/** A ratio that was set as two figures: the target and the floor measured with it. */
const figures = (target: number, floor: number) => ({ ratio: target / floor, figure: target });

const sync = (title: string, suite: string, against: string | undefined, aim: Pick<Target, 'ratio' | 'figure'>) => {
  return { title, suite, access: 'worker', engine: 'varve-sync', against, ...aim };
};
const page = (title: string, suite: string, access: string, against: string): Target => {
  return { title, suite, access, engine: 'varve', against, ratio: 0.8 };
};

const APPEND = 'opfs-append';

const TARGETS: readonly Target[] = [
  sync('get, memtable', 'read-rand-mem', 'map', figures(1_500_000, 3_300_000)),
  sync('get, cached tables', 'read-rand-disk', 'map', figures(1_000_000, 3_300_000)),
  sync('get, miss', 'read-miss', undefined, { figure: 3_000_000 }),
  sync('set, grouped', 'write-rand', APPEND, figures(500_000, 65_000)),
  { ...sync('set, one append each', 'write-rand', APPEND, { ratio: 0.8 }), engine: 'varve-sync-each' },
  sync('batch of 100, entries', 'write-batch', APPEND, { ratio: 0.6 }),
  sync('range of 100', 'range-100', 'map', figures(40_000, 64_000)),
  sync('range of 500', 'range-500', 'map', figures(10_000, 48_000)),
  sync('mixed 70/30, grouped', 'mixed-70', undefined, { figure: 600_000 }),
  sync('mixed 90/10, grouped', 'mixed-90', undefined, { figure: 900_000 }),
  sync('delete, grouped', 'delete', APPEND, figures(500_000, 93_000)),
  sync('4 KiB values: set', 'set-4k', APPEND, { ratio: 0.8 }),
  sync('4 KiB values: get', 'get-4k', APPEND, figures(300_000, 150_000)),
  sync('bulk load by 1000, entries', 'load', APPEND, { ratio: 0.6 }),
  sync('full scan, entries', 'scan', undefined, { figure: 4_000_000 }),
  sync('strict set', 'strict-set', APPEND, { ratio: 0.9 }),
  sync('open + first get', 'open', undefined, { figure: 1000 / 14 }),
  // A relaxed set is handed to the operating system before it resolves: the floor of it is a message and an append.
  page('page, awaited: set', 'write-rand', 'page', 'message-append'),
  page('page, awaited: get', 'read-rand-mem', 'page', 'message'),
  page('page, 100 in flight: set', 'write-rand', 'inflight', 'message-append'),
  page('page, 100 in flight: get', 'read-rand-mem', 'inflight', 'message'),
];

export function targetOf(row: Pick<Row, 'suite' | 'access' | 'engine'>): string | undefined {
  return TARGETS.find(({ suite, access, engine }) => {
    return suite === row.suite && access === row.access && engine === row.engine;
  })?.against;
}

function judgeTarget(target: Target, rows: readonly Row[]): Judged[] {
  const { title, suite, access, engine, against, ratio: least = Infinity, figure = Infinity } = target;
  const find = (name: string | undefined): Row | undefined =>
    rows.find((row) => row.suite === suite && row.access === access && row.engine === name);
  const varve = find(engine);
  if (varve === undefined) return [];
  const other = find(against);
  const ratio = other && varve.opsPerSecond / other.opsPerSecond;
  const isKnown = figure < Infinity || ratio !== undefined;
  const reached = isKnown ? (ratio ?? 0) >= least || varve.opsPerSecond >= figure : undefined;
  const wanted = [...(least < Infinity ? [times(least)] : []), ...(figure < Infinity ? [`${rate(figure)}/s`] : [])];
  const measured = [other === undefined ? '-' : rate(other.opsPerSecond), ratio === undefined ? '-' : times(ratio)];
  return [judged(title, varve, against, measured, wanted.join(' or '), reached)];
}

function judged(
  title: string,
  { opsPerSecond, unit }: Row,
  against: string | undefined,
  measured: readonly string[],
  wanted: string,
  reached: boolean | undefined,
): Judged {
  const verdict = reached === undefined ? '-' : reached ? 'yes' : 'no';
  return { cells: [title, `${rate(opsPerSecond)} ${unit}/s`, against ?? '-', ...measured, wanted, verdict], reached };
}

/** The figure of a row of Varve that a threshold is about; undefined of other rows. */
export type FigureOf = (row: Row, rows: readonly Row[]) => number | undefined;
export type Judge = (rows: readonly Row[]) => Judged[];

const threshold =
  (sign: 1 | -1) =>
  (title: string, limit: number, shown: (figure: number) => string, figureOf: FigureOf): Judge =>
  (rows) => {
    const figures = rows.flatMap((row) => {
      const figure = row.role === 'varve' ? figureOf(row, rows) : undefined;
      return figure === undefined ? [] : [{ row, figure }];
    });
    const [worst] = figures.sort((a, b) => sign * (b.figure - a.figure));
    if (worst === undefined) return [];
    const { row, figure } = worst;
    const name = `${title}: worst, ${caseName(row)} ${row.engine}`;
    const wanted = `at ${sign === 1 ? 'most' : 'least'} ${shown(limit)}`;
    return [judged(name, row, undefined, [shown(figure), '-'], wanted, sign * (limit - figure) >= 0)];
  };

/** A bound on the worst of some rows: none may be above it. */
export const atMost = threshold(1);
/** The same: none may be below it. */
export const atLeast = threshold(-1);

/** The figures of the synchronous API in the worker: from the page a call waits for messages, in flight for its wave. */
const inWorker =
  (suites: readonly string[], figure: 'hitRate' | 'p99' | 'lost'): FigureOf =>
  (row) => {
    const isMeant = row.engine === 'varve-sync' && row.access === 'worker' && suites.includes(row.suite);
    return isMeant ? (row[figure] ?? undefined) : undefined;
  };
/** Suites whose reads look for keys that are there. */
const HITTING = ['read-seq-mem', 'read-rand-mem', 'read-seq-disk', 'read-rand-disk', 'mixed-70', 'mixed-90'];
/** Of random reads of tables, the ratio to those of a memtable. */
const besideMemory: FigureOf = (row, rows) => {
  const memory = rows.find(
    ({ suite, access, engine }) => suite === 'read-rand-mem' && access === row.access && engine === row.engine,
  );
  const isMeant = row.suite === 'read-rand-disk' && row.engine === 'varve-sync' && row.access === 'worker';
  return isMeant && memory ? row.opsPerSecond / memory.opsPerSecond : undefined;
};
const POINTS = [...HITTING, 'write-seq', 'write-rand', 'delete'];
const GROWING = ['write-seq', 'write-rand', 'write-batch', 'load'];

const judges: Judge[] = [
  (rows) => TARGETS.flatMap((target) => judgeTarget(target, rows)),
  atLeast('hit rate', 0.999, percent, inWorker(HITTING, 'hitRate')),
  atMost('p99 of single calls', 1000, duration, inWorker(POINTS, 'p99')),
  atLeast('random reads of tables, of those in memory', 0.7, percent, besideMemory),
  atMost('throughput lost as data grows', 0.2, percent, inWorker(GROWING, 'lost')),
];

export function registerThresholds(...thresholds: readonly Judge[]): void {
  judges.push(...thresholds);
}

export function judge(rows: readonly Row[]): Judged[] {
  return judges.flatMap((one) => one(rows));
}
