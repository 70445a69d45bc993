/**
 * Works out how a change of a document changes the indexes.
 *
 * Invariant: unchanged entries are not written again.
 */

import type { Key } from '../types.ts';
import type { IndexEntry } from './definition.ts';
import { taken } from './errors.ts';
import { textOf } from './key.ts';

/** Places that may be taken only once in one batch. The conditions of a batch are all compared with the store before the batch. */
export class Claims {
  readonly #taken = new Set<string>();

  /** Takes a place. Throws `VARVE_CONFLICT` if it was taken before. */
  take(place: Key): void {
    const { size } = this.#taken;
    if (this.#taken.add(textOf(place)).size === size) throw taken(place, null);
  }

  /** Takes the place of a new document, and the places of its unique values. */
  takeAll(place: Key, entries: Iterable<IndexEntry>): void {
    this.take(place);
    for (const { index, key } of entries) if (index.isUnique) this.take(key);
  }
}

/** The entries that a document has lost and gained. */
export function differences(
  before: ReadonlyMap<string, IndexEntry>,
  after: ReadonlyMap<string, IndexEntry>,
): { gone: IndexEntry[]; added: IndexEntry[] } {
  const gone = [...before].filter(([text]) => !after.has(text)).map(([, entry]) => entry);
  const added = [...after].filter(([text]) => !before.has(text)).map(([, entry]) => entry);
  return { gone, added };
}
