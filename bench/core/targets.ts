/**
 * The figures to reach, and what a run says about them.
 *
 * Invariant: a target that names a ratio is judged by that ratio to a floor or peer of the same run. One that was set
 * in operations a second is reached by that figure, or by the same ratio to the floor that was measured beside it: a
 * slower or busier machine then asks for the same ratio.
 */

import { judgeLives, type LifeRow } from '../suites/lives/story.ts';
import type { Access } from './engine.ts';
import type { Row } from './rows.ts';
import { judgeThresholds } from './thresholds.ts';

/** One line of the table of targets. */
export interface Target {
  readonly title: string;
  readonly suite: string;
  readonly access: Access;
  /** Varve's engine. */
  readonly engine: string;
  /** What it is compared with in the same run. */
  readonly against: string | undefined;
  /** The ratio to reach. */
  readonly ratio: number | undefined;
  /** The figure to reach, in the row's unit a second, on the machine where the floors were measured. */
  readonly figure: number | undefined;
}

/** A ratio that was set as two figures: the target and the floor measured with it. */
function figures(target: number, floor: number): Pick<Target, 'ratio' | 'figure'> {
  return { ratio: target / floor, figure: target };
}

function worker(
  title: string,
  suite: string,
  engine: string,
  against: string | undefined,
  aim: Partial<Pick<Target, 'ratio' | 'figure'>>,
): Target {
  return { title, suite, access: 'worker', engine, against, ratio: aim.ratio, figure: aim.figure };
}

function page(title: string, suite: string, access: Access, against: string): Target {
  return { title, suite, access, engine: 'varve', against, ratio: 0.8, figure: undefined };
}

const SYNC = 'varve-sync';
const EACH = 'varve-sync-each';
const APPEND = 'opfs-append';

export const TARGETS: readonly Target[] = [
  worker('get, memtable', 'read-rand-mem', SYNC, 'map', figures(1_500_000, 3_300_000)),
  worker('get, cached tables', 'read-rand-disk', SYNC, 'map', figures(1_000_000, 3_300_000)),
  worker('get, miss', 'read-miss', SYNC, undefined, { figure: 3_000_000 }),
  worker('set, grouped', 'write-rand', SYNC, APPEND, figures(500_000, 65_000)),
  worker('set, one append each', 'write-rand', EACH, APPEND, { ratio: 0.8 }),
  worker('batch of 100, entries', 'write-batch', SYNC, APPEND, { ratio: 0.6 }),
  worker('range of 100', 'range-100', SYNC, 'map', figures(40_000, 64_000)),
  worker('range of 500', 'range-500', SYNC, 'map', figures(10_000, 48_000)),
  worker('mixed 70/30, grouped', 'mixed-70', SYNC, undefined, { figure: 600_000 }),
  worker('mixed 90/10, grouped', 'mixed-90', SYNC, undefined, { figure: 900_000 }),
  worker('delete, grouped', 'delete', SYNC, APPEND, figures(500_000, 93_000)),
  worker('4 KiB values: set', 'set-4k', SYNC, APPEND, { ratio: 0.8 }),
  worker('4 KiB values: get', 'get-4k', SYNC, APPEND, figures(300_000, 150_000)),
  worker('bulk load by 1000, entries', 'load', SYNC, APPEND, { ratio: 0.6 }),
  worker('full scan, entries', 'scan', SYNC, undefined, { figure: 4_000_000 }),
  worker('strict set', 'strict-set', SYNC, APPEND, { ratio: 0.9 }),
  worker('open + first get', 'open', SYNC, undefined, { figure: 1000 / 14 }),
  // A relaxed set is handed to the operating system before it resolves: the floor of it is a message and an append.
  page('page, awaited: set', 'write-rand', 'page', 'message-append'),
  page('page, awaited: get', 'read-rand-mem', 'page', 'message'),
  page('page, 100 in flight: set', 'write-rand', 'inflight', 'message-append'),
  page('page, 100 in flight: get', 'read-rand-mem', 'inflight', 'message'),
];

/** A target beside what was measured. */
export interface Judged {
  readonly target: Pick<Target, 'title' | 'against' | 'ratio' | 'figure'>;
  /** Of a threshold: what was measured and what is wanted, in words. */
  readonly told?: { readonly measured: string; readonly wanted: string };
  readonly varve: Pick<Row, 'opsPerSecond' | 'unit'>;
  readonly other: Row | undefined;
  readonly ratio: number | undefined;
  /** By the ratio, or by the figure where one was set; undefined where neither can be told. */
  readonly reached: boolean | undefined;
}

/** Judges every target whose rows were run. */
export function judge(rows: readonly Row[]): Judged[] {
  const placed = rows.map((row) => ({ ...row, part: row.phase, place: row.access }));
  return [...judgeTargets(rows), ...judgeThresholds(rows), ...judgeStories(placed)];
}

/** Judges the lives among rows, wherever they were lived. */
export function judgeStories(rows: readonly (LifeRow & Pick<Row, 'unit'>)[]): Judged[] {
  return judgeLives(rows).map(({ title, measured, wanted, reached, row }) => ({
    target: { title, against: undefined, ratio: undefined, figure: undefined },
    told: { measured, wanted },
    varve: row,
    other: undefined,
    ratio: undefined,
    reached,
  }));
}

function judgeTargets(rows: readonly Row[]): Judged[] {
  return TARGETS.flatMap((target) => {
    const find = (engine: string | undefined): Row | undefined =>
      rows.find((row) => row.suite === target.suite && row.access === target.access && row.engine === engine);
    const varve = find(target.engine);
    const other = find(target.against);
    if (varve === undefined) return [];
    const ratio = other && varve.opsPerSecond / other.opsPerSecond;
    const byRatio = target.ratio !== undefined && ratio !== undefined && ratio >= target.ratio;
    const byFigure = target.figure !== undefined && varve.opsPerSecond >= target.figure;
    const judged = target.figure !== undefined || ratio !== undefined;
    return [{ target, varve, other, ratio, reached: judged ? byRatio || byFigure : undefined }];
  });
}
