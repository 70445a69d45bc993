/**
 * The first thing said of a result: how Varve stands beside the best peer, what is slower first, as a picture and a table.
 */

import type { Ratio } from '../core/compare/rounds.ts';
import { ratioText } from '../core/comparison.ts';
import { percent, rate, times } from '../core/figures.ts';
import type { Row } from '../core/rows.ts';
import { BarsChart } from './bars-chart.ts';
import { ratioTick } from './chart-kit.ts';
import { byId, make } from './dom.ts';
import { lookOf } from './palette.ts';
import { SortableTable } from './sortable-table.ts';
import { type Standing, standingsOf, summaryOf } from './standing.ts';
import { colour } from './theme.ts';

/** More bars than that are no picture any more; the table has all. */
const BARS_MAX = 24;
const TITLE = 'Varve beside the best peer of each case';
const NOTE = 'above 1x Varve is quicker; a line is the 95% interval, a hollow bar within noise';

/** The summary of a result. */
export class SummaryView {
  readonly #chart = new BarsChart({
    title: TITLE,
    note: NOTE,
    axis: 'rate of Varve for each unit of the best peer',
    text: ratioText,
    tick: ratioTick,
    base: 1,
  });
  readonly #table: SortableTable<Standing>;

  constructor() {
    this.#table = new SortableTable<Standing>(
      {
        caption: 'Varve beside the best peer of each case',
        look: ({ verdict }) => (verdict === 'slower' ? 'behind' : ''),
        columns: [
          { title: 'case', words: true, text: ({ name }) => name },
          { title: 'Varve is', text: ({ ratio }) => ratioText(ratio), value: ({ ratio }) => ratio },
          {
            title: '95% interval',
            text: intervalText,
            value: ({ low }) => low,
            about: 'From the rounds, which took turns; few rounds make it wide',
          },
          { title: 'verdict', words: true, text: ({ verdict }) => verdict },
          { title: 'best peer', words: true, text: ({ peer }) => peer.engine },
          { title: 'per second', text: ({ peer }) => rate(peer.opsPerSecond), value: ({ peer }) => peer.opsPerSecond },
          { title: 'Varve', words: true, text: ({ varve }) => varve.engine },
          {
            title: 'Varve per second',
            text: ({ varve }) => rate(varve.opsPerSecond),
            value: ({ varve }) => varve.opsPerSecond,
          },
        ],
      },
      [],
    );
    byId('summary-chart').append(this.#chart.frame.element);
    byId('summary-table').append(this.#table.element);
  }

  /** Sums up these rows. */
  show(rows: readonly Row[]): void {
    const standings = standingsOf(rows);
    const { headline, slower, rest } = summaryOf(standings);
    const verified = rows.filter((row) => row.verified).length;
    const checks =
      verified === rows.length
        ? `All ${rows.length} rows were verified.`
        : `${rows.length - verified} of ${rows.length} rows were NOT verified (${percent(verified / rows.length)} were): see the problems.`;
    const behind =
      slower.length === 0
        ? []
        : [
            make('p', {
              class: 'behind',
              text: `Slower than the best peer in ${slower.length} of ${standings.length}:`,
            }),
            make('ul', { class: 'behind' }, ...slower.map((text) => make('li', { text }))),
          ];
    byId('summary').replaceChildren(
      ...behind,
      make('p', { class: 'headline', text: headline }),
      ...rest.map((text) => make('p', { text })),
      make('p', { text: checks }),
    );
    const shown = standings.slice(0, BARS_MAX);
    if (shown.length === standings.length) this.#chart.frame.name(TITLE, NOTE);
    else {
      this.#chart.frame.name(TITLE, `the ${BARS_MAX} cases where Varve stands worst; the table has all`);
    }
    this.#chart.show(
      shown.map((one) => ({
        label: `${one.name}, ${one.peer.engine}`,
        ...barEnds(one),
        colour: () => (one.verdict === 'slower' ? colour('--bad') : lookOf(one.varve.engine).colour),
        hollow: one.verdict === 'within noise',
        strong: one.verdict === 'slower',
      })),
      [...slower, headline, ...rest].join(' '),
    );
    byId('summary-figures').hidden = standings.length === 0;
    this.#table.update(standings);
  }
}

/** A bar for a ratio; what has no interval has no line over it. */
export function barEnds({ ratio, low, high }: Ratio): { value: number; low: number; high: number } {
  return { value: ratio, low: Number.isFinite(low) ? low : ratio, high: Number.isFinite(high) ? high : ratio };
}

/** An interval in figures. */
export function intervalText({ low, high }: Ratio): string {
  return Number.isFinite(high) ? `${times(low)} to ${times(high)}` : 'one round: not told';
}
