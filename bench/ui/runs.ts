/**
 * The runs that this browser keeps, in a Varve store of its own: shown, deleted, compared, and taken in from files.
 *
 * Invariant: the store is open only for the length of a call, never while something is measured. A run and its line in the
 * list are written and deleted together. Key `['run', id]` has the result, `['info', id]` what the list shows; ids are the
 * dates of the runs, so the list is in order of time.
 */

import { open } from 'varve';
import { ratioOfRuns, verdictOf } from '../core/compare/rounds.ts';
import { intervalText, ratioText } from '../core/comparison.ts';
import { rate } from '../core/figures.ts';
import type { Result } from '../core/result.ts';
import { caseName, rowKey } from '../core/row.ts';
import type { Table } from '../core/tables.ts';
import { button, byId, make } from './dom.ts';

/** A run in the list. */
interface Info {
  readonly id: string;
  readonly name: string;
  readonly rows: number;
}

type Key = ['info' | 'run', string];
type Store = Awaited<ReturnType<typeof open<Key, Info | Result>>>;

let last: Promise<unknown> = Promise.resolve();

/** One call at a time has the store open. */
function withStore<T>(use: (store: Store) => Promise<T>): Promise<T> {
  const next = last.then(async () => {
    const store = await open<Key, Info | Result>('bench-runs');
    try {
      return await use(store);
    } finally {
      await store.close();
    }
  });
  last = next.catch(() => undefined);
  return next;
}

/** Checks a parsed result. Throws a sentence when it is none. */
export function resultOf(parsed: unknown): Result {
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

/** Two runs side by side, what became slower first. Rows of other work stand in neither. */
export function comparedTable(before: Result, now: Result): Table {
  const old = new Map(before.rows.map((row) => [rowKey(row), row]));
  const found = now.rows.flatMap((row) => {
    const earlier = old.get(rowKey(row));
    return earlier === undefined ? [] : [{ row, earlier, change: ratioOfRuns(row.rounds, earlier.rounds) }];
  });
  const lines = found
    .sort((a, b) => a.change.ratio - b.change.ratio)
    .map(({ row, earlier, change }) => {
      const figures = [
        rate(earlier.opsPerSecond),
        rate(row.opsPerSecond),
        ratioText(change.ratio),
        intervalText(change),
      ];
      const verdict = verdictOf(change);
      return {
        cells: [caseName(row), row.engine, ...figures, verdict],
        look: verdict === 'slower' ? 'behind' : row.role,
      };
    });
  const columns = ['case', 'engine', 'before', 'now', 'change', '95% interval', 'verdict'];
  return { title: `${now.environment.date} beside ${before.environment.date}`, columns, lines };
}

/** The list of kept runs. */
export class Runs {
  readonly #show: (result: Result) => void;
  readonly #compare: (table: Table) => void;

  constructor(show: (result: Result) => void, compare: (table: Table) => void) {
    this.#show = show;
    this.#compare = compare;
    byId<HTMLInputElement>('import').addEventListener('change', ({ target }) => {
      const input = target as HTMLInputElement;
      void this.#tell(async () => {
        for (const file of input.files ?? []) {
          const result = resultOf(JSON.parse(await file.text()));
          this.#show(result);
          await this.keep(result, file.name.replace(/\.json$/i, ''));
        }
        input.value = '';
      });
    });
    byId('compare').addEventListener('click', () => void this.#tell(() => this.#compareChosen()));
  }

  /** Keeps a result; one of the same date is replaced. */
  async keep(result: Result, name: string): Promise<void> {
    const id = result.environment.date;
    const info: Info = { id, name, rows: result.rows.length };
    await withStore((store) => store.batch().set(['info', id], info).set(['run', id], result).commit());
    await this.refresh();
  }

  /** Reads the list again. */
  refresh(): Promise<void> {
    return this.#tell(async () => {
      const infos = await withStore(async (store) => {
        const found: Info[] = [];
        for await (const info of store.values({ prefix: ['info'], reverse: true })) found.push(info as Info);
        return found;
      });
      byId('run-list').replaceChildren(...infos.map((info) => this.#line(info)));
      byId('compare').hidden = infos.length < 2;
    });
  }

  #line({ id, name, rows }: Info): HTMLElement {
    const box = make('input', { type: 'checkbox', name: 'run', value: id });
    const label = make('label', {}, box, ` ${name}, ${new Date(id).toLocaleString('en')}, ${rows} rows `);
    const show = button('Show', () => void this.#tell(async () => this.#show(await load(id))), `Show ${name}`);
    const remove = async (): Promise<void> => {
      await withStore((store) => store.batch().delete(['info', id]).delete(['run', id]).commit());
      await this.refresh();
    };
    return make(
      'li',
      {},
      label,
      show,
      ' ',
      button('Delete', () => void this.#tell(remove), `Delete ${name}`),
    );
  }

  async #compareChosen(): Promise<void> {
    const chosen = [...document.querySelectorAll<HTMLInputElement>('input[name="run"]:checked')].map(
      ({ value }) => value,
    );
    const [now, before] = chosen;
    if (now === undefined || before === undefined || chosen.length > 2) throw new Error('Choose two runs to compare.');
    this.#compare(comparedTable(await load(before), await load(now)));
  }

  /** Does it, and says what went wrong. */
  async #tell(act: () => Promise<void>): Promise<void> {
    const place = byId('runs-problem');
    place.textContent = '';
    await act().catch((error: unknown) => {
      place.textContent = error instanceof Error ? error.message : String(error);
    });
  }
}

async function load(id: string): Promise<Result> {
  return resultOf(await withStore((store) => store.get(['run', id])));
}
