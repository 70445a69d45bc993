/**
 * Charts of the results as SVG files that need nothing else: no script, no font, no background.
 *
 * Invariant: colours follow the reader's theme, and nothing is told by colour alone: Varve's bars are also written bold,
 * and every bar has its figure beside it. Scales are logarithmic, as rates lie orders of magnitude apart.
 */

import { bestPeers, type Comparison, comparisonsOf, isSlower, ratioText } from '../comparison.ts';
import { rate, times } from '../figures.ts';
import type { Results } from './results.ts';
import { groupName, groupsOf, type ResultRow } from './row.ts';

/** A file below docs/results. */
export interface Chart {
  readonly file: string;
  readonly title: string;
  readonly svg: string;
}

/** Suites that have a chart of their own, by name and place. */
const SHOWN: readonly (readonly [suite: string, place: string])[] = [
  ['write-rand', 'in the worker'],
  ['read-rand-mem', 'in the worker'],
  ['read-rand-disk', 'in the worker'],
  ['range-100', 'in the worker'],
  ['mixed-70', 'in the worker'],
  ['write-rand', 'page, in flight'],
  ['read-rand-mem', 'page, in flight'],
];

const WIDTH = 860;
/** As wide as its longest names ask for. */
const OVERVIEW_LEFT = 450;
const LEFT = 250;
const RIGHT = 90;
const TOP = 46;
const STEP = 24;
const BAR = 15;
const NAME_CHARS_MAX = 64;

/** A bar: its name, its value on the axis, and what is written beside it. */
interface Bar {
  readonly name: string;
  readonly value: number;
  readonly low: number;
  readonly high: number;
  readonly label: string;
  readonly kind: 'varve' | 'peer' | 'floor' | 'slower';
}

/** All charts of the results. */
export function chartsOf(results: Results): Chart[] {
  const best = bestPeers(comparisonsOf(groupsOf(results.rows))).sort((a, b) => a.ratio - b.ratio);
  const groups = groupsOf(results.rows);
  return [
    ...(best.length === 0 ? [] : [overview(best)]),
    ...SHOWN.flatMap(([suite, place]) => {
      const group = groups.find(([row]) => row?.suite === suite && row.place === place && row.part === undefined);
      return group === undefined ? [] : [ratesOf(group)];
    }),
  ];
}

function overview(best: readonly Comparison<ResultRow>[]): Chart {
  const title = 'Varve beside the best peer of every suite: the line is the same rate, left of it Varve is slower';
  const bars = best.map((one): Bar => {
    const { varve, peer, ratio, low, high } = one;
    const name = `${groupName(varve)}${varve.engine.includes('indexeddb') || varve.engine.endsWith('each') ? `, ${varve.engine}` : ''}`;
    const label = `${ratioText(ratio)} ${peer.engine}`;
    return { name, value: ratio, low, high, label, kind: isSlower(one) ? 'slower' : 'varve' };
  });
  return {
    file: 'overview.svg',
    title,
    svg: svgOf(title, bars, { from: 1, left: OVERVIEW_LEFT, right: 190, write: times }),
  };
}

function ratesOf(group: readonly ResultRow[]): Chart {
  const [first] = group as [ResultRow];
  const title = `${groupName(first)}: ${first.unit} a second, on a logarithmic scale`;
  const bars = [...group]
    .sort((a, b) => b.opsPerSecond - a.opsPerSecond)
    .map((row): Bar => {
      const low = Math.min(...row.rounds);
      const high = Math.max(...row.rounds);
      const mark = row.verified ? '' : ' not verified';
      const label = `${rate(row.opsPerSecond)}${mark}`;
      return { name: row.engine, value: row.opsPerSecond, low, high, label, kind: row.role };
    });
  const name = `${first.suite} ${first.place}`.replaceAll(/[^\w-]+/g, '-');
  return { file: `${name}.svg`, title, svg: svgOf(title, bars, { left: LEFT, right: RIGHT, write: rate }) };
}

interface Look {
  /** Bars begin at this value, on either side of it; at the left end without it. */
  readonly from?: number;
  readonly left: number;
  readonly right: number;
  /** How a figure on the axis is written. */
  readonly write: (figure: number) => string;
}

