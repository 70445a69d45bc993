/**
 * The rows of a file of JSON lines or CSV, each with its key.
 *
 *   JSON lines   {"key":["note",42],"value":{"title":"Silt"}}     as `scan --json`, `export` and `varve/http` write them
 *                {"id":42,"title":"Silt"}                         with --key-field id: the line is the value
 *   CSV          (key),title                                      as `export` writes it
 *                id,title                                         with --key-field id
 *
 * Invariant: a row that cannot be read is reported with its line and a reason. Nothing is guessed for it.
 */

import { encodeKey } from '../codec/keys.ts';
import { KEY_BYTES_MAX } from '../codec/plain-key.ts';
import { InexactJson, inexact, parseExactJson } from '../http/exact-json.ts';
import { keyFromJson } from '../http/json-key.ts';
import { valueFromJson } from '../http/media.ts';
import { cellValue, headerOf, KEY_COLUMN, VALUE_COLUMN } from '../rows/csv.ts';
import type { Key } from '../types.ts';
import { recordsOf } from './csv.ts';
import { wrong } from './exit.ts';
import { linesOf, textsOf } from './lines.ts';
import { parseKeyText, shown } from './text.ts';

/** How rows get their keys. */
export interface KeyRule {
  /** The field or the column that is the key; undefined: rows have keys of their own. */
  readonly column: string | undefined;
  /** Stands before each key. */
  readonly prefix: readonly Key[] | undefined;
}

/** A row that can be imported. */
export interface Row {
  readonly line: number;
  readonly key: Key;
  readonly value: unknown;
  /** How long it is, about. */
  readonly chars: number;
}

/** A row that cannot be imported. */
export interface BadRow {
  readonly line: number;
  readonly why: string;
}

/** The rows of a stream of bytes. */
export async function* rowsOf(
  format: 'jsonl' | 'csv',
  bytes: AsyncIterable<Uint8Array>,
  rule: KeyRule,
): AsyncGenerator<Row | BadRow, undefined> {
  let last = 0;
  try {
    for await (const row of format === 'csv' ? csvRows(textsOf(bytes), rule) : jsonRows(textsOf(bytes), rule)) {
      last = row.line;
      yield row;
    }
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    yield { line: last + 1, why: 'This line or one after it is not UTF-8.' };
  }
}

async function* jsonRows(texts: AsyncIterable<string>, rule: KeyRule): AsyncGenerator<Row | BadRow, undefined> {
  let line = 0;
  for await (const text of linesOf(texts)) {
    line += 1;
    if (text.trim() === '') continue;
    yield rowAt(line, text.length, rule, () => {
      const json = objectOf(text);
      if (rule.column !== undefined) return [fieldKey(json, rule.column), json];
      const other = Object.keys(json).find((name) => !['key', 'value', 'bytes', 'cbor'].includes(name));
      if (!Object.hasOwn(json, 'key')) throw wrong('It has no key. Name the field that is the key with --key-field.');
      if (other !== undefined) throw wrong(`It has a member ${shown(other)} besides key and value.`);
      return [keyFromJson(json['key'], KEY_BYTES_MAX), valueFromJson(json)];
    });
  }
}

function objectOf(text: string): { readonly [name: string]: unknown } {
  let json: unknown;
  try {
    json = parseExactJson(text);
  } catch (error) {
    throw wrong(error instanceof InexactJson ? inexact(error) : 'It is not JSON.');
  }
  if (typeof json === 'object' && json !== null && !Array.isArray(json)) return json as { [name: string]: unknown };
  throw wrong('It is JSON, but no object.');
}

async function* csvRows(texts: AsyncIterable<string>, rule: KeyRule): AsyncGenerator<Row | BadRow, undefined> {
  let columns: string[] | undefined;
  for await (const record of recordsOf(texts)) {
    if (columns === undefined) {
      columns = headerOf(record.fields);
      checkColumns(columns, rule);
      continue;
    }
    const names = columns;
    const { line, fields, error } = record;
    const chars = fields.reduce((sum, field) => sum + field.length, 0);
    yield rowAt(line, chars, rule, () => {
      if (error !== undefined) throw wrong(`${error}.`);
      if (fields.length !== names.length) {
        throw wrong(`It has ${fields.length} fields, and the first line has ${names.length}.`);
      }
      const cells = names.map((name, i) => [name, fields[i]!] as const);
      const value: { [name: string]: unknown } = Object.fromEntries(
        cells
          .filter(([name]) => name !== KEY_COLUMN || rule.column !== undefined)
          .map(([name, cell]) => [name, cellValue(cell)]),
      );
      if (rule.column !== undefined) return [fieldKey(value, rule.column), value];
      const key = parseKeyText(fields[names.indexOf(KEY_COLUMN)]!);
      return [key, names.length === 2 && Object.hasOwn(value, VALUE_COLUMN) ? value[VALUE_COLUMN] : value];
    });
  }
}

function checkColumns(columns: readonly string[], { column = KEY_COLUMN }: KeyRule): void {
  if (columns.includes(column)) return;
  throw wrong(
    column === KEY_COLUMN
      ? `Name the column that is the key with --key-field: ${shown(columns.join(', '))}.`
      : `There is no column ${shown(column)}. The columns are ${shown(columns.join(', '))}.`,
  );
}

function fieldKey(value: { readonly [name: string]: unknown }, column: string): Key {
  const key = Object.hasOwn(value, column) ? value[column] : undefined;
  if (key === undefined || key === null || key === '') throw wrong(`It has no ${shown(column)}, which is the key.`);
  return keyFromJson(key, KEY_BYTES_MAX);
}

function rowAt(line: number, chars: number, { prefix }: KeyRule, read: () => readonly [Key, unknown]): Row | BadRow {
  try {
    const [own, value] = read();
    const key = prefix === undefined ? own : [...prefix, own];
    // The prefix makes the key longer and deeper.
    if (prefix !== undefined) encodeKey(key);
    return { line, key, value, chars };
  } catch (error) {
    return { line, why: (error as Error).message };
  }
}
