/**
 * The arguments of the writes of a collection, as they were at the call.
 *
 * Invariant: key and entries are computed from the encoded bytes of a document, decoded again. So they always belong to the document that
 * is stored. It does not matter what its getters return, or how the caller changes it while a write waits for the indexes, for a read or
 * for the writes before it.
 */

import { ByteSink } from '../codec/sink.ts';
import { checkLength } from '../codec/values.ts';
import { invalid } from '../errors.ts';
import type { View } from '../store/view.ts';
import type { Key } from '../types.ts';
import type { Document, IndexEntry, Layout } from './definition.ts';
import { textOf } from './key.ts';

/** A document as it comes from callers. */
export type Loose = object;

/** A document that is to be written. */
export interface Taken {
  readonly key: Key;
  /** The store key of the document. */
  readonly place: Key;
  /** Its value in the encoding of the store. */
  readonly bytes: Uint8Array;
  readonly entries: ReadonlyMap<string, IndexEntry>;
  /** It keeps the expiry of the document that it replaces. */
  readonly isUpdate?: boolean;
}

/** Changes a document: undefined stands for no change. */
type TakenChange = (old: Document) => Promise<Document | undefined>;

/** Copies documents of one collection in the format of its store. */
export class Taker {
  readonly #db: View<Key, unknown>;
  readonly #layout: Layout;

  constructor(db: View<Key, unknown>, layout: Layout) {
    this.#db = db;
    this.#layout = layout;
  }

  /** A document that is inserted or put. It gets a new key if it has none. */
  take(given: Loose): Taken {
    // The caller's object is read only once. With a new key it is a different document, which is encoded again.
    const copy = this.#copy(given);
    const keyed = this.#layout.withKey(copy.value);
    const { bytes, value } = keyed === copy.value ? copy : this.#copy(keyed);
    const place = this.#layout.place(this.#layout.keyOf(value));
    const [, , key] = place;
    return { key, place, bytes, entries: this.#layout.entriesOf(value, key) };
  }

  /** The document that `update` writes under this key. Throws if it has another key. */
  takeAs(key: Key, given: Loose): Taken {
    const taken = this.take(given);
    if (textOf(taken.key) === textOf(key)) return { ...taken, isUpdate: true };
    throw invalid(
      `update may not change the key of a document of '${this.#layout.name}'. Insert it under its new key and delete the old one, in a transaction.`,
    );
  }

  /** The change that the caller passed to `update`. Properties are copied now, also those whose value is undefined. */
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
    checkLength(bytes.length);
    const value = values.read(bytes, 0, bytes.length);
    if (typeof value !== 'object' || value === null)
      throw invalid(`A document of '${this.#layout.name}' is an object, and so are properties to replace.`);
    return { bytes, value: value as Document };
  }
}
