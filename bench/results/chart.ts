/**
 * A chart of ratios: an SVG that needs nothing else, no script, no font, no background. For the results page.
 *
 * Invariant: colours follow the reader's theme, and nothing is said by colour alone: every bar has its figures beside it. The
 * scale is logarithmic, as rates lie orders of magnitude apart.
 */

import { type Comparison, ratioText } from '../core/comparison.ts';
import { axisOf, rate, times } from '../core/figures.ts';
import type { Ratio } from '../core/ratio.ts';

interface Bar extends Ratio {
  readonly name: string;
  readonly label: string;
}

export function barOf({ varve, peer, ratio, low, high }: Comparison, name: string): Bar {
  const label = `${ratioText(ratio)}: ${rate(varve.opsPerSecond)}/s, ${peer.engine} ${rate(peer.opsPerSecond)}/s`;
  return { name, label, ratio, low, high };
}

const ROOM = 300;
const RIGHT = 250;
/** Of a letter of a name, about. */
const LETTER = 7.6;
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

export function chartOf(title: string, bars: readonly Bar[]): string {
  const left = 20 + LETTER * Math.max(...bars.map(({ name }) => name.length));
  const width = left + ROOM + RIGHT;
  // Of the values alone: the interval of a noisy row reaches over any number of decades, and is cut off at the ends.
  const axis = axisOf(bars.map(({ ratio }) => ratio));
  const x = (value: number): number => left + axis.share(value) * ROOM;
  const height = TOP + bars.length * STEP + 26;
  const ticks = axis.ticks.map((value) => {
    const at = x(value);
    return line('grid', at, TOP - 8, at, height - 22) + words('tick', at, height - 8, times(value));
  });
  const size = `viewBox="0 0 ${place(width)} ${height}" width="${place(width)}" height="${height}"`;
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" ${size} role="img" aria-label="${escaped(title)}">`,
    `<title>${escaped(title)}</title>`,
    STYLE,
    words('title', 8, 20, title),
    ...ticks,
    ...bars.map((bar, i) => drawn(bar, TOP + i * STEP, left, x)),
    line('zero', x(1), TOP - 8, x(1), height - 22),
    '</svg>',
  ].join('\n')}\n`;
}

function drawn({ ratio, low, high, name, label }: Bar, top: number, left: number, x: (value: number) => number) {
  const middle = top + BAR / 2;
  const [from, to] = [Math.min(x(1), x(ratio)), Math.max(x(1), x(ratio))];
  const hasEnds = Number.isFinite(low) && Number.isFinite(high);
  return [
    words('name', left - 8, middle + 4, name),
    `<rect class="${ratio < 1 ? 'slower' : 'varve'}" x="${place(from)}" y="${top}" width="${place(to - from)}" height="${BAR}"/>`,
    hasEnds ? line('spread', x(low), middle, x(high), middle) : '',
    words('label', Math.max(to, hasEnds ? x(high) : 0) + 6, middle + 4, label),
  ].join('');
}
