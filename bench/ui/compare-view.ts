/** Two runs side by side: the ratio of each row with its interval, sorted by change, as bars and as a table. */

import { nameOf } from '../core/cases.ts';
import { ratioText } from '../core/comparison.ts';
import { rate } from '../core/figures.ts';
import type { Result } from '../core/report.ts';
import { BarsChart } from './bars-chart.ts';
import { ratioTick } from './chart-kit.ts';
import { type Compared, compareRuns, differencesOf } from './compared.ts';
import { byId, make } from './dom.ts';
import { SortableTable } from './sortable-table.ts';
import { barEnds, intervalText } from './summary-view.ts';
import { colour } from './theme.ts';

const BARS_MAX = 24;

/** The comparison of two runs. */
export class CompareView {
  readonly #section = byId('compare');
  readonly #chart = new BarsChart({
    title: 'Changes of Varve',
    note: 'above 1x the later run is quicker; a line is the 95% interval; hollow bars are within noise',
    axis: 'rate now for each unit before',
    text: ratioText,
    tick: ratioTick,
    base: 1,
  });
  readonly #table = new SortableTable<Compared>(
    {
      caption: 'Two runs side by side',
      look: ({ verdict, now }) => `${now.role}${verdict === 'slower' ? ' behind' : ''}`,
      columns: [
        { title: 'case', words: true, text: ({ now }) => nameOf(now) + tabsText(now) },
        { title: 'engine', words: true, text: ({ now }) => now.engine },
        {
          title: 'before',
          text: ({ before }) => rate(before.opsPerSecond),
          value: ({ before }) => before.opsPerSecond,
        },
        { title: 'now', text: ({ now }) => rate(now.opsPerSecond), value: ({ now }) => now.opsPerSecond },
        { title: 'change', text: ({ change }) => ratioText(change.ratio), value: ({ change }) => change.ratio },
        {
          title: '95% interval',
          text: ({ change }) => intervalText(change),
          value: ({ change }) => change.low,
          about: 'From the rounds of both runs',
        },
        { title: 'verdict', words: true, text: ({ verdict }) => verdict },
      ],
    },
    [],
  );

  constructor() {
    byId('compare-chart').append(this.#chart.frame.element);
    byId('compare-table').append(this.#table.element);
  }

  /** Shows two runs with their names. */
  show(before: Result, now: Result, names: { readonly before: string; readonly now: string }): void {
    const compared = compareRuns(before, now);
    const count = (wanted: Compared['verdict']): number => compared.filter(({ verdict }) => verdict === wanted).length;
    this.#section.hidden = false;
    byId('compare-title').textContent = `${names.now}, beside ${names.before}`;
    const said =
      compared.length === 0
        ? 'The two runs have no row in common: choose runs of the same suites and engines.'
        : `Of ${compared.length} rows that both have, ${count('slower')} are slower, ${count('quicker')} quicker, ${count('within noise')} within noise.`;
    const cautions = differencesOf(before, now).map((text) => make('li', { text }));
    byId('compare-summary').replaceChildren(
      make('p', { class: 'headline', text: said }),
      ...(cautions.length > 0 ? [make('ul', {}, ...cautions)] : []),
    );
    const shown = compared.filter(({ now: row }) => row.role === 'varve').slice(0, BARS_MAX);
    this.#chart.show(
      shown.map(({ now: row, change, verdict }) => ({
        label: `${nameOf(row)}, ${row.engine}`,
        ...barEnds(change),
        colour: () => colour(verdict === 'slower' ? '--bad' : '--good'),
        hollow: verdict === 'within noise',
        strong: verdict === 'slower',
      })),
      said,
    );
    byId('compare-table').hidden = compared.length === 0;
    this.#table.update(compared);
    byId('compare-title').focus();
  }
}

function tabsText({ tabs }: Compared['now']): string {
  return tabs === undefined ? '' : `, ${tabs.count} tabs, ${tabs.role} ${tabs.call}, ${tabs.load}`;
}
