/**
 * A result on the page: summary, one case looked at, all rows, targets, tables of single suites, storage, problems.
 *
 * Invariant: a section without content is hidden. Nothing here changes a result.
 */

import { bytes, duration } from '../core/figures.ts';
import { type Result, shownStorage, storageItems, TARGET_COLUMNS, targetCells } from '../core/report.ts';
import { specialTables } from '../core/special-tables.ts';
import { judge } from '../core/targets.ts';
import { CaseView } from './case-view.ts';
import { byId, make } from './dom.ts';
import { sortable } from './ordering.ts';
import { runTable } from './row-table.ts';
import { type Column, SortableTable } from './sortable-table.ts';
import { SummaryView } from './summary-view.ts';

/** What of a result can be shown before it is finished. */
export type Shown = Pick<Result, 'rows' | 'failovers' | 'storage' | 'problems'> & {
  /** What is no fault: engines that sat out a suite, and why. */
  readonly notes?: readonly string[];
};

interface Line {
  readonly cells: readonly string[];
  readonly look: string;
}

/** The results on the page. */
export class ResultsView {
  readonly #summary = new SummaryView();
  readonly #case = new CaseView();

  /** Shows a finished result, another one than before. */
  show(result: Result, name: string): void {
    this.#case.reset();
    byId('results-title').textContent = name;
    byId('results-about').textContent = aboutOf(result);
    this.update(result, false);
  }

  /** Shows what is there of a result so far. */
  update(shown: Shown, follow: boolean): void {
    const { rows, failovers, storage, problems, notes = [] } = shown;
    byId('results').hidden = rows.length === 0 && failovers.length === 0;
    byId('problems').hidden = problems.length === 0;
    byId('problem-list').replaceChildren(...problems.map((text) => make('li', { text })));
    fill(
      'notes',
      'note-list',
      notes.map((text) => make('li', { text })),
    );
    if (rows.length > 0) this.#summary.show(rows);
    this.#case.show(rows, follow);
    fill('rows', 'rows-table', rows.length === 0 ? [] : [runTable(rows)]);
    const judged = judge(rows).map((item): Line => {
      const reached = item.reached === undefined ? '' : item.reached ? 'reached' : 'missed';
      return { cells: targetCells(item), look: reached };
    });
    fill('targets', 'targets-table', judged.length === 0 ? [] : [textTable('Targets', TARGET_COLUMNS, judged)]);
    const special = specialTables(rows, failovers).flatMap(({ title, note, columns, words, lines }) => [
      make('h4', { text: title }),
      ...(note === undefined ? [] : [make('p', { text: note })]),
      textTable(
        title,
        columns,
        lines.map(({ cells, role, isBad }) => ({ cells, look: isBad ? 'behind' : role })),
        words,
      ),
    ]);
    fill('special', 'special-tables', special);
    fill('storage', 'storage-lists', shownStorage(storage).flatMap(storageElements));
  }
}

function fill(section: string, place: string, content: readonly HTMLElement[]): void {
  byId(section).hidden = content.length === 0;
  byId(place).replaceChildren(...content);
}

/** A table whose cells are texts already. */
function textTable(
  caption: string,
  titles: readonly string[],
  lines: readonly Line[],
  words: readonly number[] = [0],
): HTMLElement {
  const columns = titles.map(
    (title, i): Column<Line> => ({
      title,
      words: words.includes(i),
      text: ({ cells }) => cells[i] ?? '',
      value: ({ cells }) => sortable(cells[i] ?? ''),
    }),
  );
  return new SortableTable({ caption, columns, look: ({ look }) => look }, lines).element;
}

function storageElements(storage: Result['storage'][number]): HTMLElement[] {
  const figures: [string, string][] = [
    ['entries', storage.entries.toLocaleString('en')],
    ['keys and values', bytes(storage.logicalBytes)],
    [
      'files',
      `${bytes(storage.diskBytes)}, ${storage.diskBytesPerLogicalByte.toFixed(2)} for each byte of keys and values`,
    ],
    ...storageItems(storage),
  ];
  const list = make('dl');
  for (const [name, value] of figures) list.append(make('dt', { text: name }), make('dd', { text: value }));
  return [make('h4', { text: `${storage.engine}, after ${storage.suite}` }), list];
}

function aboutOf({ environment, rows, plan }: Result): string {
  const { date, userAgent, cores, timerStepMicroseconds, crossOriginIsolated: isolated } = environment;
  const step = duration(timerStepMicroseconds);
  const timer = `timer step ${step}${isolated ? '' : ' (not isolated, so coarse)'}`;
  const seed = plan.seed === undefined ? '' : `, seed ${plan.seed}`;
  const when = new Date(date).toLocaleString('en', { dateStyle: 'medium', timeStyle: 'short' });
  return `${when}, ${plan.mode ?? 'unknown'} run of ${rows.length} rows${seed}, ${cores} cores, ${timer}. ${userAgent}`;
}
