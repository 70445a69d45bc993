/**
 * The saved runs, in a Varve store: shown, deleted, compared, and opened from files.
 *
 * Invariant: the store is open only during a call, never while something is measured. A run and its line in the list are
 * written and deleted together. Key `['run', id]` has the result, `['info', id]` the line; ids are the dates of the runs, so
 * the list is in order of time.
 */

import { open } from 'varve';
import { ratioOfRuns, verdictOf } from '../core/compare/rounds.ts';
import { intervalText, ratioText } from '../core/comparison.ts';
import { rate } from '../core/figures.ts';
import type { Result } from '../core/result.ts';
import { caseName, rowKey } from '../core/row.ts';
import type { Table } from '../core/tables.ts';
import { button, byId, make, tableOf } from './dom.ts';

/** A line of the list. */
type Info = Readonly<{ id: string; name: string; rows: number }>;

type Key = ['info' | 'run', string];
type Store = Awaited<ReturnType<typeof open<Key, Info | Result>>>;

async function withStore<T>(use: (store: Store) => Promise<T>): Promise<T> {
  await using store = await open<Key, Info | Result>('bench-runs');
  return await use(store);
}

/** Throws if this is no result. */
function resultOf(parsed: unknown): Result {
  const { environment, rows } = (parsed ?? {}) as Partial<Result>;
  const isRow = (row: Partial<Result['rows'][number]>): boolean =>
    [row.suite, row.access, row.engine, row.role].every((text) => typeof text === 'string') &&
    Number(row.opsPerSecond) > 0 &&
    Array.isArray(row.rounds);
  if (typeof environment?.date === 'string' && Array.isArray(rows) && rows.every(isRow)) {
    const { storage = [], notes = [], problems = [], plan } = parsed as Partial<Result>;
    return { environment, plan: plan as Result['plan'], rows, storage, notes, problems };
  }
  throw new Error('This is no result of the benchmark: choose a file that the page or --json wrote.');
}

/** The rows that two runs share, side by side, the slower ones first. */
function comparedTable(before: Result, now: Result): Table {
  const old = new Map(before.rows.map((row) => [rowKey(row), row]));
  const found = now.rows.flatMap((row) => {
    const earlier = old.get(rowKey(row));
    return earlier === undefined ? [] : [{ row, earlier, change: ratioOfRuns(row.rounds, earlier.rounds) }];
  });
  const lines = found
    .sort((a, b) => a.change.ratio - b.change.ratio)
    .map(({ row, earlier, change }) => {
      const rates = [rate(earlier.opsPerSecond), rate(row.opsPerSecond)];
      const verdict = verdictOf(change);
      return {
        cells: [caseName(row), row.engine, ...rates, ratioText(change.ratio), intervalText(change), verdict],
        look: verdict === 'slower' ? 'behind' : row.role,
      };
    });
  const columns = ['case', 'engine', 'before', 'now', 'change', '95% interval', 'verdict'];
  return { title: `${timeText(now.environment.date)} beside ${timeText(before.environment.date)}`, columns, lines };
}

function timeText(date: string): string {
  return new Date(date).toLocaleString('en');
}

let show: (result: Result) => void = () => {};

/** Lists the saved runs; `shown` shows one of them. */
export function startRuns(shown: (result: Result) => void): void {
  show = shown;
  byId<HTMLInputElement>('import').addEventListener('change', ({ target }) => {
    const input = target as HTMLInputElement;
    reporting(async () => {
      for (const file of input.files ?? []) {
        const result = resultOf(JSON.parse(await file.text()));
        show(result);
        await saveRun(result, file.name.replace(/\.json$/i, ''));
      }
      input.value = '';
    });
  });
  byId('compare').addEventListener('click', () => reporting(compareChosen));
  reporting(refresh);
}

/** Saves a result; one of the same date is replaced. */
export async function saveRun(result: Result, name: string): Promise<void> {
  const id = result.environment.date;
  const info: Info = { id, name, rows: result.rows.length };
  await withStore((store) => store.batch().set(['info', id], info).set(['run', id], result).commit());
  await refresh();
}

async function refresh(): Promise<void> {
  const infos = await withStore(async (store) => {
    const found: Info[] = [];
    for await (const info of store.values({ prefix: ['info'], reverse: true })) found.push(info as Info);
    return found;
  });
  byId('run-list').replaceChildren(...infos.map(lineOf));
  byId('compare').hidden = infos.length < 2;
}

function lineOf({ id, name, rows }: Info): HTMLElement {
  const box = make('input', { type: 'checkbox', name: 'run', value: id });
  const label = make('label', {}, box, ` ${name}, ${timeText(id)}, ${rows} rows `);
  const remove = async (): Promise<void> => {
    await withStore((store) => store.batch().delete(['info', id]).delete(['run', id]).commit());
    await refresh();
  };
  const act = (text: string, what: () => Promise<void>): HTMLElement =>
    button(text, () => reporting(what), `${text} ${name}`);
  return make(
    'li',
    {},
    label,
    act('Show', async () => show(await load(id))),
    ' ',
    act('Delete', remove),
  );
}

async function compareChosen(): Promise<void> {
  const boxes = [...document.querySelectorAll<HTMLInputElement>('input[name="run"]:checked')];
  const [now, before] = boxes.map(({ value }) => value);
  if (now === undefined || before === undefined || boxes.length > 2) throw new Error('Choose two runs to compare.');
  byId('compared').replaceChildren(tableOf(comparedTable(await load(before), await load(now))));
  byId('compared').scrollIntoView({ block: 'start' });
}

/** Shows what goes wrong. */
function reporting(act: () => Promise<void>): void {
  const place = byId('runs-problem');
  place.textContent = '';
  act().catch((error: unknown) => {
    place.textContent = error instanceof Error ? error.message : String(error);
  });
}

async function load(id: string): Promise<Result> {
  return resultOf(await withStore((store) => store.get(['run', id])));
}
