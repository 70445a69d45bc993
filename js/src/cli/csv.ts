/**
 * CSV in both directions, read and written by Papa Parse.
 */

import { Readable } from 'node:stream';
import { inspect } from 'node:util';
import { type ParseResult, parse, unparse } from 'papaparse';
import { toBase64 } from '../http/base64.ts';
import { isJson } from '../http/media.ts';
import { exportColumns, VALUE_COLUMN } from '../rows/csv.ts';
import type { Key } from '../types.ts';
import { inPieces } from './lines.ts';
import { keyText } from './text.ts';

/** A row of a CSV file. */
interface Record {
  /** Where it begins: the number of its first line, from 1. */
  readonly line: number;
  readonly fields: readonly string[];
  /** Why it cannot be read. */
  readonly error?: string | undefined;
}

/** The rows of CSV, the header included; empty lines are left out. */
export async function* recordsOf(texts: AsyncIterable<string>): AsyncGenerator<Record, undefined> {
  let line = 1;
  for await (const { data, errors } of chunksOf(texts)) {
    for (const [row, fields] of data.entries()) {
      const error = errors.find((each) => each.row === row && each.type === 'Quotes')?.message;
      if (fields.length > 1 || fields[0]?.trim() !== '') yield { line, fields, error };
      line += 1;
      for (const field of fields) line += field.split('\n').length - 1;
    }
  }
}

/** The chunks that Papa Parse has parsed; nothing is read while one is used. */
async function* chunksOf(texts: AsyncIterable<string>): AsyncGenerator<ParseResult<string[]>, undefined> {
  // The parser guesses line ends and delimiter from the first piece, so that one must not be short.
  const stream = Readable.from(inPieces(texts));
  let take: (chunk: ParseResult<string[]> | undefined) => void = () => undefined;
  let fail: (error: unknown) => void = () => undefined;
  const next = (): Promise<ParseResult<string[]> | undefined> =>
    new Promise((resolve, reject) => {
      take = resolve;
      fail = reject;
      // It may have failed while a chunk was used.
      if (stream.errored) reject(stream.errored);
    });
  let chunk = next();
  let resume = (): void => undefined;
  stream.on('error', (error) => fail(error));
  parse<string[]>(stream as never, {
    chunk: (results, parser) => {
      // The parser's own pause ends only the parsing.
      stream.pause();
      parser.pause();
      resume = () => {
        stream.resume();
        parser.resume();
      };
      take(results);
    },
    complete: () => take(undefined),
  });
  try {
    for (let results = await chunk; results !== undefined; results = await chunk) {
      yield results;
      chunk = next();
      resume();
    }
  } finally {
    stream.destroy();
  }
}

/** The fields of a value: an object's own, or the value itself as one field. */
export function fieldsOf(value: unknown): Readonly<{ [name: string]: unknown }> {
  const isPlain = typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
  return isPlain ? (value as { [name: string]: unknown }) : { [VALUE_COLUMN]: value };
}

/** The line that names the columns. */
export function headLine(columns: Iterable<string>): string {
  return `${unparse([exportColumns(columns)])}\r\n`;
}

/** An entry as a line. */
export function rowLine(key: Key, value: unknown, columns: readonly string[]): string {
  const fields = fieldsOf(value);
  const cells = columns.map((column) => (Object.hasOwn(fields, column) ? cellText(fields[column]) : ''));
  return `${unparse([[keyText(key), ...cells]])}\r\n`;
}

function cellText(value: unknown): string {
  if (value === null || value === undefined) return '';
  if (typeof value !== 'object') return String(value);
  if (value instanceof Date) return value.toISOString();
  if (isJson(value)) return JSON.stringify(value);
  if (value instanceof Uint8Array) return toBase64(value);
  return inspect(value, { depth: 20, breakLength: Number.POSITIVE_INFINITY });
}
