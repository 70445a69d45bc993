/**
 * The charts of a run that goes on: throughput over time, and the amplification of Varve's stores.
 *
 * Invariant: nothing is drawn while calls from the page are timed, which are made in this thread: then the charts are drawn
 * when an engine is rehearsed, which is not counted. While the worker measures they are drawn a few times a second.
 */

import { rate } from '../core/figures.ts';
import type { RunEvent } from '../core/plan.ts';
import { isRound } from './chart-kit.ts';
import { byId } from './dom.ts';
import { LinesChart, type Point } from './lines-chart.ts';
import { LiveThroughput } from './throughput.ts';

const DRAW_MS = 250;
const AMPLIFICATION_MAX = 300;
const KINDS = {
  write: { label: 'write: bytes written for each byte given', dash: [] },
  read: { label: 'read: runs that a read may visit', dash: [6, 4] },
  space: { label: 'space: bytes on disk for each byte that is there', dash: [2, 3] },
} as const;

type Kind = keyof typeof KINDS;

/** The live charts of the page. */
export class LiveCharts {
  readonly #section = byId('live');
  readonly #throughput = new LinesChart({
    title: 'Throughput over time',
    note: 'operations a second, over measured time',
    x: { title: 'seconds', logarithmic: false, text: (figure) => `${Number(figure.toFixed(2))} s`, min: 0 },
    y: { title: 'operations a second', logarithmic: true, text: rate, isShown: isRound },
  });
  readonly #amplification = new LinesChart({
    title: 'Amplification of Varve',
    note: 'over the time of the run, between measurements',
    x: { title: 'seconds', logarithmic: false, text: (figure) => `${Number(figure.toFixed(1))} s`, min: 0 },
    y: { title: 'times', logarithmic: false, text: (figure) => figure.toFixed(1), min: 0 },
  });
  #live = new LiveThroughput();
  #amplified = new Map<string, { engine: string; kind: Kind; points: Point[] }>();
  #began_ms = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor() {
    this.#section.querySelector('.charts')?.append(this.#throughput.frame.element, this.#amplification.frame.element);
  }

  /** A run begins: what was before goes. */
  begin(): void {
    this.#live = new LiveThroughput();
    this.#amplified = new Map();
    this.#began_ms = performance.now();
    this.#section.hidden = false;
    this.#draw();
  }

  /** A run went on. */
  take(event: RunEvent): void {
    if (event.type === 'sample') {
      this.#live.take(event);
      if (event.access === 'worker') this.#timer ??= setTimeout(() => this.#draw(), DRAW_MS);
    }
    if (event.type === 'amplification') this.#amplify(event);
    // A rehearsal is not counted: what is drawn now takes its time.
    if (event.type === 'progress' && event.text.endsWith('prepares')) this.#draw();
  }

  /** A run ended: the throughput of each case stands among the results now, the amplification nowhere else. */
  end(): void {
    this.#live = new LiveThroughput();
    this.#draw();
    this.#section.hidden = this.#amplified.size === 0;
  }

  #amplify(event: Extract<RunEvent, { type: 'amplification' }>): void {
    for (const kind of Object.keys(KINDS) as Kind[]) {
      const y = event[kind];
      if (y === undefined || !Number.isFinite(y)) continue;
      const key = `${event.engine} ${kind}`;
      const line = this.#amplified.get(key) ?? { engine: event.engine, kind, points: [] };
      this.#amplified.set(key, line);
      // By the clock of the page: the workers' clocks begin with them.
      line.points.push({ x: (performance.now() - this.#began_ms) / 1000, y });
      if (line.points.length > AMPLIFICATION_MAX) line.points.shift();
    }
  }

  #draw(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const lines = this.#live.lines();
    this.#throughput.frame.name('Throughput over time', this.#live.suite);
    const now = lines.map(({ engine, points }) => `${engine} ${rate(points.at(-1)?.y ?? Number.NaN)} a second`);
    this.#throughput.show(lines, `${this.#live.suite}: ${now.join(', ')}.`);
    const amplified = [...this.#amplified.values()].map(({ engine, kind, points }) => {
      const { label, dash } = KINDS[kind];
      return { engine, label: `${engine}, ${label}`, dash, points: [...points] };
    });
    const last = amplified.map(({ label, points }) => `${label} ${points.at(-1)?.y.toFixed(1)}`);
    this.#amplification.show(amplified, `${last.join('; ')}.`);
  }
}
