/**
 * The content of a file of rows: CSV, JSON or JSON lines. Files that the inspector or the command `varve export` wrote have keys of their
 * own: a column `(key)`, or objects of a key and a value.
 * Invariant: a row that cannot be read is reported with its place and is not among the rows; nothing is guessed for it. JSON is read
 * exactly: a row with a number that would be rounded cannot be read.
 */

import { parse as parseCsv } from 'papaparse';
import { InexactJson, inexact, parseExactJson } from '../../http/exact-json.ts';
import { keyToJson } from '../../http/json-key.ts';
import { valueFromJson } from '../../http/media.ts';
import { cellValue, headerOf, KEY_COLUMN, VALUE_COLUMN } from '../../rows/csv.ts';
import { plural } from '../format.ts';
import { parseKey } from '../keys/key-text.ts';

/** One row. */
export interface Row {
  /** Its place, in words: `line 7`, `item 3`. */
  readonly place: string;
  /** Its key as JSON, where the file has keys of its own. */
  readonly key?: unknown;
  readonly value: unknown;
}

/** A row that cannot be imported, and why. */
export interface BadRow {
  readonly place: string;
  readonly why: string;
}

/** The content of a file. */
export interface Rows {
  readonly format: 'CSV' | 'JSON' | 'JSON lines';
  readonly rows: readonly Row[];
  readonly bad: readonly BadRow[];
  /** Names of columns that can be the key. */
  readonly columns: readonly string[];
  /** The rows have keys of their own. */
  readonly isKeyed: boolean;
}

const COLUMNS_MAX = 200;

/** The text of a file, without a byte order mark. Throws a sentence for bytes that are not UTF-8. */
export function textOfFile(bytes: ArrayBuffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (error) {
    throw error instanceof TypeError ? new Error('It is not UTF-8. Save it as UTF-8, and import that.') : error;
  }
}

/** Reads a file by its name, or, if the name does not decide, by how its text begins. Throws a sentence for any other kind of file. */
export function readRows(name: string, text: string): Rows {
  if (text.trim() === '') throw new Error('It is empty.');
  if (/\.(csv|tsv)$/i.test(name)) return readCsv(text);
  if (/\.(ndjson|jsonl)$/i.test(name)) return readLines(text);
  if (/\.json$/i.test(name)) return readJson(text);
  const first = text.trimStart()[0];
  if (first !== '[' && first !== '{') return readCsv(text);
  return first === '{' && looksLikeLines(text) ? readLines(text) : readJson(text);
}

function readCsv(text: string): Rows {
  const rows: Row[] = [];
  const bad: BadRow[] = [];
  let columns: string[] | undefined;
  let line = 1;
  let at = 0;
  const take = (fields: string[], cursor: number, errors: readonly { type: string; message: string }[]): void => {
    const place = `line ${line}`;
    line += countLines(text, at, cursor);
    at = cursor;
    if (fields.length === 1 && fields[0]?.trim() === '') return;
    const error = errors.find(({ type }) => type !== 'Delimiter');
    if (columns === undefined) {
      columns = headerOf(fields);
    } else if (error !== undefined) bad.push({ place, why: `${error.message}.` });
    else if (fields.length !== columns.length) {
      bad.push({
        place,
        why: `It has ${plural(fields.length, 'field', 'fields')}, and the first line has ${columns.length}.`,
      });
    } else {
      const cells = Object.fromEntries(columns.map((name, i) => [name, fields[i] ?? '']));
      reading(place, bad, () => rows.push({ place, ...rowOf(cells) }));
    }
  };
  parseCsv<string[]>(text, { step: ({ data, errors, meta }) => take(data, meta.cursor, errors) });
  const isKeyed = columns?.includes(KEY_COLUMN) === true;
  return { format: 'CSV', rows, bad, columns: isKeyed ? [] : (columns ?? []), isKeyed };
}

/** A row of CSV, with its key if it has one. */
function rowOf({ [KEY_COLUMN]: key, ...cells }: Readonly<Record<string, string>>): Omit<Row, 'place'> {
  const value = Object.fromEntries(Object.entries(cells).map(([name, cell]) => [name, cellValue(cell)]));
  if (key === undefined) return { value };
  const isPlain = Object.keys(value).join() === VALUE_COLUMN;
  return { key: keyToJson(parseKey(key)), value: isPlain ? value[VALUE_COLUMN] : value };
}

