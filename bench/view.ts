/** What the page shows of a run: progress, problems, targets, tables, storage. */

import { documentTables } from './documents/report.ts';
import { bytes, rate } from './figures.ts';
import type { RunEvent } from './plan.ts';
import {
  COLUMNS,
  cellsOf,
  groupsOf,
  type Result,
  shownStorage,
  storageItems,
  TARGET_COLUMNS,
  targetCells,
} from './report.ts';
import type { Row } from './rows.ts';
import { type TabTable, tabTables } from './tabs/report.ts';
import { judge } from './targets.ts';

/** The element with this id; the page has it. */
export function element<T extends HTMLElement = HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`The page has no element #${id}.`);
  return found as T;
}

/** Shows how far a run is. */
export function showEvent(event: RunEvent): void {
  if (event.type === 'progress') {
    element<HTMLProgressElement>('bar').value = event.done / Math.max(event.total, 1);
    element('step').textContent = `${event.done} of ${event.total}: ${event.text}`;
  }
  if (event.type === 'row') element('step').textContent = lineOf(event.row);
}

/** One line about a row, for the progress. */
export function lineOf(row: Row): string {
  const { tabs } = row;
  const who = tabs === undefined ? '' : `, ${tabs.count} tabs, ${tabs.role} ${tabs.call}`;
  return `${row.suite} (${row.access}${who}) ${row.engine}: ${rate(row.opsPerSecond)} ${row.unit}/s`;
}

/** Shows what has been measured so far. */
export function showResult(result: Pick<Result, 'rows' | 'failovers' | 'storage' | 'problems'>): void {
  const { rows, failovers, storage, problems } = result;
  show('problems', problems.length > 0)
    ?.querySelector('ul')
    ?.replaceChildren(...problems.map((text) => make('li', text)));
  const judged = judge(rows);
  const targets = make('table');
  targets.append(rowOf('th', TARGET_COLUMNS));
  for (const item of judged) {
    const line = rowOf('td', targetCells(item));
    line.lastElementChild?.classList.add(item.reached === false ? 'bad' : 'good');
    targets.append(line);
  }
  show('targets', judged.length > 0)
    ?.querySelector('.scroll')
    ?.replaceChildren(targets);
  show('results', rows.length > 0);
  const tabs = [...documentTables(rows), ...tabTables(rows, failovers)].flatMap(tabElements);
  element('tables').replaceChildren(...groupsOf(rows).flatMap((group) => suiteElements(group)), ...tabs);
  show('storage', storage.length > 0)
    ?.querySelector('div')
    ?.replaceChildren(...shownStorage(storage).flatMap(storageElements));
}

function suiteElements(group: ReturnType<typeof groupsOf>[number]): HTMLElement[] {
  const table = make('table');
  table.append(rowOf('th', COLUMNS));
  for (const row of group.rows) {
    const line = rowOf('td', cellsOf(row, group));
    line.classList.add(row.role);
    if (!row.verified) line.children[COLUMNS.indexOf('verified')]?.classList.add('bad');
    table.append(line);
  }
  const scroll = make('div');
  scroll.className = 'scroll';
  scroll.append(table);
  return [make('h3', group.title), scroll];
}

function tabElements({ title, columns, lines, note }: TabTable): HTMLElement[] {
  const table = make('table');
  table.append(rowOf('th', columns));
  for (const { cells, role, isBad } of lines) {
    const line = rowOf('td', cells);
    line.classList.add(role, ...(isBad ? ['bad'] : []));
    table.append(line);
  }
  const scroll = make('div');
  scroll.className = 'scroll';
  scroll.append(table);
  return [make('h3', title), ...(note === undefined ? [] : [make('p', note)]), scroll];
}

function storageElements(storage: Result['storage'][number]): HTMLElement[] {
  const list = make('dl');
  const figures: [string, string][] = [
    ['entries', String(storage.entries)],
    ['keys and values', bytes(storage.logicalBytes)],
    ['files', `${bytes(storage.diskBytes)}, ${storage.diskBytesPerLogicalByte.toFixed(2)} per logical byte`],
    ...storageItems(storage),
  ];
  for (const [name, value] of figures) list.append(make('dt', name), make('dd', value));
  return [make('h3', `${storage.engine}, after ${storage.suite}`), list];
}

function show(id: string, visible: boolean): HTMLElement | undefined {
  const section = element(id);
  section.hidden = !visible;
  return visible ? section : undefined;
}

function rowOf(cell: 'th' | 'td', texts: readonly string[]): HTMLTableRowElement {
  const row = make('tr');
  row.append(...texts.map((text) => make(cell, text)));
  return row;
}

function make<K extends keyof HTMLElementTagNameMap>(tag: K, text = ''): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  made.textContent = text;
  return made;
}
