// Keys as one types them: JSON, with tags for types that JSON does not have.
//
//   "text"  text  42  true  ["note", 42]       a word without quotes is a text
//   {"bigint": "12"}  {"date": "2026-01-31T12:00:00.000Z"}  {"bytes": "AP8="}  {"number": "-Infinity"}
//
// The bytes are base64, as in `varve/http` and on the command line.
//
// Invariant: what `keyText` writes `parseKey` reads as the same key.

import type { Key } from 'varve';

/** A key as JSON. */
export function keyToJson(key: Key): unknown {
  if (Array.isArray(key)) return key.map(keyToJson);
  if (typeof key === 'bigint') return { bigint: String(key) };
  if (typeof key === 'number' && !Number.isFinite(key)) return { number: String(key) };
  if (key instanceof Date) return { date: key.toISOString() };
  if (key instanceof Uint8Array) return { bytes: btoa(String.fromCharCode(...key)) };
  return key;
}

/** A key as text, in one line. */
export function keyText(key: Key): string {
  if (Array.isArray(key)) return `[${key.map(keyText).join(', ')}]`;
  return JSON.stringify(keyToJson(key));
}

/** The key that a JSON value represents. Throws a sentence for any other value. */
export function keyFromJson(json: unknown): Key {
  if (typeof json === 'string' || typeof json === 'number' || typeof json === 'boolean') return json;
  if (Array.isArray(json)) return json.map(keyFromJson);
  if (typeof json === 'object' && json !== null) {
    const [entry, ...others] = Object.entries(json);
    if (entry !== undefined && others.length === 0) return tagged(entry[0], String(entry[1]));
  }
  throw new Error(
    'A key is a text, a number, true, false, a list of keys, or one of {"bigint": "12"}, {"date": "2026-01-31T12:00:00.000Z"}, {"bytes": "AP8="}.',
  );
}

/** The key that the visitor typed. Throws a sentence for text that is no key. */
export function parseKey(text: string): Key {
  const trimmed = text.trim();
  if (!/^(["[{]|-?\d|true$|false$)/.test(trimmed)) return trimmed;
  let json: unknown;
  try {
    json = JSON.parse(trimmed);
  } catch {
    // A date or a name that begins with a digit.
    if (/^[\d-]/.test(trimmed)) return trimmed;
    throw new Error(
      'This is not JSON. Write a list of keys as ["note", 42], and a text "in quotes" or as one word without quotes.',
    );
  }
  return keyFromJson(json);
}

function tagged(tag: string, content: string): Key {
  if (tag === 'bigint' && /^-?\d+$/.test(content)) return BigInt(content);
  if (tag === 'bytes' && /^([\w+/]{4})*([\w+/]{2}==|[\w+/]{3}=)?$/.test(content)) {
    return Uint8Array.from(atob(content), (char) => char.charCodeAt(0));
  }
  if (tag === 'date' && !Number.isNaN(Date.parse(content))) return new Date(content);
  if (tag === 'number' && /^-?Infinity$/.test(content)) return Number(content);
  throw new Error(
    `{"${tag}": ...} is not a key. The tagged keys are {"bigint": "12"}, {"date": "2026-01-31T12:00:00.000Z"}, {"bytes": "AP8="} and {"number": "Infinity"}.`,
  );
}