function svgOf(title: string, bars: readonly Bar[], { from, left, right, write }: Look): string {
  // Of the values alone: the interval of a noisy row reaches over any number of decades, and is cut off at the ends.
  const values = bars.map(({ value }) => value).filter((value) => value > 0);
  const first = Math.floor(Math.log10(Math.min(...values, from ?? Number.POSITIVE_INFINITY)));
  const last = Math.max(Math.ceil(Math.log10(Math.max(...values, from ?? 0))), first + 1);
  const x = (value: number): number => {
    const share = (Math.log10(Math.max(value, 10 ** first)) - first) / (last - first);
    return left + Math.min(share, 1) * (WIDTH - left - right);
  };
  const height = TOP + bars.length * STEP + 26;
  const ticks = Array.from({ length: last - first + 1 }, (_, at) => 10 ** (first + at));
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-label="${escaped(title)}">`,
    `<title>${escaped(title)}</title>`,
    STYLE,
    `<text class="title" x="8" y="20">${escaped(title)}</text>`,
    ...ticks.map((value) => tick(x(value), height, write(value))),
    ...bars.map((bar, at) => barOf(bar, at, x, from, left)),
    ...(from === undefined ? [] : [line('zero', x(from), TOP - 8, x(from), height - 22)]),
    '</svg>',
  ].join('\n')}\n`;
}

function tick(at: number, height: number, text: string): string {
  return `${line('grid', at, TOP - 8, at, height - 22)}<text class="tick" x="${place(at)}" y="${height - 8}">${escaped(text)}</text>`;
}

function barOf(bar: Bar, at: number, x: (value: number) => number, from: number | undefined, left: number): string {
  const top = TOP + at * STEP;
  const middle = top + BAR / 2;
  const start = from === undefined ? left : x(from);
  const end = x(bar.value);
  const isTold = Number.isFinite(bar.low) && Number.isFinite(bar.high);
  const farthest = Math.max(start, end, isTold ? x(bar.high) : 0);
  return [
    `<text class="name ${bar.kind}" x="${left - 8}" y="${place(middle + 4)}">${escaped(shortened(bar.name))}</text>`,
    `<rect class="${bar.kind}" x="${place(Math.min(start, end))}" y="${top}" width="${place(Math.abs(end - start))}" height="${BAR}"/>`,
    isTold ? line('spread', x(bar.low), middle, x(bar.high), middle) : '',
    `<text class="label" x="${place(farthest + 6)}" y="${place(middle + 4)}">${escaped(bar.label)}</text>`,
  ].join('');
}

function line(kind: string, x1: number, y1: number, x2: number, y2: number): string {
  return `<line class="${kind}" x1="${place(x1)}" y1="${place(y1)}" x2="${place(x2)}" y2="${place(y2)}"/>`;
}

function place(at: number): string {
  return String(Number(at.toFixed(1)));
}

/** What fits beside the bars of the widest chart. */
function shortened(name: string): string {
  return name.length <= NAME_CHARS_MAX ? name : `${name.slice(0, NAME_CHARS_MAX - 1)}\u2026`;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}

/** Blue, grey and orange are told apart by the colour-blind as well. */
const STYLE = `<style>
text{font:12px system-ui,sans-serif;fill:#24292f}
.title{font-size:14px;font-weight:600}
.name{text-anchor:end}.name.varve,.name.slower{font-weight:700}
.tick{text-anchor:middle;fill:#57606a}
rect.varve{fill:#0969da}rect.slower{fill:#bc4c00}rect.peer{fill:#8c959f}rect.floor{fill:none;stroke:#8c959f;stroke-dasharray:3 2}
.grid{stroke:#d0d7de}.zero{stroke:#24292f;stroke-width:1.5}.spread{stroke:#24292f;stroke-width:1.5}
@media (prefers-color-scheme:dark){
text{fill:#e6edf3}.tick{fill:#9198a1}
rect.varve{fill:#4493f8}rect.slower{fill:#f0883e}rect.peer{fill:#656c76}rect.floor{stroke:#9198a1}
.grid{stroke:#30363d}.zero{stroke:#e6edf3}.spread{stroke:#e6edf3}
}
</style>`;
