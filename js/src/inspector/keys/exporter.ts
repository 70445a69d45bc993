/**
 * Saves the entries of a range as a file: in Varve's own format, which keeps everything, or as JSON, JSON lines or CSV.
 * Invariant: a file contains one read point of the range. JSON has the objects of JSON lines in a list, and both keep all keys and
 * values. Values that CSV cannot express are counted and reported.
 */

import { unparse } from 'papaparse';
import { exportColumns, VALUE_COLUMN } from '../../rows/csv.ts';
import { entryToJson } from '../../rows/jsonl.ts';
import type { Key, KeyRange } from '../../types.ts';
import { element, inline, select, setText, statusLine, submit } from '../dom.ts';
import { formatBytes, plural } from '../format.ts';
import type { AnyStore } from '../store.ts';
import { keyText } from './key-text.ts';
import { isExact, nearestJson } from './value-text.ts';

/** The formats of text. */
type TextFormat = 'json' | 'jsonl' | 'csv';
type Format = 'varve' | TextFormat;

const KINDS: Readonly<Record<Format, string>> = {
  varve: 'application/octet-stream',
  json: 'application/json',
  jsonl: 'application/x-ndjson',
  csv: 'text/csv',
};

export interface ExporterEvents {
  /** The range to save; undefined while none is shown. */
  onAsk(): { store: AnyStore; range: KeyRange } | undefined;
  onError(error: unknown): void;
}

export class Exporter {
  readonly #events: ExporterEvents;
  readonly #format = select('export-format', {
    varve: 'an export of Varve',
    json: 'JSON',
    jsonl: 'JSON lines',
    csv: 'CSV',
  });
  readonly #button = submit('export-save', 'Save');
  readonly form = element(
    'form',
    { id: 'export-form', class: 'form-actions' },
    inline('Save these keys as', this.#format),
    this.#button,
  );
  readonly status = statusLine('export-status');

  constructor(events: ExporterEvents) {
    this.#events = events;
    this.form.addEventListener('submit', (event) => {
      event.preventDefault();
      this.#save();
    });
  }

  async #save(): Promise<void> {
    const asked = this.#events.onAsk();
    if (asked === undefined) return;
    this.#button.disabled = true;
    try {
      const { store, range } = asked;
      const format = this.#format.value as Format;
      const { parts, entries, inexact } =
        format === 'varve' ? await this.#own(store, range) : await this.#text(store, range, format);
      const blob = new Blob(parts, { type: KINDS[format] });
      saveFile(`${store.name}.${format}`, blob);
      const not =
        inexact === 0
          ? ''
          : ` CSV cannot express ${plural(inexact, 'value', 'values')} exactly. The other formats can.`;
      setText(this.status, `${plural(entries, 'entry', 'entries')} saved, ${formatBytes(blob.size)}.${not}`);
    } catch (error) {
      setText(this.status, '');
      this.#events.onError(error);
    }
    this.#button.disabled = false;
  }

  async #own(store: AnyStore, range: KeyRange): Promise<Saved> {
    let entries = 0;
    const bytes = store.export({
      ...range,
      onProgress: (progress) => {
        entries = progress.entries;
        setText(this.status, `${plural(entries, 'entry', 'entries')}, ${formatBytes(progress.bytes)}`);
      },
    });
    return { parts: [await new Response(bytes).blob()], entries, inexact: 0 };
  }

  async #text(store: AnyStore, range: KeyRange, format: TextFormat): Promise<Saved> {
    const rows: Row[] = [];
    for await (const row of store.entries(range)) {
      rows.push(row);
      if (rows.length % 5000 === 0) setText(this.status, plural(rows.length, 'entry', 'entries'));
    }
    const inexact = format === 'csv' ? rows.filter(([, value]) => !isExact(value)).length : 0;
    return { parts: [await textOf(rows, format)], entries: rows.length, inexact };
  }
}

interface Saved {
  readonly parts: BlobPart[];
  readonly entries: number;
  /** Values that the format cannot express. */
  readonly inexact: number;
}

type Row = readonly [key: Key, value: unknown];

/** Entries as the text of a file. */
export async function textOf(rows: readonly Row[], format: TextFormat): Promise<string> {
  if (format === 'csv') return csvOf(rows);
  const lines: string[] = [];
  for (const [key, value] of rows) lines.push(JSON.stringify(await entryToJson(key, value)));
  return format === 'json' ? `[\n${lines.join(',\n')}\n]\n` : lines.map((line) => `${line}\n`).join('');
}

/** Keys and, as columns, the fields of values that are objects; other values have a separate column. */
function csvOf(rows: readonly Row[]): string {
  const columns = new Set<string>();
  const lines = rows.map(([key, value]) => {
    const json = nearestJson(value);
    const isObject = typeof json === 'object' && json !== null && !Array.isArray(json);
    const fields = new Map<string, unknown>(Object.entries(isObject ? json : { [VALUE_COLUMN]: json }));
    for (const [name, field] of fields) {
      columns.add(name);
      if (typeof field === 'object' && field !== null) fields.set(name, JSON.stringify(field));
    }
    return { key: keyText(key), fields };
  });
  const names = [...columns];
  return unparse({
    fields: exportColumns(names),
    data: lines.map(({ key, fields }) => [key, ...names.map((name) => fields.get(name) ?? '')]),
  });
}

/** Saves bytes as a file on the visitor's device. */
function saveFile(name: string, bytes: Blob): void {
  const url = URL.createObjectURL(bytes);
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  // By then the browser has begun to read it.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
