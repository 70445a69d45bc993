/**
 * Rows become entries: each gets a key, and is written.
 * Invariant: every row is either an entry or a bad row with a reason; no two entries have the same key. Nothing of a collection is written.
 */

import { KEY_BYTES_MAX } from '../../codec/plain-key.ts';
import { keyFromJson } from '../../http/json-key.ts';
import { type Refusal, refusalIn } from '../../rows/collections.ts';
import type { Key } from '../../types.ts';
import { keyText } from '../keys/key-text.ts';
import type { AnyStore } from '../store.ts';
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

/** Throws if one of the entries belongs to a collection of the store. */
export async function checkEntries(store: AnyStore, entries: Entries['entries']): Promise<void> {
  refuse(await store.transaction(refusalIn), entries);
}

/** Writes entries, all or none. Tabs can define a collection at any time, so the check is a part of the write. */
export function writeEntries(store: AnyStore, entries: Entries['entries']): Promise<void> {
  return store.transaction(async (tx) => {
    refuse(await refusalIn(tx), entries);
    for (const [key, value] of entries) tx.set(key, value);
  });
}

function refuse(refusal: Refusal | undefined, entries: Entries['entries']): void {
  for (const [key] of entries) {
    const why = refusal?.(key);
    if (why !== undefined) throw new Error(`${keyText(key)} cannot be imported: ${why}`);
  }
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
