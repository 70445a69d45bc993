/**
 * What the charts of the page share: the parts of Chart.js that they use, texts and colours, and a text for those who do
 * not see them.
 *
 * Invariant: a chart moves nothing by itself (no animation), so that it takes time only when it is given data, and it
 * is drawn anew when the theme changes. Every chart stands beside a table with its figures; its label sums it up.
 */

import {
  BarController,
  BarElement,
  CategoryScale,
  Chart,
  Legend,
  LinearScale,
  LineController,
  LineElement,
  LogarithmicScale,
  PointElement,
  Tooltip,
} from 'chart.js';
import { make } from './dom.ts';
import { colour, onTheme } from './theme.ts';

Chart.register(
  BarController,
  BarElement,
  CategoryScale,
  Legend,
  LinearScale,
  LineController,
  LineElement,
  LogarithmicScale,
  PointElement,
  Tooltip,
);
Chart.defaults.animation = false;
Chart.defaults.maintainAspectRatio = false;
Chart.defaults.responsive = true;
Chart.defaults.font.family = 'system-ui, sans-serif';

export { Chart };

/** The colours of a chart's surroundings. */
export interface Ink {
  readonly text: string;
  readonly faint: string;
  readonly line: string;
  readonly ground: string;
  readonly good: string;
  readonly bad: string;
}

/** The colours of now. */
export function inkOf(): Ink {
  return {
    text: colour('--ink'),
    faint: colour('--faint'),
    line: colour('--line'),
    ground: colour('--panel'),
    good: colour('--good'),
    bad: colour('--bad'),
  };
}

/** A place for a chart: a figure with a title and a canvas that has a label. */
export class ChartFrame {
  readonly element: HTMLElement;
  readonly canvas = make('canvas', { attributes: { role: 'img' } });
  readonly #title = make('span');
  readonly #note = make('small');
  readonly #room = make('div', { class: 'room' });

  constructor(title: string, note: string, ...tools: HTMLElement[]) {
    this.#room.append(this.canvas);
    const head = make('figcaption', {}, make('div', {}, this.#title, this.#note), ...tools);
    this.element = make('figure', { class: 'chart' }, head, this.#room);
    this.name(title, note);
  }

  /** Names the chart. */
  name(title: string, note: string): void {
    this.#title.textContent = title;
    this.#note.textContent = note;
  }

  /** What the chart says, in words. */
  describe(summary: string): void {
    this.canvas.setAttribute('aria-label', `${this.#title.textContent}. ${summary}`);
  }

  /** Makes room for so many pixels. */
  set height(pixels: number) {
    this.#room.style.height = `${pixels}px`;
  }
}

/** The options of an axis that every chart has alike. */
export function axisStyle(ink: Ink): { grid: { color: string }; border: { color: string }; ticks: { color: string } } {
  return { grid: { color: ink.line }, border: { color: ink.line }, ticks: { color: ink.faint } };
}

/** Draws now, and again whenever the theme changes, while the frame is on the page. */
export function redrawOnTheme(frame: ChartFrame, draw: () => void): void {
  const end = onTheme(() => {
    if (frame.element.isConnected) draw();
    else end();
  });
}

/** 1, 2 and 5 of each power of ten: what a logarithmic axis names. */
export function isRound(figure: number): boolean {
  const mantissa = figure / 10 ** Math.floor(Math.log10(figure) + 1e-9);
  return [1, 2, 5].some((wanted) => Math.abs(mantissa - wanted) < 1e-6);
}

/** A ratio at an axis: 0.5x, 1x, 20x. */
export function ratioTick(figure: number): string {
  return `${Number(figure.toPrecision(2))}x`;
}
