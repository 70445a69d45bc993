/**
 * Horizontal bars with their spread: the rates of the engines in one case, and the ratios of all cases.
 *
 * Invariant: a bar has its figure written beside it and its spread drawn over it (a line with ends); the bar that
 * counts most is told by more than its colour: words stand in its label.
 */

import type { Plugin } from 'chart.js';
import { axisStyle, Chart, ChartFrame, inkOf, isRound, redrawOnTheme } from './chart-kit.ts';

/** One bar. */
export interface Bar {
  readonly label: string;
  readonly value: number;
  /** Ends of the spread. */
  readonly low: number;
  readonly high: number;
  readonly colour: () => string;
  /** An outline instead of a filled bar: floors, which are no stores. */
  readonly hollow?: boolean;
  /** Bold in the labels. */
  readonly strong?: boolean;
}

/** What a chart of bars is. */
export interface BarsOptions {
  readonly title: string;
  readonly note: string;
  readonly axis: string;
  readonly text: (figure: number) => string;
  /** A figure at the axis; `text` when absent. */
  readonly tick?: (figure: number) => string;
  /** Bars grow from here in both directions; from the least when absent. */
  readonly base?: number;
  readonly tools?: readonly HTMLElement[];
}

const BAR_PX = 26;
/** Where the labels stand over their bars, as there is no room beside them. */
const NARROW_BAR_PX = 42;
const NARROW_PX = 620;
const AROUND_PX = 84;
/** Less leaves the axis too little for its title. */
const LEAST_PX = 180;
/** How far from its bar a spread is shown at most, as a factor. */
const SPREAD_MAX = 3;

/** A chart of horizontal bars. */
export class BarsChart {
  readonly frame: ChartFrame;
  readonly #options: BarsOptions;
  #chart: Chart<'bar', number[]> | undefined;
  #bars: readonly Bar[] = [];
  #logarithmic = true;

