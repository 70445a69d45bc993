/**
 * Keys, values and numbers as one types and reads them in a terminal.
 *
 * Keys have the JSON form of `varve/http`.
 *
 * Invariant: `parseKeyText` reads what `keyText` returns as the same key.
 */

import { inspect } from 'node:util';
import { KEY_BYTES_MAX } from '../codec/plain-key.ts';
import { keyFromJson, keyToJson } from '../http/json-key.ts';
import { isJson } from '../http/media.ts';
import { parseTyped } from '../rows/typed.ts';
import type { Key } from '../types.ts';
import { wrong } from './exit.ts';

/** A key in one line, as JSON. */
export function keyText(key: Key): string {
  return safe(JSON.stringify(keyToJson(key)));
}

/** The key of a text. */
export function parseKeyText(text: string): Key {
  return keyFromJson(parseText(text), KEY_BYTES_MAX);
}

/** The value of a text: JSON, or else the text itself. */
export function parseText(text: string): unknown {
  return parseTyped(
    text,
    `${shown(text)} is not JSON. Write a list as '["note",42]', and a text as "text" in quotes or as a bare word.`,
  );
}

/** The text of bytes in UTF-8, without a line end behind it; for other bytes an error with this message. */
export function utf8Of(bytes: Uint8Array, message: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes).replace(/\r?\n$/, '');
  } catch {
    throw wrong(message);
  }
}

/** A value in several lines: JSON where JSON can express it, else as Node prints it. */
export function valueText(value: unknown): string {
  return safe(isJson(value) ? JSON.stringify(value, null, 2) : inspect(value, { depth: 20 }));
}

/** A value in one line. */
export function valueLine(value: unknown): string {
  if (isJson(value)) return safe(JSON.stringify(value));
  return safe(inspect(value, { depth: 20, breakLength: Number.POSITIVE_INFINITY, compact: true }));
}

/** A text as a part of a message. */
export function shown(text: string): string {
  return safe(text.length > 60 ? `${text.slice(0, 59)}\u2026` : text);
}

/** A text without the characters that control a terminal, except for line ends. JSON leaves those above 0x7e. */
function safe(text: string): string {
  return text.replace(/[^\P{Cc}\n]/gu, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

const NUMBERS = new Intl.NumberFormat('en');

/** `135,233` */
export function count(number: number): string {
  return NUMBERS.format(number);
}

/** `1 entry`, `2 entries` */
export function plural(number: number, one: string, many: string): string {
  return `${count(number)} ${number === 1 ? one : many}`;
}

/** `512 B`, `6.2 MB` */
export function size(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  const [unit, scaled]: [string, number] =
    bytes < 1e6 ? ['kB', bytes / 1e3] : bytes < 1e9 ? ['MB', bytes / 1e6] : ['GB', bytes / 1e9];
  return `${scaled.toFixed(scaled < 10 ? 1 : 0)} ${unit}`;
}
