/**
 * Keys as JSON, their form in queries and bodies.
 *
 *   "text"   42   true   ["note", 42]          as they are
 *   { "bytes": "AAEC" }                        Uint8Array, base64
 *   { "bigint": "-12" }                        decimal digits
 *   { "date": "2026-01-31T12:00:00.000Z" }     as `toISOString` returns it
 *   { "number": "Infinity" }                   and "-Infinity"
 *
 * Invariant: every Varve key has exactly one JSON form, and reading that form returns the same key. Anything else is
 * `VARVE_INVALID_KEY`.
 */

import { encodeKey } from '../codec/keys.ts';
import { KEY_DEPTH_MAX } from '../codec/plain-key.ts';
import { VarveError } from '../errors.ts';
import type { Key } from '../types.ts';
import { fromBase64, toBase64 } from './base64.ts';
import { InexactJson, parseExactJson } from './exact-json.ts';
import { Refusal } from './refusal.ts';

/** The JSON form of a key. Throws `VARVE_INVALID_KEY` if the value is not a key. */
export function keyToJson(key: Key): unknown {
  switch (typeof key) {
    case 'string':
    case 'boolean':
      return key;
    case 'number':
      return Number.isFinite(key) ? key : { number: String(key) };
    case 'bigint':
      return { bigint: String(key) };
  }
  if (Array.isArray(key)) return key.map(keyToJson);
  if (key instanceof Date) return { date: key.toISOString() };
  if (key instanceof Uint8Array) return { bytes: toBase64(key) };
  throw invalid('The store returned a key that is not a key.');
}

/** The key of a JSON form, at most `bytesMax` bytes long in its stored form. */
export function keyFromJson(json: unknown, bytesMax: number): Key {
  const key = read(json, bytesMax, 0);
  if (encodeKey(key).length > bytesMax) throw tooLong(bytesMax);
  return key;
}

/** The key in a parameter of a query. */
export function parseKey(text: string, bytesMax: number): Key {
  return keyFromJson(jsonInQuery(text), bytesMax);
}

/** The JSON in a parameter of a query. */
export function jsonInQuery(text: string): unknown {
  try {
    return parseExactJson(text);
  } catch (error) {
    if (error instanceof InexactJson) throw invalid(error.message);
    throw invalid('A key in a query is JSON: put a string in quotes, as in ?key="visits".');
  }
}

function read(json: unknown, bytesMax: number, depth: number): Key {
  switch (typeof json) {
    case 'string':
    case 'boolean':
    case 'number':
      return json;
  }
  if (Array.isArray(json)) {
    if (depth >= KEY_DEPTH_MAX) throw invalid(`A key nests at most ${KEY_DEPTH_MAX} arrays.`);
    if (json.length > bytesMax) throw tooLong(bytesMax);
    return json.map((item) => read(item, bytesMax, depth + 1));
  }
  if (typeof json === 'object' && json !== null) {
    const [tag, ...others] = Object.entries(json);
    if (tag !== undefined && others.length === 0) return tagged(tag[0], tag[1], bytesMax);
  }
  throw invalid(`A key cannot be ${json === null ? 'null' : 'such an object'}. ${FORMS}`);
}

/** How dates are written. */
export const DATE_FORM = 'toISOString gives it: 2026-01-31T12:00:00.000Z';

/** The date of a text that `toISOString` returned; undefined for another text. */
export function dateOf(text: string): Date | undefined {
  const date = new Date(text);
  return Number.isNaN(date.getTime()) || date.toISOString() !== text ? undefined : date;
}

const FORMS =
  'It is a string, number, boolean, array of keys, or {"bytes": base64}, {"bigint": digits}, {"date": ISO}, {"number": "Infinity"}.';

function tagged(tag: string, content: unknown, bytesMax: number): Key {
  if (typeof content !== 'string') throw invalid(`A key's {"${shown(tag)}": ...} takes a string. ${FORMS}`);
  // Checked before it is parsed: parsing the digits of a bigint takes more than linear time.
  if (content.length > 3 * bytesMax + 64) throw tooLong(bytesMax);
  switch (tag) {
    case 'bytes': {
      const bytes = fromBase64(content);
      if (bytes === undefined) throw invalid('The bytes of a key are no base64.');
      return bytes;
    }
    case 'bigint':
      if (!/^(0|-?[1-9][0-9]*)$/.test(content)) throw invalid('A bigint key is written in decimal digits.');
      return BigInt(content);
    case 'date': {
      const date = dateOf(content);
      if (date === undefined) throw invalid(`A date key is written as ${DATE_FORM}.`);
      return date;
    }
    case 'number':
      if (content === 'Infinity') return Number.POSITIVE_INFINITY;
      if (content === '-Infinity') return Number.NEGATIVE_INFINITY;
      break;
  }
  throw invalid(`A key cannot be {"${shown(tag)}": ...}. ${FORMS}`);
}

function shown(tag: string): string {
  return tag.slice(0, 20);
}

function tooLong(bytesMax: number): Refusal {
  return new Refusal(413, `A key takes at most ${bytesMax} bytes here; this one is longer.`, 'VARVE_INVALID_KEY');
}

function invalid(message: string): VarveError {
  return new VarveError('VARVE_INVALID_KEY', message);
}