  constructor(options: BarsOptions) {
    this.#options = options;
    this.frame = new ChartFrame(options.title, options.note, ...(options.tools ?? []));
    redrawOnTheme(this.frame, () => this.#renew());
  }

  /** Shows other bars, summed up in words. */
  show(bars: readonly Bar[], summary: string): void {
    this.#bars = bars;
    this.frame.describe(summary);
    this.frame.element.hidden = bars.length === 0;
    this.#renew();
  }

  /** Makes the axis logarithmic, or linear. */
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
    this.close();
    const bars = this.#bars;
    if (bars.length === 0 || !this.frame.element.isConnected) return;
    const ink = inkOf();
    const style = axisStyle(ink);
    const { base, text, axis, tick = text } = this.#options;
    const narrow = this.frame.canvas.parentElement!.clientWidth < NARROW_PX;
    this.frame.height = Math.max(LEAST_PX, bars.length * (narrow ? NARROW_BAR_PX : BAR_PX) + AROUND_PX);
    const { min, max } = this.#limits();
    this.#chart = new Chart<'bar', number[]>(this.frame.canvas, {
      type: 'bar',
      data: {
        labels: bars.map(({ label }) => label),
        datasets: [
          {
            data: bars.map(({ value }) => value),
            backgroundColor: bars.map(({ colour, hollow }) => (hollow ? 'transparent' : colour())),
            borderColor: bars.map(({ colour }) => colour()),
            borderWidth: bars.map(({ hollow }) => (hollow ? 1.5 : 0)),
            borderSkipped: false,
            barPercentage: narrow ? 0.38 : 0.72,
            categoryPercentage: 1,
            base: base ?? min,
          },
        ],
      },
      options: {
        indexAxis: 'y',
        layout: { padding: { top: 8, right: 56, left: narrow && base !== undefined ? 36 : 0 } },
        onResize: (_, { width }) => {
          // A turned phone, or a window made smaller: labels go over the bars, or beside them.
          if (width < NARROW_PX !== narrow) queueMicrotask(() => this.#renew());
        },
        scales: {
          x: {
            type: this.#logarithmic ? 'logarithmic' : 'linear',
            min,
            max,
            ...style,
            title: {
              display: true,
              text: [axis, ...(this.#logarithmic ? ['logarithmic'] : [])],
              color: ink.faint,
            },
            ticks: {
              ...style.ticks,
              maxRotation: 0,
              autoSkipPadding: 14,
              callback: (value) => (this.#logarithmic && !isRound(Number(value)) ? '' : tick(Number(value))),
            },
          },
          y: {
            ...style,
            grid: { display: false },
            ticks: {
              display: !narrow,
              color: ink.text,
              autoSkip: false,
              crossAlign: 'far',
              font: ({ index }) => ({ weight: bars[index]?.strong ? 'bold' : 'normal' }),
            },
          },
        },
        plugins: {
          legend: { display: false },
          tooltip: {
            callbacks: {
              label: ({ dataIndex }) => {
                const bar = bars[dataIndex] as Bar;
                return `${text(bar.value)} (${text(bar.low)} to ${text(bar.high)})`;
              },
            },
          },
        },
      },
      plugins: [spread(bars, this.#options, ink.text, narrow)],
    });
  }

  #limits(): { min: number; max: number } {
    const { base } = this.#options;
    // An interval of few rounds can reach anywhere: it is cut off rather than that it presses the bars together.
    const ends = this.#bars.flatMap(({ value, low, high }) => [
      value,
      Math.max(low, value / SPREAD_MAX),
      Math.min(high, value * SPREAD_MAX),
    ]);
    const finite = ends.filter((figure) => Number.isFinite(figure) && figure > 0);
    const [least, most] = [Math.min(...finite, base ?? Infinity), Math.max(...finite, base ?? 0)];
    if (!this.#logarithmic) return { min: 0, max: most * 1.02 };
    const decade = 10 ** Math.floor(Math.log10(least * 0.8));
    // Figures of bars that go down from the base stand on their left.
    return { min: base === undefined ? decade : least * (least < base ? 0.55 : 0.8), max: most * 1.15 };
  }
}

/** As much of a text as there is room for. */
function fitted(ctx: CanvasRenderingContext2D, text: string, width: number): string {
  if (ctx.measureText(text).width <= width) return text;
  let end = text.length;
  while (end > 0 && ctx.measureText(`${text.slice(0, end)}\u2026`).width > width) end--;
  return `${text.slice(0, end)}\u2026`;
}

/** Draws the spread over each bar, its figure beside it and, where it is narrow, its label above it. */
function spread(bars: readonly Bar[], { base, text }: BarsOptions, ink: string, isLabelled: boolean): Plugin<'bar'> {
  return {
    id: 'spread',
    afterDatasetsDraw(chart) {
      const { ctx, chartArea } = chart;
      const scale = chart.scales['x'];
      if (scale === undefined) return;
      const at = (figure: number): number =>
        Math.min(chartArea.right, Math.max(chartArea.left, scale.getPixelForValue(figure)));
      ctx.save();
      ctx.strokeStyle = ink;
      ctx.fillStyle = ink;
      ctx.lineWidth = 1.25;
      ctx.textBaseline = 'middle';
      bars.forEach(({ label, strong, value, low, high }, i) => {
        const y = chart.getDatasetMeta(0).data[i]?.y;
        if (y === undefined) return;
        const [from, to] = [at(Math.max(low, scale.min)), at(Math.min(high, scale.max))];
        ctx.beginPath();
        for (const [x, y0, y1] of [[from, y - 4, y + 4] as const, [to, y - 4, y + 4] as const]) {
          ctx.moveTo(x, y0);
          ctx.lineTo(x, y1);
        }
        ctx.moveTo(from, y);
        ctx.lineTo(to, y);
        ctx.stroke();
        ctx.font = `${strong ? 'bold ' : ''}12px system-ui, sans-serif`;
        ctx.textAlign = 'left';
        if (isLabelled) ctx.fillText(fitted(ctx, label, chart.width - 8), 4, y - 17);
        ctx.font = '12px system-ui, sans-serif';
        const isBelow = base !== undefined && value < base;
        ctx.textAlign = isBelow ? 'right' : 'left';
        ctx.fillText(text(value), isBelow ? Math.min(from, at(value)) - 6 : Math.max(to, at(value)) + 6, y);
      });
      ctx.restore();
    },
  };
}
