/**
 * The results of a life: in figures, in words, and beside its targets.
 *
 * Invariant: a target is judged on the worst of Varve's rows, and the report names that row. A missing figure gives no verdict.
 */

import { bestPeers, comparisonsOf, ratioText } from '../../core/comparison.ts';
import { bytes, rate, times } from '../../core/figures.ts';
import { caseName, casesOf, type LifeStory, type Row } from '../../core/row.ts';
import { atLeast, atMost, type FigureOf, registerThresholds } from '../../core/targets.ts';
import { FRESH_SCAN, SCAN } from './life.ts';

/** Shorter windows than this are some milliseconds of the machine. */
const WINDOW_STEPS_MIN = 10_000;
/** A store that holds less is mostly a log, whose size does not follow what it holds. */
const SPACE_BYTES_MIN = 10e6;

/** The rate of the slowest window for one of the first; undefined where there is only one. Windows that a time limit cut do not count. */
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

const of =
  (suite: string, figure: FigureOf): FigureOf =>
  (row, rows) =>
    row.suite === suite ? figure(row, rows) : undefined;
const steady = ({ life }: Row): number | undefined =>
  life && (life.samples[0]?.steps ?? 0) >= WINDOW_STEPS_MIN ? slowestShare(life) : undefined;
const besidePeers: FigureOf = (row, rows) => {
  const group = casesOf(rows).filter((found) => found.includes(row));
  return bestPeers(comparisonsOf(group)).find(({ varve }) => varve === row)?.ratio;
};
/** Of a scan, the ratio to the same in a fresh store. */
const scans = (suite: string, figure: 'p50' | 'p99'): FigureOf =>
  of(suite, (row, rows) => {
    const fresh = (one: Row): boolean => caseName(one) === caseName({ ...row, phase: FRESH_SCAN });
    const found = rows.find((one) => fresh(one) && one.engine === row.engine);
    return row.phase === SCAN && found ? row[figure] / found[figure] : undefined;
  });
/** Of the story of a store with enough in it. */
const space = (figure: (life: LifeStory) => number | undefined): FigureOf =>
  of('overwrite-steady', ({ life }) => (life && life.livingBytes >= SPACE_BYTES_MIN ? figure(life) : undefined));
const idleSpace = ({ idle, livingBytes }: LifeStory): number | undefined => idle && idle.bytes / livingBytes;

registerThresholds(
  atLeast('queue: slowest window, of the first', 0.7, ratioText, of('queue', steady)),
  atLeast('queue: beside the best peer', 1, ratioText, of('queue', besidePeers)),
  ...['rotate', 'counters'].flatMap((suite) => [
    atMost(`${suite}: median of a scan, of one of a fresh store`, 2, ratioText, scans(suite, 'p50')),
    atMost(`${suite}: p99 of a scan, of one of a fresh store`, 3, ratioText, scans(suite, 'p99')),
  ]),
  atMost('overwrite-steady: most on disk, of what lives', 2, ratioText, space(peakSpace)),
  atMost('overwrite-steady: on disk when idle, of what lives', 1.3, ratioText, space(idleSpace)),
);
