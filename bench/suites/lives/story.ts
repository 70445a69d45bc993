/**
 * The results of a life: in figures, in words, and beside its targets.
 *
 * Invariant: a target is judged on the worst of Varve's rows, and the report names that row. A missing figure gives no verdict.
 */

import { bestPeers, comparisonsOf, ratioText } from '../../core/comparison.ts';
import { bytes, rate, times } from '../../core/figures.ts';
import { casesOf, type LifeStory, type Row } from '../../core/row.ts';
import { type Figure, figuresOf, type Judged, judgeWorst } from '../../core/targets.ts';
import { FRESH_SCAN, SCAN } from './life.ts';

/** Of the rate of the first window, the least that a queue may fall to; shorter windows than this are some milliseconds of the machine. */
const STEADY_MIN = 0.7;
const WINDOW_STEPS_MIN = 10_000;
const SCAN_P50_RATIO_MAX = 2;
const SCAN_P99_RATIO_MAX = 3;
const SPACE_MAX = 2;
const IDLE_SPACE_MAX = 1.3;
/** A store that holds less is mostly a log, whose size does not follow what it holds. */
const SPACE_BYTES_MIN = 10e6;

/** The rate of the slowest window for one of the first; undefined where there is only one. Windows that a time limit cut short do not count. */
export function slowestShare({ samples }: Pick<LifeStory, 'samples'>): number | undefined {
  const [first, ...later] = samples;
  const whole = later.filter(({ steps }, i) => steps - (samples[i]?.steps ?? 0) >= (first?.steps ?? 0) / 2);
  if (first === undefined || whole.length === 0) return undefined;
  return Math.min(...whole.map(({ stepsPerSecond }) => stepsPerSecond)) / first.stepsPerSecond;
}

/** The most bytes on disk for each byte that is there; undefined where the files cannot be seen. */
export function peakSpace({ samples, livingBytes }: LifeStory): number | undefined {
  const seen = samples.flatMap(({ disk }) => (disk === undefined ? [] : [disk.bytes]));
  return seen.length === 0 ? undefined : Math.max(...seen) / livingBytes;
}

/** A life in one line. */
export function storyText(story: LifeStory): string {
  const { planned, samples, livingBytes, idle, writeAmplification } = story;
  const share = slowestShare(story);
  const space = peakSpace(story);
  const most = Math.max(...samples.map(({ disk }) => disk?.files ?? 0));
  const parts = [
    `${rate(samples.at(-1)?.steps ?? 0)} of ${rate(planned)} steps`,
    share && `slowest window ${times(share)} the first`,
    space === undefined
      ? 'its files cannot be seen'
      : `on disk at most ${times(space)} the living ${bytes(livingBytes)}, in ${most} files`,
    idle && `${times(idle.bytes / livingBytes)} after ${idle.after_ms / 1000} s without a call`,
    writeAmplification && `write amplification ${writeAmplification.toFixed(1)}`,
  ];
  return parts.filter((part) => typeof part === 'string').join('; ');
}

const where = ({ engine, access }: Row): string => `${engine} (${access})`;

/** Judges the lives whose rows were run. */
export function judgeLives(rows: readonly Row[]): Judged[] {
  const own = (suite: string, phase?: string): Row[] =>
    rows.filter((row) => row.suite === suite && row.role === 'varve' && (phase === undefined || row.phase === phase));
  const worst = (title: string, figures: readonly Figure[], bound: 'at least' | 'at most', limit: number): Judged[] =>
    judgeWorst(title, figures, bound, limit, ratioText, where);
  const scans = (suite: string, ratio: (row: Row, fresh: Row) => number): Figure[] =>
    figuresOf(own(suite, SCAN), (row) => {
      const fresh = own(suite, FRESH_SCAN).find(({ engine, access }) => engine === row.engine && access === row.access);
      return fresh && ratio(row, fresh);
    });
  const steady = figuresOf(own('queue'), ({ life }) => {
    return life && (life.samples[0]?.steps ?? 0) >= WINDOW_STEPS_MIN ? slowestShare(life) : undefined;
  });
  const queues = casesOf(rows.filter(({ suite }) => suite === 'queue'));
  const beside = bestPeers(comparisonsOf(queues)).map(({ varve, ratio }) => ({ row: varve, figure: ratio }));
  const large = own('overwrite-steady').filter(({ life }) => (life?.livingBytes ?? 0) >= SPACE_BYTES_MIN);
  const peaks = figuresOf(large, ({ life }) => life && peakSpace(life));
  const idles = figuresOf(large, ({ life }) => life?.idle && life.idle.bytes / life.livingBytes);
  return [
    ...worst('queue: slowest window, of the first', steady, 'at least', STEADY_MIN),
    ...worst('queue: beside the best peer', beside, 'at least', 1),
    ...['rotate', 'counters'].flatMap((suite) => {
      const p50s = scans(suite, (row, fresh) => row.p50 / fresh.p50);
      const p99s = scans(suite, (row, fresh) => row.p99 / fresh.p99);
      return [
        ...worst(`${suite}: median of a scan, of one of a fresh store`, p50s, 'at most', SCAN_P50_RATIO_MAX),
        ...worst(`${suite}: p99 of a scan, of one of a fresh store`, p99s, 'at most', SCAN_P99_RATIO_MAX),
      ];
    }),
    ...worst('overwrite-steady: most on disk, of what lives', peaks, 'at most', SPACE_MAX),
    ...worst('overwrite-steady: on disk when idle, of what lives', idles, 'at most', IDLE_SPACE_MAX),
  ];
}
