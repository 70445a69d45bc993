// Imports rows of a file, or of pasted text, into a store; and exports of Varve, which are verified.
// Life cycle: a file is read and inspected. The visitor sees how many rows it has, which are bad, and how keys will look. Only then,
// and only on request, it is written, in batches, each all or nothing.
// Invariant: nothing is written before the button is pressed. Everything reported as stored has been acknowledged.

import type { Key } from 'varve';
import { byId, element, setText } from '../dom.ts';
import { formatBytes, formatCount, formatDuration, plural } from '../format.ts';
import { keyText } from '../keys/key-text.ts';
import type { AnyStore } from '../keys/listing.ts';
import { sentence } from '../page.ts';
import { type Entries, entriesOf } from './entries.ts';
import { isExport } from './is-export.ts';
import { readFile } from './reading.ts';
import type { Rows } from './rows.ts';

const BATCH_ENTRIES = 500;
const BAD_SHOWN = 50;
/** Prefixes of the cities' keys: entries imported there would be taken for cities. */
const TAKEN = new Set(['city', 'name', 'country', 'top', 'count', 'meta']);

export interface ImporterEvents {
  /** Entries arrived, under this prefix; undefined: all over the store. */
  onImported(prefix: string | undefined): void;
}

export class Importer {
  readonly #events: ImporterEvents;
  readonly #panel = byId('import', HTMLElement);
  readonly #status = byId('import-status', HTMLElement);
  readonly #error = byId('import-error', HTMLElement);
  readonly #column = byId('import-column', HTMLSelectElement);
  readonly #prefix = byId('import-prefix', HTMLInputElement);
  readonly #example = byId('import-example', HTMLElement);
  readonly #bad = byId('import-bad', HTMLOListElement);
  readonly #badTitle = byId('import-bad-title', HTMLElement);
  readonly #writeButton = byId('import-write', HTMLButtonElement);
  readonly #bar = byId('import-bar', HTMLProgressElement);
  #store: AnyStore | undefined;
  #rows: Rows | undefined;
  #entries: Entries = { entries: [], bad: [] };
  #running: AbortController | undefined;

