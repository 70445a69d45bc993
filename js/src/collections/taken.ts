/**
 * What the writes of a collection are given, as it was when they were called.
 *
 * Invariant: key and entries are worked out from what the bytes of a document say when they are read, so they are those of the document
 * that is stored: whatever its getters tell whom, and however it changes while a write waits for the indexes, for a read or for
 * those before it.
 */

import { ByteSink } from '../codec/sink.ts';
import type { Store } from '../store/store.ts';
import type { Key } from '../types.ts';
import { type Document, type IndexEntry, invalid, type Layout } from './definition.ts';
import { textOf } from './key.ts';

/** A document as it comes from callers. */
export type Loose = object;

/** A document that is to be written. */
export interface Taken {
  readonly key: Key;
  /** Where it lies. */
  readonly place: Key;
  /** Its value as the store keeps it. */
  readonly bytes: Uint8Array;
  readonly entries: ReadonlyMap<string, IndexEntry>;
  /** It keeps the expiry of the one before it. */
  readonly isUpdate?: boolean;
}

/** Changes a document: undefined stands for none. */
export type TakenChange = (old: Document) => Promise<Document | undefined>;

/** Takes documents of one collection in the format of its store. */
export class Taker {
  readonly #db: Store<Key, unknown>;
  readonly #layout: Layout;

  constructor(db: Store<Key, unknown>, layout: Layout) {
    this.#db = db;
    this.#layout = layout;
  }

  /** A document that is inserted or put: with the next key where it has none. */
  take(given: Loose): Taken {
    // What it is made of is asked once; with a key it is another document.
    const copy = this.#copy(given);
    const keyed = this.#layout.withKey(copy.value);
    const { bytes, value } = keyed === copy.value ? copy : this.#copy(keyed);
    const place = this.#layout.place(this.#layout.keyOf(value));
    const [, , key] = place;
    return { key, place, bytes, entries: this.#layout.entriesOf(value, key) };
  }

  /** What `update` makes of the document with a key. Throws when that has another key. */
  takeAs(key: Key, given: Loose): Taken {
    const taken = this.take(given);
    if (textOf(taken.key) === textOf(key)) return { ...taken, isUpdate: true };
    throw invalid(
      `update may not change the key of a document of '${this.#layout.name}'. Insert it under its new key and delete the old one, in a transaction.`,
    );
  }

  /** A change that `update` is given. Properties are copied now, also those whose value is undefined. */
  change(given: unknown): TakenChange {
    if (typeof given === 'function') return async (old) => (await given(old)) as Document | undefined;
    const copy = this.#copy(given).value;
    const properties = Object.fromEntries(Object.keys(given as Document).map((name) => [name, copy[name]]));
    return async (old) => ({ ...old, ...properties });
  }

  #copy(given: unknown): { bytes: Uint8Array; value: Document } {
    const { values } = this.#db.batch().formats;
    const sink = new ByteSink(256);
    values.write(given, sink);
    const bytes = sink.bytes.subarray(0, sink.at);
    const value = values.read(bytes, 0, bytes.length);
    if (typeof value !== 'object' || value === null)
      throw invalid(`A document of '${this.#layout.name}' is an object, and so are properties to replace.`);
    return { bytes, value: value as Document };
  }
}
