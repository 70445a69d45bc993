/**
 * The runs that this browser keeps: shown, named, deleted, compared, and taken in from files.
 *
 * Invariant: what the list says is what the store says: after each change it is read again. A store that fails is told, and
 * the rest of the page goes on.
 */

import type { Result } from '../core/report.ts';
import { announce, button, byId, make } from './dom.ts';
import { resultFrom } from './result-file.ts';
import { deleteRun, listRuns, loadRun, type RunInfo, renameRun, saveRun } from './saved-runs.ts';

/** What the view asks the page for. */
export interface RunsActions {
  /** Shows a result under its name. */
  show(result: Result, name: string): void;
  /** Shows two side by side. */
  compare(before: Result, now: Result, names: { readonly before: string; readonly now: string }): void;
}

/** The list of kept runs. */
export class RunsView {
  readonly #actions: RunsActions;
  readonly #list = byId('run-list');
  readonly #selects = {
    before: byId<HTMLSelectElement>('compare-before'),
    now: byId<HTMLSelectElement>('compare-now'),
  };
  #infos: readonly RunInfo[] = [];
  /** Two runs were chosen: newer ones do not take their places. */
  #isChosen = false;

  constructor(actions: RunsActions) {
    this.#actions = actions;
    byId<HTMLInputElement>('import').addEventListener('change', ({ target }) => {
      const input = target as HTMLInputElement;
      for (const file of input.files ?? []) void this.#import(file);
      input.value = '';
    });
    byId('compare-form').addEventListener('change', () => {
      this.#isChosen = true;
    });
    byId('compare-form').addEventListener('submit', (event) => {
      event.preventDefault();
      void this.#tell(() => this.#compare());
    });
    this.#takeDrops();
  }

  /** Reads the list again. */
  refresh(): Promise<void> {
    return this.#tell(async () => {
      this.#infos = await listRuns();
      this.#show();
    });
  }

  /** Keeps a result, and says where. */
  keep(result: Result, name: string): Promise<void> {
    return this.#tell(async () => {
      await saveRun(result, name);
      await this.refresh();
    });
  }

  async #import(file: File): Promise<void> {
    await this.#tell(async () => {
      const result = resultFrom(await file.text());
      const name = file.name.replace(/\.json$/i, '');
      this.#actions.show(result, name);
      await this.keep(result, name);
      announce(`${name} was taken in and is shown.`);
    });
  }

  async #compare(): Promise<void> {
    const [before, now] = [this.#infoOf(this.#selects.before.value), this.#infoOf(this.#selects.now.value)];
    if (before === undefined || now === undefined) throw new Error('Choose two kept runs to compare.');
    if (before === now) throw new Error('Choose two different runs: a run beside itself shows no change.');
    this.#actions.compare(await loadRun(before.id), await loadRun(now.id), { before: before.name, now: now.name });
  }

  #infoOf(id: string): RunInfo | undefined {
    return this.#infos.find((info) => info.id === id);
  }

  #show(): void {
    byId('runs-none').hidden = this.#infos.length > 0;
    byId('compare-form').hidden = this.#infos.length < 2;
    this.#list.replaceChildren(...this.#infos.map((info) => this.#line(info)));
    // The two newest, the later one as "now".
    const standard = { before: this.#infos[1]?.id, now: this.#infos[0]?.id };
    for (const which of ['before', 'now'] as const) {
      const select = this.#selects[which];
      const kept = this.#isChosen ? this.#infoOf(select.value)?.id : undefined;
      const chosen = kept ?? standard[which] ?? '';
      const options = this.#infos.map(({ id, name, date }) =>
        make('option', { text: `${name}, ${dateText(date)}`, attributes: { value: id } }),
      );
      select.replaceChildren(...options);
      select.value = chosen;
    }
  }

  #line({ id, name, date, rows, suites, userAgent }: RunInfo): HTMLElement {
    const input = make('input', {
      attributes: { type: 'text', value: name, 'aria-label': `Name of the run of ${dateText(date)}` },
    });
    input.addEventListener('change', () => {
      void this.#tell(async () => {
        await renameRun(id, input.value.trim() || name);
        await this.refresh();
      });
    });
    const about = `${dateText(date)}, ${rows} rows of ${suites.length} ${suites.length === 1 ? 'suite' : 'suites'}, ${browserOf(userAgent)}`;
    const show = button('Show', () => void this.#tell(async () => this.#actions.show(await loadRun(id), name)), {
      'aria-label': `Show ${name}`,
    });
    const remove = button(
      'Delete',
      () =>
        void this.#tell(async () => {
          if (!confirm(`Delete "${name}"? It cannot be brought back.`)) return;
          await deleteRun(id);
          await this.refresh();
          announce(`${name} was deleted.`);
        }),
      { 'aria-label': `Delete ${name}` },
    );
    return make('li', {}, make('div', {}, input, make('small', { text: about })), show, remove);
  }

  #takeDrops(): void {
    const zone = document.body;
    const hasFiles = (event: DragEvent): boolean => event.dataTransfer?.types.includes('Files') ?? false;
    zone.addEventListener('dragover', (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      zone.classList.add('dropping');
    });
    zone.addEventListener('dragleave', () => zone.classList.remove('dropping'));
    zone.addEventListener('drop', (event) => {
      zone.classList.remove('dropping');
      if (!hasFiles(event)) return;
      event.preventDefault();
      for (const file of event.dataTransfer?.files ?? []) void this.#import(file);
    });
  }

  /** Does it, and says what went wrong. */
  async #tell(act: () => Promise<void>): Promise<void> {
    const place = byId('runs-problem');
    try {
      place.textContent = '';
      await act();
    } catch (error) {
      place.textContent = error instanceof Error ? error.message : String(error);
    }
  }
}

/** A date as people read it. */
export function dateText(date: string): string {
  return new Date(date).toLocaleString('en', { dateStyle: 'medium', timeStyle: 'short' });
}

/** The browser in a user agent, in two words. */
export function browserOf(userAgent: string): string {
  const found = /(Firefox|Edg|OPR|Chrome|HeadlessChrome)\/(\d+)|Version\/(\d+)[\d.]* .*Safari/.exec(userAgent);
  if (found === null) return 'unknown browser';
  return found[1] === undefined
    ? `Safari ${found[3]}`
    : `${found[1].replace('Edg', 'Edge').replace('OPR', 'Opera')} ${found[2]}`;
}
