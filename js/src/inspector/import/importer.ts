/**
 * Imports rows of a file, or of pasted text, into a store; and exports of Varve, which are verified.
 * Life cycle: a file is read and inspected. The visitor sees how many rows it has, which are bad, and how keys will look. Only then,
 * and only on request, it is written, in batches, each all or nothing.
 * Invariant: nothing is written before the button is pressed. Everything reported as stored has been acknowledged.
 */

import { isExport, MAGIC } from '../../portable/magic.ts';
import type { Key } from '../../types.ts';
import {
  button,
  element,
  errorLine,
  field,
  section,
  select,
  setText,
  statusLine,
  submit,
  textInput,
  title,
} from '../dom.ts';
import { sentence } from '../errors.ts';
import { formatBytes, formatCount, formatDuration, plural } from '../format.ts';
import { keyText } from '../keys/key-text.ts';
import type { AnyStore } from '../store.ts';
import { checkEntries, type Entries, entriesOf, writeEntries } from './entries.ts';
import { type Rows, readRows, textOfFile } from './rows.ts';

const BATCH_ENTRIES = 500;
const BAD_SHOWN = 50;

/** The file types that the dialog offers. */
const KINDS = '.csv,.tsv,.json,.ndjson,.jsonl,.varve,text/csv,application/json';

interface ImporterEvents {
  /** Entries arrived, under this prefix; undefined: all over the store. */
  onImported(prefix: string | undefined): void;
}

