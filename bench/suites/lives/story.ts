/**
 * The results of a life: in figures, in words, and beside its targets.
 *
 * Invariant: a target is judged on the worst of Varve's rows, and the report names that row. A missing figure gives no verdict.
 */

import { bestPeers, type Comparable, comparisonsOf, ratioText } from '../../core/comparison.ts';
import { bytes, rate, times } from '../../core/figures.ts';
import { FRESH_SCAN, type LifeStory, SCAN } from './life.ts';

/** Of the rate of the first window, the least that a queue may fall to; shorter windows than this are some milliseconds of the machine. */
const STEADY_MIN = 0.7;
const WINDOW_STEPS_MIN = 10_000;
const SCAN_P50_RATIO_MAX = 2;
const SCAN_P99_RATIO_MAX = 3;
const SPACE_MAX = 2;
const IDLE_SPACE_MAX = 1.3;
/** A store that holds less is mostly a log, whose size does not follow what it holds. */
const SPACE_BYTES_MIN = 10e6;

/** What a row of a life has, wherever it was measured. */
export interface LifeRow extends Comparable {
  readonly suite: string;
  /** What of the life it times. */
  readonly part: string | undefined;
  /** Where it ran, in words: only rows of one place are compared. */
  readonly place: string;
  readonly p50: number;
  readonly p99: number;
  readonly life?: LifeStory | undefined;
}

/** A target that was judged, in words. */
export interface LifeVerdict<R extends LifeRow> {
  readonly title: string;
  readonly measured: string;
  readonly wanted: string;
  readonly reached: boolean;
  readonly row: R;
}

/** The rate of the slowest window for one of the first; undefined where there is only one. Windows that a time limit cut short do not count. */
export function slowestShare({ samples }: Pick<LifeStory, 'samples'>): number | undefined {
  const [first, ...later] = samples;
  const whole = later.filter(({ steps }, i) => steps - (samples[i]?.steps ?? 0) >= (first?.steps ?? 0) / 2);
  if (first === undefined || whole.length === 0) return undefined;
  return Math.min(...whole.map(({ stepsPerSecond }) => stepsPerSecond)) / first.stepsPerSecond;
}

/** The most bytes on disk for each byte that is there; undefined where nobody can see the files. */
export function peakSpace({ samples, livingBytes }: LifeStory): number | undefined {
  const seen = samples.flatMap(({ disk }) => (disk === undefined ? [] : [disk.bytes]));
  return seen.length === 0 ? undefined : Math.max(...seen) / livingBytes;
}

/** A life in one line. */
export function storyText(story: LifeStory): string {
  const { planned, samples, livingBytes, idle, writeAmplification } = story;
  const last = samples.at(-1);
  const share = slowestShare(story);
  const space = peakSpace(story);
  const most = Math.max(...samples.map(({ disk }) => disk?.files ?? 0));
  return [
    `${rate(last?.steps ?? 0)} of ${rate(planned)} steps`,
    ...(share === undefined ? [] : [`slowest window ${times(share)} the first`]),
    ...(space === undefined
      ? ['its files cannot be seen']
      : [`on disk at most ${times(space)} the living ${bytes(livingBytes)}, in ${most} files`]),
    ...(idle === undefined
      ? []
      : [`${times(idle.bytes / livingBytes)} after ${idle.after_ms / 1000} s without a call`]),
    ...(writeAmplification === undefined ? [] : [`write amplification ${writeAmplification.toFixed(1)}`]),
  ].join('; ');
}

/** Judges the lives whose rows were run. */
export function judgeLives<R extends LifeRow>(rows: readonly R[]): LifeVerdict<R>[] {
  const own = (suite: string, part?: string): R[] =>
    rows.filter((row) => row.suite === suite && row.role === 'varve' && (part === undefined || row.part === part));
  const scans = (suite: string, ratio: (row: R, fresh: R) => number): Figure<R>[] =>
    figuresOf(own(suite, SCAN), (row) => {
      const fresh = own(suite, FRESH_SCAN).find(({ engine, place }) => engine === row.engine && place === row.place);
      return fresh && ratio(row, fresh);
    });
  const large = own('overwrite-steady').filter(({ life }) => (life?.livingBytes ?? 0) >= SPACE_BYTES_MIN);
  return [
    ...atLeast(
      'queue: slowest window, of the first',
      STEADY_MIN,
      figuresOf(own('queue'), ({ life }) => {
        return (life?.samples[0]?.steps ?? 0) < WINDOW_STEPS_MIN ? undefined : life && slowestShare(life);
      }),
    ),
    ...atLeast('queue: beside the best peer', 1, besidePeers(rows.filter(({ suite }) => suite === 'queue'))),
    ...['rotate', 'counters'].flatMap((suite) => [
      ...atMost(
        `${suite}: median of a scan, of one of a fresh store`,
        SCAN_P50_RATIO_MAX,
        scans(suite, (row, fresh) => row.p50 / fresh.p50),
      ),
      ...atMost(
        `${suite}: p99 of a scan, of one of a fresh store`,
        SCAN_P99_RATIO_MAX,
        scans(suite, (row, fresh) => row.p99 / fresh.p99),
      ),
    ]),
    ...atMost(
      'overwrite-steady: most on disk, of what lives',
      SPACE_MAX,
      figuresOf(large, ({ life }) => life && peakSpace(life)),
    ),
    ...atMost(
      'overwrite-steady: on disk when idle, of what lives',
      IDLE_SPACE_MAX,
      figuresOf(large, ({ life }) => life?.idle && life.idle.bytes / life.livingBytes),
    ),
  ];
}

interface Figure<R> {
  readonly row: R;
  readonly figure: number;
}

function figuresOf<R>(rows: readonly R[], figureOf: (row: R) => number | undefined): Figure<R>[] {
  return rows.flatMap((row) => {
    const figure = figureOf(row);
    return figure === undefined ? [] : [{ row, figure }];
  });
}

/** Each of Varve's rows beside the best peer that is like it, in the same place. */
function besidePeers<R extends LifeRow>(rows: readonly R[]): Figure<R>[] {
  const groups = [...new Set(rows.map(({ place }) => place))].map((place) => rows.filter((row) => row.place === place));
  return bestPeers(comparisonsOf(groups)).map(({ varve, ratio }) => ({ row: varve, figure: ratio }));
}

function atLeast<R extends LifeRow>(title: string, limit: number, figures: readonly Figure<R>[]): LifeVerdict<R>[] {
  const least = figures.toSorted((a, b) => a.figure - b.figure)[0];
  return verdictOf(title, `at least ${times(limit)}`, least, (figure) => figure >= limit);
}

function atMost<R extends LifeRow>(title: string, limit: number, figures: readonly Figure<R>[]): LifeVerdict<R>[] {
  const most = figures.toSorted((a, b) => b.figure - a.figure)[0];
  return verdictOf(title, `at most ${times(limit)}`, most, (figure) => figure <= limit);
}

function verdictOf<R extends LifeRow>(
  title: string,
  wanted: string,
  worst: Figure<R> | undefined,
  reached: (figure: number) => boolean,
): LifeVerdict<R>[] {
  if (worst === undefined) return [];
  const { row, figure } = worst;
  const named = `${title}: worst, ${row.engine} (${row.place})`;
  return [{ title: named, measured: ratioText(figure), wanted, reached: reached(figure), row }];
}
