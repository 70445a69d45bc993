/**
 * Rows become entries: each gets a key.
 * Invariant: every row is either an entry or a bad row with a reason; no two entries have the same key.
 */

import { KEY_BYTES_MAX } from '../../codec/plain-key.ts';
import { keyFromJson } from '../../http/json-key.ts';
import type { Key } from '../../types.ts';
import { keyText } from '../keys/key-text.ts';
import type { BadRow, Row, Rows } from './rows.ts';

/** How keys are made. */
interface KeyChoice {
  /** The column used as the key; '' for the number of the row. */
  readonly column: string;
  /** The prefix: keys are `[prefix, key]`; '' for the key alone. */
  readonly prefix: string;
}

export interface Entries {
  readonly entries: readonly (readonly [Key, unknown])[];
  /** Rows that could not be read, and those that could not get a key. */
  readonly bad: readonly BadRow[];
}

/** Gives each row its key. */
export function entriesOf(rows: Rows, choice: KeyChoice): Entries {
  const entries: [Key, unknown][] = [];
  const bad: BadRow[] = [...rows.bad];
  const places = new Map<string, string>();
  rows.rows.forEach((row, i) => {
    const { place } = row;
    try {
      const own = rows.isKeyed ? keyFromJson(row.key, KEY_BYTES_MAX) : columnKey(row, choice.column, i);
      const key = choice.prefix === '' ? own : [choice.prefix, own];
      const text = keyText(key);
      const before = places.get(text);
      if (before !== undefined) throw new Error(`It has the same key as ${before}, ${text}.`);
      places.set(text, place);
      entries.push([key, row.value]);
    } catch (error) {
      bad.push({ place, why: error instanceof Error ? error.message : String(error) });
    }
  });
  return { entries, bad };
}

function columnKey({ value }: Row, column: string, index: number): Key {
  if (column === '') return index + 1;
  const found = (value as Record<string, unknown> | null)?.[column];
  if (typeof found === 'number' || typeof found === 'boolean') return found;
  if (typeof found === 'string' && found.trim() !== '') return found;
  if (found === undefined || found === null || typeof found === 'string') {
    throw new Error(`It has no value in "${column}", the column of its key.`);
  }
  throw new Error(`Its value in "${column}" is neither a text nor a number, so it cannot be a key.`);
}