export class Importer {
  readonly #events: ImporterEvents;
  readonly #file = element('input', { id: 'import-file', attributes: { type: 'file', accept: KINDS } });
  readonly #paste = element('textarea', {
    id: 'import-paste',
    attributes: { rows: '5', spellcheck: 'false', placeholder: 'id,name\n1,Silt', 'aria-label': 'Rows as CSV or JSON' },
  });
  readonly #read = button('import-read', 'Read them');
  readonly #column = select('import-column');
  readonly #prefix = textInput('import-prefix');
  readonly #example = element('p', { id: 'import-example', class: 'note' });
  readonly #present = element('p', { id: 'import-present', class: 'note', attributes: { role: 'status' } });
  readonly #badTitle = element('p', { id: 'import-bad-title' });
  readonly #bad = element('ol', {
    id: 'import-bad',
    class: 'bad',
    attributes: { 'aria-labelledby': 'import-bad-title' },
  });
  readonly #writeButton = submit('import-write', 'Import', 'primary');
  readonly #choice = element(
    'form',
    { id: 'import-choice' },
    field('The key is', this.#column),
    field('after the prefix', this.#prefix),
    this.#example,
    this.#present,
    this.#badTitle,
    this.#bad,
    this.#writeButton,
  );
  readonly #bar = element('progress', { id: 'import-bar', attributes: { max: '1', 'aria-label': 'Import' } });
  readonly #cancel = button('import-cancel', 'Cancel');
  readonly #error = errorLine('import-error');
  readonly #status = statusLine('import-status');
  readonly root = section(
    'import',
    title('import-title', 'Import'),
    element(
      'div',
      { class: 'import-source' },
      field('A file: CSV, JSON, JSON lines, or an export of Varve. You can also drop it here.', this.#file),
      element('details', {}, element('summary', { text: 'Or paste rows' }), this.#paste, this.#read),
    ),
    this.#choice,
    this.#bar,
    this.#cancel,
    this.#error,
    this.#status,
  );
  #store: AnyStore | undefined;
  #rows: Rows | undefined;
  #entries: Entries = { entries: [], bad: [] };
  #running: AbortController | undefined;

  constructor(events: ImporterEvents) {
    this.#events = events;
    this.#takeFiles();
    this.#choice.addEventListener('input', () => this.#plan());
    this.#choice.addEventListener('submit', (event) => {
      event.preventDefault();
      this.#write();
    });
    this.#cancel.addEventListener('click', () => {
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
    this.#file.addEventListener('change', () => {
      const [file] = this.#file.files ?? [];
      if (file !== undefined) this.#look(file.name, file);
      // The same file can be chosen again.
      this.#file.value = '';
    });
    this.root.addEventListener('dragover', (event) => {
      event.preventDefault();
      this.root.dataset['drag'] = 'over';
    });
    this.root.addEventListener('dragleave', () => delete this.root.dataset['drag']);
    this.root.addEventListener('drop', (event) => {
      event.preventDefault();
      delete this.root.dataset['drag'];
      const [file] = event.dataTransfer?.files ?? [];
      if (file !== undefined) this.#look(file.name, file);
    });
    this.#read.addEventListener('click', () => this.#look('pasted', new Blob([this.#paste.value])));
  }

  /** Reads a file. Nothing is written yet, but an export is imported block by block. */
  async #look(name: string, content: Blob): Promise<void> {
    if (this.#running !== undefined) return;
    if (this.#store === undefined) return setText(this.#error, 'The store is not open yet. Try again in a moment.');
    const running = this.#begin(`Reading ${name}, ${formatBytes(content.size)}`);
    let stays = 'nothing was written';
    try {
      const head = await content.slice(0, MAGIC.length).arrayBuffer();
      if (isExport(new Uint8Array(head))) {
        stays = 'what was imported before stays. Import the file again to continue';
        await this.#importExport(content, running.signal);
        return this.#end();
      }
      const text = textOfFile(await content.arrayBuffer());
      running.signal.throwIfAborted();
      const rows = readRows(name, text);
      this.#end();
      this.#rows = rows;
      this.#offer(name, rows);
    } catch (error) {
      this.#end();
      this.#reset('');
      if (running.signal.aborted) setText(this.#status, `Cancelled: ${stays}.`);
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
    this.root.dataset['state'] = 'looked';
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
    setText(this.#error, '');
    const [first] = entries;
    setText(this.#example, first === undefined ? '' : `The first key will be ${keyText(first[0])}`);
    this.#tellPresent(rows, prefix);
    const shown = bad.slice(0, BAD_SHOWN).map(({ place, why }) => element('li', { text: `${place}: ${why}` }));
    this.#bad.replaceChildren(...shown);
    const more = bad.length > BAD_SHOWN ? `. The first ${BAD_SHOWN}:` : ':';
    setText(this.#badTitle, bad.length === 0 ? '' : `${plural(bad.length, 'row is', 'rows are')} left out${more}`);
    const leaving = bad.length === 0 ? '' : `, leave out ${formatCount(bad.length)}`;
    setText(this.#writeButton, `Import ${plural(entries.length, 'row', 'rows')}${leaving}`);
    this.#writeButton.disabled = entries.length === 0;
  }

  /** Shows how many entries have the prefix already: rows with the same keys replace them. */
  async #tellPresent(rows: Rows, prefix: string): Promise<void> {
    setText(this.#present, '');
    if (prefix === '' || this.#store === undefined) return;
    const present = await this.#store.count({ prefix: [prefix] }).catch(() => 0);
    if (present === 0 || rows !== this.#rows || prefix !== this.#prefix.value.trim()) return;
    const have = plural(present, 'key has', 'keys have');
    setText(this.#present, `${have} this prefix already. A row with the same key replaces the entry.`);
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
      await checkEntries(store, entries);
      for (; stored < entries.length && !signal.aborted; stored += batchOf(entries, stored).length) {
        await writeEntries(store, batchOf(entries, stored));
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
    const report = await this.#store?.import(content, {
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
    this.root.dataset['state'] = 'running';
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
    this.root.dataset['state'] = 'idle';
    setText(this.#status, words);
  }
}

function batchOf(entries: Entries['entries'], from: number): (readonly [Key, unknown])[] {
  return entries.slice(from, from + BATCH_ENTRIES);
}
