/**
 * Charts of the results as SVG files that need nothing else: no script, no font, no background.
 *
 * Invariant: colours follow the reader's theme, and nothing is told by colour alone: Varve's bars are also written bold,
 * and every bar has its figure beside it. Scales are logarithmic, as rates lie orders of magnitude apart.
 */

import { bestPeers, type Comparison, comparisonsOf, isSlower, ratioText } from '../core/comparison.ts';
import { rate, times } from '../core/figures.ts';
import { lifeCharts } from './life-charts.ts';
import type { Results } from './results.ts';
import { groupName, groupsOf, type ResultRow } from './row.ts';
import { line, place, svgOf, WIDTH, words } from './svg.ts';

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

/** The chart of the README. */
export const HEADLINES = 'headlines.svg';

/** Its bars, in its order. */
const HEADLINE_ROWS: readonly (readonly [suite: string, place: string, name: string])[] = [
  ['read-rand-mem', 'in the worker', 'get, in memory'],
  ['read-rand-disk', 'in the worker', 'get, from tables'],
  ['write-rand', 'in the worker', 'set'],
  ['write-batch', 'in the worker', 'batches of 100, entries'],
  ['range-100', 'in the worker', 'ranges of 100'],
  ['mixed-70', 'in the worker', '70% gets, 30% sets'],
  ['strict-set', 'in the worker', 'set, flushed to the disk'],
  ['open', 'in the worker', 'open and first get'],
  ['read-rand-mem', 'page, awaited', 'get from the page, awaited'],
  ['write-rand', 'page, awaited', 'set from the page, awaited'],
  ['read-rand-mem', 'page, in flight', 'get from the page, 100 in flight'],
  ['write-rand', 'page, in flight', 'set from the page, 100 in flight'],
];

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
    ...(best.length === 0 ? [] : [headlines(best), overview(best)]),
    ...SHOWN.flatMap(([suite, place]) => {
      const group = groups.find(([row]) => row?.suite === suite && row.place === place && row.part === undefined);
      return group === undefined ? [] : [ratesOf(group)];
    }),
    ...lifeCharts(groups),
  ];
}

function headlines(best: readonly Comparison<ResultRow>[]): Chart {
  const title = 'Varve beside the fastest peer, in times its rate. Left of the line Varve is slower';
  const bars = HEADLINE_ROWS.flatMap(([suite, where, name]) =>
    best
      .filter(({ varve }) => varve.suite === suite && varve.place === where && varve.part === undefined)
      .filter(({ varve }) => !varve.engine.includes('indexeddb'))
      .map((one): Bar => {
        const { varve, peer, ratio, low, high } = one;
        const label = `${ratioText(ratio)}: ${rate(varve.opsPerSecond)}/s, ${peer.engine} ${rate(peer.opsPerSecond)}/s`;
        const kind = isSlower(one) ? 'slower' : 'varve';
        const how = varve.engine === 'varve-sync-each' ? ', committed one by one' : '';
        return { name: name + how, value: ratio, low, high, label, kind };
      }),
  );
  return { file: HEADLINES, title, svg: barsOf(title, bars, { from: 1, left: 310, right: 250, write: times }) };
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
    svg: barsOf(title, bars, { from: 1, left: OVERVIEW_LEFT, right: 190, write: times }),
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
  return { file: `${name}.svg`, title, svg: barsOf(title, bars, { left: LEFT, right: RIGHT, write: rate }) };
}

interface Look {
  /** Bars begin at this value, on either side of it; at the left end without it. */
  readonly from?: number;
  readonly left: number;
  readonly right: number;
  /** How a figure on the axis is written. */
  readonly write: (figure: number) => string;
}

function barsOf(title: string, bars: readonly Bar[], { from, left, right, write }: Look): string {
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
  return svgOf(title, height, [
    ...ticks.map((value) => tick(x(value), height, write(value))),
    ...bars.map((bar, at) => barOf(bar, at, x, from, left)),
    ...(from === undefined ? [] : [line('zero', x(from), TOP - 8, x(from), height - 22)]),
  ]);
}

function tick(at: number, height: number, text: string): string {
  return `${line('grid', at, TOP - 8, at, height - 22)}${words('tick', at, height - 8, text)}`;
}

function barOf(bar: Bar, at: number, x: (value: number) => number, from: number | undefined, left: number): string {
  const top = TOP + at * STEP;
  const middle = top + BAR / 2;
  const start = from === undefined ? left : x(from);
  const end = x(bar.value);
  const isTold = Number.isFinite(bar.low) && Number.isFinite(bar.high);
  const farthest = Math.max(start, end, isTold ? x(bar.high) : 0);
  return [
    words(`name ${bar.kind}`, left - 8, middle + 4, shortened(bar.name)),
    `<rect class="${bar.kind}" x="${place(Math.min(start, end))}" y="${top}" width="${place(Math.abs(end - start))}" height="${BAR}"/>`,
    isTold ? line('spread', x(bar.low), middle, x(bar.high), middle) : '',
    words('label', farthest + 6, middle + 4, bar.label),
  ].join('');
}

/** What fits beside the bars of the widest chart. */
function shortened(name: string): string {
  return name.length <= NAME_CHARS_MAX ? name : `${name.slice(0, NAME_CHARS_MAX - 1)}\u2026`;
}
