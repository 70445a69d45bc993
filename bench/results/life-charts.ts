/**
 * The lives over their steps: rate, p99, disk and memory of every engine, one below the other in one chart.
 *
 * Invariant: a line is named at its end, so that colour tells nothing alone. Upward scales are logarithmic. A figure
 * that no engine tells has no panel.
 */

import { bytes, duration, rate } from '../core/figures.ts';
import { at } from '../core/generator.ts';
import type { Chart } from './charts.ts';
import { groupName, type LifePoint, type ResultRow } from './row.ts';
import { line, place, svgOf, WIDTH, words } from './svg.ts';

/** One figure over time. */
interface Panel {
  readonly title: string;
  readonly figure: (point: LifePoint) => number | null;
  readonly text: (figure: number) => string;
  /** What lies between two ticks is this many times as much. */
  readonly base: number;
}

const PANELS: readonly Panel[] = [
  { title: 'steps a second', figure: ([, perSecond]) => perSecond, text: rate, base: 10 },
  { title: 'p99 of a step', figure: ([, , p99]) => p99, text: duration, base: 10 },
  { title: 'on disk', figure: ([, , , disk]) => disk, text: bytes, base: 16 },
  { title: 'in memory, as the store tells', figure: ([, , , , memory]) => memory, text: bytes, base: 16 },
];

const LEFT = 70;
const RIGHT = 170;
const TOP = 50;
const PANEL = 120;
const STEP = 160;
/** Between two names. */
const NAME = 13;
/** Of lines, beside what every chart has. */
const STYLE = `<style>
polyline{fill:none;stroke-width:1.25}polyline.varve{stroke:#0969da;stroke-width:2.5}polyline.peer{stroke:#8c959f}.label.varve{font-weight:700}
@media (prefers-color-scheme:dark){polyline.varve{stroke:#4493f8}polyline.peer{stroke:#656c76}}
</style>`;
const DASHES = ['', '7 3', '2 3', '9 3 2 3', '4 2'];

/** One line of a panel. */
interface Line {
  readonly row: ResultRow;
  readonly dash: string;
  readonly points: readonly (readonly [steps: number, figure: number])[];
}

/** A chart for each group of rows that lived. */
export function lifeCharts(groups: readonly (readonly ResultRow[])[]): Chart[] {
  return groups.flatMap((group) => {
    const lived = group.filter(({ life }) => life !== undefined);
    return lived.length === 0 ? [] : [chartOf(lived)];
  });
}

function chartOf(rows: readonly ResultRow[]): Chart {
  const [{ suite, place: where }] = rows as [ResultRow];
  const title = `${groupName({ suite, place: where })} over its steps, on logarithmic scales`;
  const most = Math.max(...rows.flatMap(({ life = [] }) => life.map(([steps]) => steps)));
  const x = (steps: number): number => LEFT + (steps / most) * (WIDTH - LEFT - RIGHT);
  const panels = PANELS.map((panel) => ({ panel, lines: linesOf(panel, rows) })).filter(
    ({ lines }) => lines.length > 0,
  );
  const parts = panels.flatMap(({ panel, lines }, i) => panelParts(panel, lines, TOP + i * STEP, x));
  const height = TOP + panels.length * STEP;
  const ends = [0, most].map((steps) =>
    words('tick', x(steps), height - 16, steps === 0 ? '0' : `${rate(steps)} steps`),
  );
  const file = `${suite} ${where} life`.replaceAll(/[^\w-]+/g, '-');
  return { file: `${file}.svg`, title, svg: svgOf(title, height, [STYLE, ...parts, ...ends]) };
}

function linesOf({ figure }: Panel, rows: readonly ResultRow[]): Line[] {
  return rows.flatMap((row, i) => {
    const points = (row.life ?? []).flatMap((point) => {
      const value = figure(point);
      // A logarithmic scale has no place for nothing.
      return value === null || value <= 0 ? [] : [[point[0], value] as const];
    });
    return points.length === 0 ? [] : [{ row, dash: DASHES[i % DASHES.length] ?? '', points }];
  });
}

function panelParts({ title, text, base }: Panel, lines: readonly Line[], top: number, x: (steps: number) => number) {
  const log = (value: number): number => Math.log(value) / Math.log(base);
  const values = lines.flatMap(({ points }) => points.map(([, value]) => value));
  const low = Math.floor(log(Math.min(...values)));
  const high = Math.max(Math.ceil(log(Math.max(...values))), low + 1);
  const y = (value: number): number => top + PANEL - ((log(value) - low) / (high - low)) * PANEL;
  const ticks = Array.from({ length: high - low + 1 }, (_, i) => base ** (low + i));
  const ends = lines.map(({ points }) => at(points, points.length - 1));
  const names = namePlaces(
    ends.map(([, value]) => y(value)),
    top + PANEL + NAME,
  );
  return [
    words('label', LEFT, top - 8, title),
    ...ticks.flatMap((tick) => [
      line('grid', LEFT, y(tick), WIDTH - RIGHT, y(tick)),
      words('name', LEFT - 6, y(tick) + 4, text(tick)),
    ]),
    ...lines.flatMap(({ row: { engine, role, verified }, dash, points }, i) => {
      const [steps, value] = at(ends, i);
      const named = at(names, i);
      return [
        `<polyline class="${role}"${dash === '' ? '' : ` stroke-dasharray="${dash}"`} points="${points.map(([from, figure]) => `${place(x(from))},${place(y(figure))}`).join(' ')}"/>`,
        line('grid', x(steps), y(value), WIDTH - RIGHT + 8, named),
        words(`label ${role}`, WIDTH - RIGHT + 10, named + 4, `${engine}${verified ? '' : ' not verified'}`),
      ];
    }),
  ];
}

/** Places for names, none over another: as near to their lines as that allows, and above `bottom` where they fit. */
function namePlaces(wanted: readonly number[], bottom: number): number[] {
  const order = wanted.map((_, i) => i).sort((a, b) => at(wanted, a) - at(wanted, b));
  const places = [...wanted];
  let free = Number.NEGATIVE_INFINITY;
  for (const i of order) {
    places[i] = Math.max(at(wanted, i), free);
    free = at(places, i) + NAME;
  }
  free = bottom;
  for (const i of order.toReversed()) {
    places[i] = Math.min(at(places, i), free);
    free = at(places, i) - NAME;
  }
  return places;
}