function readLines(text: string): Rows {
  const rows: Row[] = [];
  const bad: BadRow[] = [];
  text.split('\n').forEach((content, i) => {
    if (content.trim() === '') return;
    const place = `line ${i + 1}`;
    const value = exactly(content, place, bad);
    if (value !== undefined) rows.push({ place, value });
  });
  return withKeys('JSON lines', rows, bad);
}

function readJson(text: string): Rows {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    const why = words(error);
    const position = /position (\d+)/.exec(why)?.[1];
    const line =
      position === undefined || /line \d/.test(why) ? '' : ` (line ${1 + countLines(text, 0, Number(position))})`;
    throw new Error(`This is not JSON, so nothing was read: ${why}${line}.`);
  }
  if (typeof json !== 'object' || json === null) {
    throw new Error('This is JSON, but neither a list nor an object, so it has no rows.');
  }
  const rows: Row[] = [];
  const bad: BadRow[] = [];
  const isList = Array.isArray(json);
  itemsOf(text).forEach((item, i) => {
    const place = `item ${i + 1}`;
    const value = exactly(isList ? item : `{${item}}`, place, bad);
    if (isList && value !== undefined) rows.push({ place, value });
    else for (const [key, own] of Object.entries(value ?? {})) rows.push({ place: `"${key}"`, key, value: own });
  });
  return isList ? withKeys('JSON', rows, bad) : { format: 'JSON', rows, bad, columns: [], isKeyed: true };
}

const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|[[\]{},]/g;

/** The texts of the items of a list, or of the members of an object. */
function itemsOf(json: string): string[] {
  const items: string[] = [];
  let depth = 0;
  let start = 0;
  for (const { 0: token, index } of json.matchAll(TOKEN)) {
    if (token === '[' || token === '{') {
      if (depth === 0) start = index + 1;
      depth += 1;
      continue;
    }
    if (token === ']' || token === '}') depth -= 1;
    if (depth > (token === ',' ? 1 : 0) || token.startsWith('"')) continue;
    const item = json.slice(start, index).trim();
    if (item !== '') items.push(item);
    start = index + 1;
  }
  return items;
}

/** The value of a JSON text. If it has none, or would lose something, the reason is noted. */
function exactly(text: string, place: string, bad: BadRow[]): unknown {
  try {
    return parseExactJson(text);
  } catch (error) {
    bad.push({ place, why: error instanceof InexactJson ? inexact(error) : `It is not JSON: ${words(error)}.` });
    return undefined;
  }
}

/** Rows of objects; if all are a key and a value, in one of the forms of `varve/http`, they have keys of their own. */
function withKeys(format: Rows['format'], rows: readonly Row[], bad: readonly BadRow[]): Rows {
  const names = new Set<string>();
  let isKeyed = rows.length > 0;
  for (const { value } of rows) {
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    const own = isObject ? Object.keys(value) : [];
    isKeyed &&= own.length === 2 && own.includes('key') && FORMS.some((form) => own.includes(form));
    for (const name of own) if (names.size < COLUMNS_MAX) names.add(name);
  }
  if (!isKeyed) return { format, rows, bad, columns: [...names], isKeyed };
  const keyed: Row[] = [];
  const all = [...bad];
  for (const { place, value } of rows) {
    const item = value as Readonly<Record<string, unknown>>;
    reading(place, all, () => keyed.push({ place, key: item['key'], value: valueFromJson(item) }));
  }
  return { format, rows: keyed, bad: all, columns: [], isKeyed };
}

/** Runs `read`; if it throws, the row of this place is a bad one. */
function reading(place: string, bad: BadRow[], read: () => void): void {
  try {
    read();
  } catch (error) {
    bad.push({ place, why: words(error) });
  }
}

/** The members that can have the value of a row. */
const FORMS = ['value', 'bytes', 'cbor'];

/** Whether there are several lines, the first of which is JSON by itself. */
function looksLikeLines(text: string): boolean {
  const [first = '', ...others] = text.trim().split('\n');
  try {
    JSON.parse(first);
    return others.length > 0;
  } catch {
    return false;
  }
}

/** Counts the line ends in a part of a text. */
function countLines(text: string, from: number, to: number): number {
  let count = 0;
  for (let at = text.indexOf('\n', from); at >= 0 && at < to; at = text.indexOf('\n', at + 1)) count += 1;
  return count;
}

function words(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
