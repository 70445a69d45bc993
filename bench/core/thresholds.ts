/**
 * The thresholds of S0 and S4, judged on Varve's rows: hit rate near 100%, p99 below 1 ms for point calls, and less than 20% of the
 * throughput lost as the data grows; of documents with a hundred clients a p95 below 500 ms and more than 100 calls a second.
 *
 * Invariant: each is judged on the worst of its rows, which is the one that is shown.
 */

import { duration, percent, rate } from './figures.ts';
import type { Row } from './rows.ts';
import type { Judged } from './targets.ts';
import { DOCUMENT_SUITE } from './workloads.ts';

const HIT_RATE_MIN = 0.999;
const P99_US_MAX = 1000;
const LOST_MAX = 0.2;
const CLIENTS_P95_US_MAX = 500_000;
const CLIENTS_RATE_MIN = 100;
/** Suites whose reads look for keys that are there. */
const HITTING = ['read-seq-mem', 'read-rand-mem', 'read-seq-disk', 'read-rand-disk', 'mixed-70', 'mixed-90'];
/** Suites of single calls, in the worker: from the page a call waits for messages, in flight for its wave. */
const POINTS = [...HITTING, 'write-seq', 'write-rand', 'delete'];
/** Suites whose store grows from nothing. */
const GROWING = ['write-seq', 'write-rand', 'write-batch', 'load'];
/** Fewer points of a timeline say nothing about growth. */
const POINTS_MIN = 6;

/** The share of its rate at the beginning that the end of a round lost; undefined where the round was too short to tell. */
export function lostShare({ timeline }: Pick<Row, 'timeline'>): number | undefined {
  if (timeline.length < POINTS_MIN) return undefined;
  const third = Math.floor(timeline.length / 3);
  // The last point holds the final commit, and what is left of a step.
  const whole = timeline.slice(0, -1);
  const rate = (points: Row['timeline'], from_ms: number): number => {
    const until_ms = points.at(-1)?.[0] ?? from_ms;
    return points.reduce((sum, [, ops]) => sum + ops, 0) / (until_ms - from_ms);
  };
  const first = rate(whole.slice(0, third), 0);
  const last = rate(whole.slice(-third), whole.at(-third - 1)?.[0] ?? 0);
  return 1 - last / first;
}

/** Judges the thresholds whose rows were run. */
export function judgeThresholds(rows: readonly Row[]): Judged[] {
  const own = rows.filter(({ engine, access }) => engine === 'varve-sync' && access === 'worker');
  const judge = (
    title: string,
    suites: readonly string[],
    figureOf: (row: Row) => number | undefined,
    shown: (figure: number) => string,
    limit: {
      readonly wanted: string;
      readonly reached: (figure: number) => boolean;
      readonly isWorse: (a: number, b: number) => boolean;
    },
    among = own,
  ): Judged[] => {
    const figures = among.flatMap((row) => {
      const figure = suites.includes(row.suite) ? figureOf(row) : undefined;
      return figure === undefined ? [] : [{ row, figure }];
    });
    const [first] = figures;
    if (first === undefined) return [];
    const worst = figures.reduce((a, b) => (limit.isWorse(b.figure, a.figure) ? b : a), first);
    return [
      {
        target: {
          title: `${title}: worst, ${worst.row.suite}`,
          against: undefined,
          ratio: undefined,
          figure: undefined,
        },
        told: { measured: shown(worst.figure), wanted: limit.wanted },
        varve: worst.row,
        other: undefined,
        ratio: undefined,
        reached: limit.reached(worst.figure),
      },
    ];
  };
  const isMore = (a: number, b: number): boolean => a > b;
  const isLess = (a: number, b: number): boolean => a < b;
  const clients = rows.filter(({ engine, access }) => engine === 'varve' && access === 'inflight');
  return [
    ...judge('hit rate', HITTING, ({ hitRate }) => hitRate ?? undefined, percent, {
      wanted: `at least ${percent(HIT_RATE_MIN)}`,
      reached: (rate) => rate >= HIT_RATE_MIN,
      isWorse: isLess,
    }),
    ...judge('p99 of single calls', POINTS, ({ p99 }) => p99, duration, {
      wanted: `below ${duration(P99_US_MAX)}`,
      reached: (p99) => p99 < P99_US_MAX,
      isWorse: isMore,
    }),
    ...judge('throughput lost as data grows', GROWING, lostShare, (lost) => percent(Math.max(0, lost)), {
      wanted: `below ${percent(LOST_MAX)}`,
      reached: (lost) => lost < LOST_MAX,
      isWorse: isMore,
    }),
    ...judge(
      'documents, many clients, p95',
      [DOCUMENT_SUITE.name],
      ({ p95 }) => p95,
      duration,
      {
        wanted: `below ${duration(CLIENTS_P95_US_MAX)}`,
        reached: (p95) => p95 < CLIENTS_P95_US_MAX,
        isWorse: isMore,
      },
      clients,
    ),
    ...judge(
      'documents, many clients, calls a second',
      [DOCUMENT_SUITE.name],
      ({ opsPerSecond }) => opsPerSecond,
      rate,
      {
        wanted: `above ${rate(CLIENTS_RATE_MIN)}`,
        reached: (figure) => figure > CLIENTS_RATE_MIN,
        isWorse: isLess,
      },
      clients,
    ),
  ];
}
