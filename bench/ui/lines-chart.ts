/**
 * Lines of engines: throughput over time, latency distributions, amplification.
 *
 * Invariant: an engine is told by colour, dash and shape. A chart without a point says so in words and takes no room.
 */

import type { ChartDataset, ChartOptions } from 'chart.js';
import { axisStyle, Chart, ChartFrame, type Ink, inkOf, redrawOnTheme } from './chart-kit.ts';
import { lookOf } from './palette.ts';

/** A point of a line. */
export interface Point {
  readonly x: number;
  readonly y: number;
}

/** One line. */
export interface Line {
  readonly engine: string;
  /** Shown in the legend; the engine when absent. */
  readonly label?: string;
  readonly dash?: readonly number[];
  readonly points: readonly Point[];
}

/** One axis. */
export interface Axis {
  readonly title: string;
  readonly logarithmic: boolean;
  /** A figure at a tick and in the tooltip. */
  readonly text: (figure: number) => string;
  /** Whether a logarithmic axis has a label at this tick. */
  readonly isShown?: (figure: number) => boolean;
  readonly min?: number;
  readonly step?: number;
}

/** What a chart of lines is. */
export interface LinesOptions {
  readonly title: string;
  readonly note: string;
  readonly x: Axis;
  readonly y: Axis;
  readonly tools?: readonly HTMLElement[];
}

/** A chart of lines. */
export class LinesChart {
  readonly frame: ChartFrame;
  readonly #options: LinesOptions;
  #chart: Chart<'line', Point[]> | undefined;
  #lines: readonly Line[] = [];
  #logarithmic: boolean;

  constructor(options: LinesOptions) {
    this.#options = options;
    this.#logarithmic = options.y.logarithmic;
    this.frame = new ChartFrame(options.title, options.note, ...(options.tools ?? []));
    redrawOnTheme(this.frame, () => this.#renew());
  }

  /** Shows other lines, summed up in words. */
  show(lines: readonly Line[], summary: string): void {
    this.#lines = lines.filter(({ points }) => points.length > 0);
    this.frame.describe(summary);
    this.frame.element.hidden = this.#lines.length === 0;
    if (this.#lines.length === 0) return;
    if (this.#chart === undefined) this.#renew();
    else {
      this.#chart.data.datasets = this.#datasets();
      this.#chart.update('none');
    }
  }

  /** Makes the upward axis logarithmic, or linear. */
  set logarithmic(yes: boolean) {
    this.#logarithmic = yes;
    this.#renew();
  }

  /** Lets go of the canvas. */
  close(): void {
    this.#chart?.destroy();
    this.#chart = undefined;
  }

  #renew(): void {
    this.#chart?.destroy();
    this.#chart = undefined;
    if (this.#lines.length === 0 || !this.frame.element.isConnected) return;
    const ink = inkOf();
    const { x, y } = this.#options;
    this.#chart = new Chart<'line', Point[]>(this.frame.canvas, {
      type: 'line',
      data: { datasets: this.#datasets() },
      options: {
        parsing: false,
        normalized: true,
        interaction: { mode: 'nearest', intersect: false },
        scales: { x: scaleOf(x, x.logarithmic, ink), y: scaleOf(y, this.#logarithmic, ink) },
        plugins: {
          legend: {
            position: 'bottom',
            labels: { color: ink.text, usePointStyle: true, boxHeight: 8, padding: 14 },
          },
          tooltip: {
            callbacks: {
              title: ([item]) => (item === undefined ? '' : x.text((item.raw as Point).x)),
              label: (item) => `${item.dataset.label}: ${y.text((item.raw as Point).y)}`,
            },
          },
        },
      },
    });
  }

  #datasets(): ChartDataset<'line', Point[]>[] {
    return this.#lines.map(({ engine, label, dash, points }) => {
      const look = lookOf(engine);
      const every = Math.max(1, Math.ceil(points.length / 8));
      return {
        label: label ?? engine,
        data: [...points],
        borderColor: look.colour,
        backgroundColor: look.colour,
        borderWidth: look.width,
        borderDash: dash === undefined ? look.dash : [...dash],
        pointStyle: look.shape,
        // A shape now and then is enough to tell a line by.
        pointRadius: points.map((_, i) => (i % every === 0 ? 4 : 0)),
        pointHoverRadius: 6,
        tension: 0,
      };
    });
  }
}

type Scale = NonNullable<NonNullable<ChartOptions<'line'>['scales']>[string]>;

function scaleOf(axis: Axis, logarithmic: boolean, ink: Ink): Scale {
  const style = axisStyle(ink);
  const callback = (value: number | string): string => {
    const figure = Number(value);
    return logarithmic && axis.isShown?.(figure) === false ? '' : axis.text(figure);
  };
  return {
    type: logarithmic ? 'logarithmic' : 'linear',
    ...style,
    ...(axis.min === undefined || logarithmic ? {} : { min: axis.min }),
    title: { display: true, text: axis.title, color: ink.faint },
    ticks: { ...style.ticks, callback, maxRotation: 0, autoSkipPadding: 12 },
  } as Scale;
}
