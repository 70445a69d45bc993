/**
 * Keys as one types them: JSON, with tags for types that JSON does not have.
 *
 *   "text"  text  42  true  ["note", 42]       a word without quotes is a text
 *   {"bigint": "12"}  {"date": "2026-01-31T12:00:00.000Z"}  {"bytes": "AP8="}  {"number": "-Infinity"}
 *
 * The bytes are base64, as in `varve/http` and on the command line.
 *
 * Invariant: what `keyText` writes `parseKey` reads as the same key.
 */

import { KEY_BYTES_MAX } from '../../codec/plain-key.ts';
import { keyFromJson, keyToJson } from '../../http/json-key.ts';
import { parseTyped } from '../../rows/typed.ts';
import type { Key } from '../../types.ts';

/** A key as text, in one line. */
export function keyText(key: Key): string {
  if (Array.isArray(key)) return `[${key.map(keyText).join(', ')}]`;
  return JSON.stringify(keyToJson(key));
}

/** The key that the visitor typed. Throws a sentence for text that is no key. */
export function parseKey(text: string): Key {
  const json = parseTyped(
    text.trim(),
    'This is not JSON. Write a list of keys as ["note", 42], and a text "in quotes" or as one word without quotes.',
  );
  return keyFromJson(json, KEY_BYTES_MAX);
}
