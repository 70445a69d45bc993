/**
 * The chart of the results: an SVG file that needs nothing else, no script, no font, no background.
 *
 * Invariant: colours follow the reader's theme, and nothing is told by colour alone: every bar has its figures beside it. The
 * scale is logarithmic, as rates lie orders of magnitude apart.
 */

import { bestPeers, type Comparison, ratioText } from '../core/comparison.ts';
import { rate, times } from '../core/figures.ts';

/** Its name below docs/results. */
export const CHART = 'headlines.svg';

/** Its bars, in its order. */
const BARS: readonly (readonly [suite: string, access: string, name: string])[] = [
  ['read-rand-mem', 'worker', 'get, in memory'],
  ['read-rand-disk', 'worker', 'get, from tables'],
  ['write-rand', 'worker', 'set'],
  ['write-batch', 'worker', 'batches of 100, entries'],
  ['range-100', 'worker', 'ranges of 100'],
  ['mixed-70', 'worker', '70% gets, 30% sets'],
  ['strict-set', 'worker', 'set, flushed to the disk'],
  ['open', 'worker', 'open and first get'],
  ['read-rand-mem', 'page', 'get from the page, awaited'],
  ['write-rand', 'page', 'set from the page, awaited'],
  ['read-rand-mem', 'inflight', 'get from the page, 100 in flight'],
  ['write-rand', 'inflight', 'set from the page, 100 in flight'],
];

const TITLE = 'Varve beside the fastest peer, in times its rate. Left of the line Varve is slower';
const WIDTH = 860;
const LEFT = 310;
const RIGHT = 250;
const TOP = 46;
const STEP = 24;
const BAR = 15;
const STYLE = `<style>
text{font:12px system-ui,sans-serif;fill:#24292f}
.title{font-size:14px;font-weight:600}
.name{text-anchor:end;font-weight:700}
.tick{text-anchor:middle;fill:#57606a}
.varve{fill:#0969da}.slower{fill:#bc4c00}
.grid{stroke:#d0d7de}.zero,.spread{stroke:#24292f;stroke-width:1.5}
@media (prefers-color-scheme:dark){
text{fill:#e6edf3}.tick{fill:#9198a1}
.varve{fill:#4493f8}.slower{fill:#f0883e}
.grid{stroke:#30363d}.zero,.spread{stroke:#e6edf3}
}
</style>`;

const place = (at: number): string => String(Number(at.toFixed(1)));
const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
const words = (kind: string, x: number, y: number, text: string): string =>
  `<text class="${kind}" x="${place(x)}" y="${place(y)}">${escaped(text)}</text>`;
const line = (kind: string, x1: number, y1: number, x2: number, y2: number): string =>
  `<line class="${kind}" x1="${place(x1)}" y1="${place(y1)}" x2="${place(x2)}" y2="${place(y2)}"/>`;

/** The chart; undefined where there is nothing to draw. */
export function chartOf(comparisons: readonly Comparison[]): string | undefined {
  const best = bestPeers(comparisons).filter(
    ({ varve }) => varve.phase === undefined && !varve.engine.includes('indexeddb'),
  );
  const bars = BARS.flatMap(([suite, access, name]) =>
    best.filter(({ varve }) => varve.suite === suite && varve.access === access).map((one) => ({ ...one, name })),
  );
  if (bars.length === 0) return undefined;
  // Of the values alone: the interval of a noisy row reaches over any number of decades, and is cut off at the ends.
  const first = Math.floor(Math.log10(Math.min(1, ...bars.map(({ ratio }) => ratio))));
  const last = Math.max(Math.ceil(Math.log10(Math.max(1, ...bars.map(({ ratio }) => ratio)))), first + 1);
  const x = (value: number): number => {
    const share = (Math.log10(Math.max(value, 10 ** first)) - first) / (last - first);
    return LEFT + Math.min(share, 1) * (WIDTH - LEFT - RIGHT);
  };
  const height = TOP + bars.length * STEP + 26;
  const ticks = Array.from({ length: last - first + 1 }, (_, i) => 10 ** (first + i)).map((value) => {
    const at = x(value);
    return line('grid', at, TOP - 8, at, height - 22) + words('tick', at, height - 8, times(value));
  });
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-label="${TITLE}">`,
    `<title>${TITLE}</title>`,
    STYLE,
    words('title', 8, 20, TITLE),
    ...ticks,
    ...bars.map((bar, i) => barOf(bar, TOP + i * STEP, x)),
    line('zero', x(1), TOP - 8, x(1), height - 22),
    '</svg>',
  ].join('\n')}\n`;
}

function barOf(bar: Comparison & { name: string }, top: number, x: (value: number) => number): string {
  const { varve, peer, ratio, low, high, name } = bar;
  const middle = top + BAR / 2;
  const [from, to] = [Math.min(x(1), x(ratio)), Math.max(x(1), x(ratio))];
  const isTold = Number.isFinite(low) && Number.isFinite(high);
  const how = varve.engine === 'varve-sync-each' ? ', committed one by one' : '';
  const label = `${ratioText(ratio)}: ${rate(varve.opsPerSecond)}/s, ${peer.engine} ${rate(peer.opsPerSecond)}/s`;
  return [
    words('name', LEFT - 8, middle + 4, name + how),
    `<rect class="${ratio < 1 ? 'slower' : 'varve'}" x="${place(from)}" y="${top}" width="${place(to - from)}" height="${BAR}"/>`,
    isTold ? line('spread', x(low), middle, x(high), middle) : '',
    words('label', Math.max(to, isTold ? x(high) : 0) + 6, middle + 4, label),
  ].join('');
}
