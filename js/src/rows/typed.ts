/**
 * Keys and values as one types them: JSON, or a text that does not begin like JSON, which is a string.
 *
 *   word   "text"   42   true   ["note",42]   {"date":"2026-01-31T12:00:00.000Z"}
 */

import { InexactJson, inexact, parseExactJson } from '../http/exact-json.ts';

/** The error of a text that cannot be read. Its message is for the person who typed the text or chose the file. */
export class Unreadable extends Error {}

/** The value of a text. `notJson` is the message for a text that only begins like JSON. */
export function parseTyped(text: string, notJson: string): unknown {
  if (!/^\s*(["[{]|-?\d|(true|false|null)\s*$)/.test(text)) return text;
  try {
    return parseExactJson(text);
  } catch (error) {
    if (error instanceof InexactJson) throw new Unreadable(inexact(error));
    // A date or a name that begins with a digit.
    if (/^\s*[\d-]/.test(text)) return text;
    throw new Unreadable(notJson);
  }
}
