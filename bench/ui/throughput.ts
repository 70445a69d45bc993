/**
 * Throughput over time while a run goes on, and of finished rows; the figures of a life over its steps.
 *
 * Invariant: time is measured time: the rounds of an engine follow one another without what was between them, so that
 * engines which took turns lie over one another.
 */

import type { RunEvent } from '../core/plan.ts';
import type { Row } from '../core/rows.ts';
import type { LifeSample } from '../suites/lives/life.ts';
import type { Line, Point } from './lines-chart.ts';

type Sample = Extract<RunEvent, { type: 'sample' }>;

/** More points than that say no more to the eye. */
const POINTS_MAX = 200;

interface Track {
  round: number;
  /** Where the round began on the axis, in milliseconds. */
  began_ms: number;
  last_ms: number;
  readonly points: Point[];
}

/** Gathers the samples of the suite that runs. */
export class LiveThroughput {
  #suite = '';
  #tracks = new Map<string, Track>();

  /** The suite and access that the samples are of, in words. */
  get suite(): string {
    return this.#suite;
  }

  /** Takes a sample; another suite begins anew. */
  take({ suite, access, engine, round, at_ms, ops }: Sample): void {
    const name = `${suite} (${access})`;
    if (name !== this.#suite) {
      this.#suite = name;
      this.#tracks = new Map();
    }
    const track = this.#tracks.get(engine) ?? { round, began_ms: 0, last_ms: 0, points: [] };
    this.#tracks.set(engine, track);
    if (track.round !== round) Object.assign(track, { round, began_ms: track.began_ms + track.last_ms, last_ms: 0 });
    const took_ms = at_ms - track.last_ms;
    track.last_ms = at_ms;
    if (took_ms > 0) track.points.push({ x: (track.began_ms + at_ms) / 1000, y: (ops * 1000) / took_ms });
    if (track.points.length > POINTS_MAX) track.points.splice(0, track.points.length - POINTS_MAX);
  }

  /** The lines to draw. */
  lines(): Line[] {
    return [...this.#tracks].map(([engine, { points }]) => ({ engine, points: [...points] }));
  }
}

/** The throughput of a finished row, in operations a second over seconds of its middle round. */
export function timelineOf({ timeline }: Pick<Row, 'timeline'>): Point[] {
  let last_ms = 0;
  return (timeline ?? []).flatMap(([at_ms, ops]): Point[] => {
    const took_ms = at_ms - last_ms;
    last_ms = at_ms;
    return took_ms > 0 ? [{ x: at_ms / 1000, y: (ops * 1000) / took_ms }] : [];
  });
}

/** A figure of a row's life over its steps. */
export function lifePoints({ life }: Pick<Row, 'life'>, of: (sample: LifeSample) => number | undefined): Point[] {
  return (life?.samples ?? []).flatMap((sample): Point[] => {
    const y = of(sample);
    // A logarithmic axis has no place for nothing.
    return y === undefined || y <= 0 ? [] : [{ x: sample.steps, y }];
  });
}
