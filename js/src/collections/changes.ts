/**
 * What a change of a document changes in the indexes.
 *
 * Invariant: entries that stay are not written again.
 */

import type { Key } from '../types.ts';
import type { IndexEntry } from './definition.ts';
import { taken } from './errors.ts';
import { textOf } from './key.ts';

/** Places that may be taken once in one batch, whose conditions are all compared with the store before it. */
export class Claims {
  readonly #taken = new Set<string>();

  /** Throws `VARVE_CONFLICT` for a place that was taken before. */
  take(place: Key): void {
    const { size } = this.#taken;
    if (this.#taken.add(textOf(place)).size === size) throw taken(place, null);
  }

  /** Takes the place of a document that is new, and those of its unique values. */
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
