/**
 * What a change of a document changes in the indexes.
 *
 * Invariant: entries that stay are not written again.
 */

import type { Key } from '../types.ts';
import { type Document, type IndexEntry, invalid, type Layout } from './definition.ts';
import { taken } from './errors.ts';
import { textOf } from './key.ts';

/** A document as it comes from callers. */
export type Loose = object;

/** What is made of a document: another one, none, or, undefined, nothing. */
export type Made = { readonly document: Document | undefined } | undefined;

/** Places that may be taken once in one batch, whose conditions are all compared with the store before it. */
export class Claims {
  readonly #taken = new Set<string>();

  /** Throws `VARVE_CONFLICT` for a place that was taken before. */
  take(place: Key): void {
    const { size } = this.#taken;
    if (this.#taken.add(textOf(place)).size === size) throw taken(place, null);
  }
}

/** The entries that a document has lost and gained. */
export function differences(
  layout: Layout,
  key: Key,
  old: Document | undefined,
  next: Document | undefined,
): { gone: IndexEntry[]; added: IndexEntry[] } {
  const before = layout.entriesOf(old, key);
  const after = layout.entriesOf(next, key);
  const gone = [...before].filter(([text]) => !after.has(text)).map(([, entry]) => entry);
  const added = [...after].filter(([text]) => !before.has(text)).map(([, entry]) => entry);
  return { gone, added };
}

/** What `update` makes of a document; undefined where nothing is to be written. Throws when that has another key. */
export async function changed(
  layout: Layout,
  key: Key,
  old: Document | undefined,
  change: unknown,
): Promise<Document | undefined> {
  if (old === undefined) return undefined;
  const next = await (typeof change === 'function' ? change(old) : { ...old, ...(change as Document) });
  if (next === undefined) return undefined;
  if (textOf(layout.keyOf(next as Document)) !== textOf(key)) {
    throw invalid(
      `update may not change the key of a document of '${layout.name}'. Insert it under its new key and delete the old one, in a transaction.`,
    );
  }
  return next as Document;
}