  constructor(events: ImporterEvents) {
    this.#events = events;
    this.#takeFiles();
    byId('import-choice', HTMLFormElement).addEventListener('input', () => this.#plan());
    byId('import-choice', HTMLFormElement).addEventListener('submit', (event) => {
      event.preventDefault();
      this.#write();
    });
    byId('import-cancel', HTMLButtonElement).addEventListener('click', () => {
      this.#running?.abort();
      if (this.#running === undefined) this.#reset('');
    });
    this.#reset('');
  }

  /** Imports into this store from now on; undefined while none is open. */
  choose(store: AnyStore | undefined): void {
    this.#store = store;
    if (this.#rows !== undefined) this.#plan();
  }

  #takeFiles(): void {
    const input = byId('import-file', HTMLInputElement);
    input.addEventListener('change', () => {
      const [file] = input.files ?? [];
      if (file !== undefined) this.#look(file.name, file);
      // The same file can be chosen again.
      input.value = '';
    });
    this.#panel.addEventListener('dragover', (event) => {
      event.preventDefault();
      this.#panel.dataset['drag'] = 'over';
    });
    this.#panel.addEventListener('dragleave', () => delete this.#panel.dataset['drag']);
    this.#panel.addEventListener('drop', (event) => {
      event.preventDefault();
      delete this.#panel.dataset['drag'];
      const [file] = event.dataTransfer?.files ?? [];
      if (file !== undefined) this.#look(file.name, file);
    });
    const paste = byId('import-paste', HTMLTextAreaElement);
    byId('import-read', HTMLButtonElement).addEventListener('click', () =>
      this.#look('pasted', new Blob([paste.value])),
    );
  }

  /** Reads a file; nothing is written yet. */
  async #look(name: string, content: Blob): Promise<void> {
    if (this.#running !== undefined) return;
    if (this.#store === undefined) return setText(this.#error, 'The store is not open yet. Try again in a moment.');
    const running = this.#begin(`Reading ${name}, ${formatBytes(content.size)}`);
    try {
      if (await isExport(content)) {
        await this.#importExport(content, running.signal);
        return this.#end();
      }
      const rows = await readFile(name, content, running.signal);
      this.#end();
      this.#rows = rows;
      this.#offer(name, rows);
    } catch (error) {
      this.#end();
      this.#reset('');
      if (running.signal.aborted) setText(this.#status, 'Cancelled: nothing was written.');
      else setText(this.#error, sentence(error));
    }
  }

  /** Shows the content of a file and asks how to import it. */
  #offer(name: string, rows: Rows): void {
    const options = rows.columns.map((column) => element('option', { text: column, attributes: { value: column } }));
    const number = element('option', { text: '(the number of the row)', attributes: { value: '' } });
    const own = element('option', { text: '(the file has keys)', attributes: { value: '' } });
    this.#column.replaceChildren(...(rows.isKeyed ? [own] : [...options, number]));
    this.#column.disabled = rows.isKeyed;
    const like = rows.columns.find((column) => /^(id|key|_id|uuid|code)$/i.test(column)) ?? rows.columns[0] ?? '';
    this.#column.value = rows.isKeyed ? '' : like;
    this.#prefix.value = rows.isKeyed ? '' : name.replace(/\.\w+$/, '').toLowerCase();
    this.#panel.dataset['state'] = 'looked';
    setText(
      this.#status,
      `${name} is ${rows.format} with ${plural(rows.rows.length, 'readable row', 'readable rows')}.`,
    );
    this.#plan();
  }

  /** Shows what would be written. */
  #plan(): void {
    const rows = this.#rows;
    if (rows === undefined) return;
    const prefix = this.#prefix.value.trim();
    this.#entries = entriesOf(rows, { column: this.#column.value, prefix });
    const { entries, bad } = this.#entries;
    const isTaken = TAKEN.has(prefix) && this.#store?.name === 'cities';
    setText(this.#error, isTaken ? `The cities are stored under "${prefix}". Choose another prefix.` : '');
    const [first] = entries;
    setText(this.#example, first === undefined ? '' : `The first key will be ${keyText(first[0])}`);
    const shown = bad.slice(0, BAD_SHOWN).map(({ place, why }) => element('li', { text: `${place}: ${why}` }));
    this.#bad.replaceChildren(...shown);
    const more = bad.length > BAD_SHOWN ? `. The first ${BAD_SHOWN}:` : ':';
    setText(this.#badTitle, bad.length === 0 ? '' : `${plural(bad.length, 'row is', 'rows are')} left out${more}`);
    const leaving = bad.length === 0 ? '' : `, leave out ${formatCount(bad.length)}`;
    setText(this.#writeButton, `Import ${plural(entries.length, 'row', 'rows')}${leaving}`);
    this.#writeButton.disabled = entries.length === 0 || isTaken;
  }

  /** Writes the planned entries. */
  async #write(): Promise<void> {
    const store = this.#store;
    const { entries } = this.#entries;
    if (store === undefined || this.#running !== undefined || entries.length === 0) return;
    const prefix = this.#prefix.value.trim();
    const { signal } = this.#begin('Writing');
    const start = performance.now();
    let stored = 0;
    let words = '';
    try {
      for (; stored < entries.length && !signal.aborted; stored += batchOf(entries, stored).length) {
        await store.setMany(batchOf(entries, stored));
        this.#bar.value = Math.min(1, (stored + BATCH_ENTRIES) / entries.length);
        setText(this.#status, `${formatCount(stored)} of ${formatCount(entries.length)} rows stored`);
      }
      const took = formatDuration(performance.now() - start);
      words = signal.aborted
        ? `Cancelled: ${plural(stored, 'row was', 'rows were')} stored before, and ${stored === 1 ? 'stays' : 'stay'}.`
        : `${plural(stored, 'row', 'rows')} stored in ${took}.`;
    } catch (error) {
      setText(this.#error, `${sentence(error)} ${plural(stored, 'row was', 'rows were')} stored before.`);
    }
    this.#end();
    this.#reset(words);
    this.#events.onImported(prefix === '' ? undefined : prefix);
  }

  /** Imports the output of `db.export()`: over the existing entries, verified, block by block. */
  async #importExport(content: Blob, signal: AbortSignal): Promise<void> {
    const start = performance.now();
    const report = await this.#store?.import((offset) => content.slice(offset).stream(), {
      merge: true,
      signal,
      onProgress: ({ entries, bytes }) => {
        this.#bar.value = bytes / content.size;
        setText(this.#status, `${plural(entries, 'entry', 'entries')} imported and verified`);
      },
    });
    if (report === undefined) return;
    const took = formatDuration(performance.now() - start);
    this.#reset(`An export of Varve: ${plural(report.entries, 'entry', 'entries')} imported and verified in ${took}.`);
    this.#events.onImported(undefined);
  }

  #begin(words: string): AbortController {
    const running = new AbortController();
    this.#running = running;
    this.#panel.dataset['state'] = 'running';
    this.#bar.removeAttribute('value');
    setText(this.#error, '');
    setText(this.#status, words);
    return running;
  }

  #end(): void {
    this.#running = undefined;
  }

  #reset(words: string): void {
    this.#rows = undefined;
    this.#entries = { entries: [], bad: [] };
    this.#bad.replaceChildren();
    this.#panel.dataset['state'] = 'idle';
    setText(this.#status, words);
  }
}

function batchOf(entries: Entries['entries'], from: number): (readonly [Key, unknown])[] {
  return entries.slice(from, from + BATCH_ENTRIES);
}
