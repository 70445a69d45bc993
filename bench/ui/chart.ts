/**
 * The one chart of the page, by Chart.js: horizontal bars of ratios from 1x, with their intervals.
 *
 * Invariant: the chart moves nothing by itself, and stands beside a table with its figures. Every bar has its figure written
 * beside it, so that colour tells nothing alone; its label sums the chart up for those who do not see it.
 */

import {
  BarController,
  BarElement,
  CategoryScale,
  Chart,
  LinearScale,
  LogarithmicScale,
  type Plugin,
  Tooltip,
} from 'chart.js';
import type { Ratio } from '../core/compare/rounds.ts';
import { ratioText } from '../core/comparison.ts';
import { make } from './dom.ts';

Chart.register(BarController, BarElement, CategoryScale, LinearScale, LogarithmicScale, Tooltip);
Object.assign(Chart.defaults, { animation: false, maintainAspectRatio: false });

/** One bar. */
export interface Bar extends Ratio {
  readonly label: string;
}

/** More bars are no picture any more; the table has all. */
const BARS_MAX = 30;
const BAR_PX = 24;
const AROUND_PX = 70;

/** A colour of the style sheet as canvases take it. */
function colour(name: string): string {
  const probe = make('span', { style: `color: var(${name})` });
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

/** Draws the interval over each bar, and its figure beside it. */
function intervals(bars: readonly Bar[], ink: string): Plugin<'bar'> {
  return {
    id: 'intervals',
    afterDatasetsDraw(drawn) {
      const { ctx, chartArea } = drawn;
      const scale = drawn.scales['x'];
      if (scale === undefined) return;
      const at = (ratio: number): number =>
        Math.min(chartArea.right, Math.max(chartArea.left, scale.getPixelForValue(ratio)));
      ctx.save();
      Object.assign(ctx, { strokeStyle: ink, fillStyle: ink, textBaseline: 'middle', font: '12px system-ui' });
      bars.forEach(({ ratio, low, high }, i) => {
        const y = drawn.getDatasetMeta(0).data[i]?.y;
        if (y === undefined) return;
        const ends = Number.isFinite(low) && Number.isFinite(high) ? [at(low), at(high)] : [at(ratio), at(ratio)];
        ctx.beginPath();
        ctx.moveTo(ends[0] as number, y);
        ctx.lineTo(ends[1] as number, y);
        ctx.stroke();
        ctx.fillText(ratioText(ratio), Math.max(at(1), at(ratio), ...ends) + 6, y);
      });
      ctx.restore();
    },
  };
}

let chart: Chart<'bar', number[]> | undefined;

/** Shows these bars, the worst first, in the place; hides it where there are none. */
export function showRatios(place: HTMLElement, title: string, all: readonly Bar[]): void {
  chart?.destroy();
  chart = undefined;
  const bars = [...all].sort((a, b) => a.ratio - b.ratio).slice(0, BARS_MAX);
  place.hidden = bars.length === 0;
  if (bars.length === 0) return;
  const cut = bars.length < all.length ? `; the ${BARS_MAX} worst of ${all.length}` : '';
  const said = `${title}${cut}. ${bars.map(({ label, ratio }) => `${label} ${ratioText(ratio)}`).join(', ')}.`;
  const canvas = make('canvas', { role: 'img', 'aria-label': said });
  const room = make('div', { class: 'room', style: `height: ${bars.length * BAR_PX + AROUND_PX}px` }, canvas);
  place.replaceChildren(make('figcaption', {}, `${title}${cut}`), room);
  const [ink, line, good, bad] = ['--ink', '--line', '--good', '--bad'].map(colour) as [string, string, string, string];
  const isSure = ({ low, high }: Bar): boolean => low > 1 || high < 1;
  chart = new Chart<'bar', number[]>(canvas, {
    type: 'bar',
    data: {
      labels: bars.map(({ label }) => label),
      datasets: [
        {
          data: bars.map(({ ratio }) => ratio),
          // An outline is within noise.
          backgroundColor: bars.map((bar) => (!isSure(bar) ? 'transparent' : bar.ratio < 1 ? bad : good)),
          borderColor: bars.map(({ ratio }) => (ratio < 1 ? bad : good)),
          borderWidth: 1.5,
          borderSkipped: false,
          base: 1,
          categoryPercentage: 0.7,
        },
      ],
    },
    options: {
      indexAxis: 'y',
      layout: { padding: { right: 60 } },
      scales: {
        x: {
          type: 'logarithmic',
          grid: { color: line },
          ticks: { color: ink, callback: (value) => (Number.isInteger(Math.log10(Number(value))) ? `${value}x` : '') },
        },
        y: { grid: { display: false }, ticks: { color: ink, autoSkip: false } },
      },
      plugins: {
        tooltip: { callbacks: { label: ({ dataIndex }) => ratioText(bars[dataIndex]?.ratio ?? Number.NaN) } },
      },
    },
    plugins: [intervals(bars, ink)],
  });
}
