/**
 * A collection of a store.
 *
 * Invariant: each change of a document is one batch with the changes of its entries. The batch depends on what the entries were worked out
 * from: the document as it was read, or that there was none; of a unique index, that nobody has the value; and that the definition is not
 * over. So it is right however many tabs write, without a transaction, and an insert reads nothing.
 */

import type { VarveError } from '../errors.ts';
import type { Batch } from '../store/batch.ts';
import type { Store } from '../store/store.ts';
import type { Transaction } from '../store/transaction.ts';
import { backOff } from '../transaction/retry.ts';
import type { Key, WriteOptions } from '../types.ts';
import { MomentAccess, StoreAccess, type View } from './access.ts';
import { Claims, changed, differences, type Loose, type Made } from './changes.ts';
import type { Document, IndexEntry, Layout } from './definition.ts';
import { contended, explained, placeOf } from './errors.ts';
import { Reader } from './reader.ts';
import type { Readiness } from './readiness.ts';
import { TransactionCollection } from './transaction-collection.ts';
import type { ReadyOptions } from './types.ts';

/** How often a document is read and written before it is given up. */
const ATTEMPTS_MAX = 16;

/** Documents with indexes in a store; its types are those of `Collection`. */
export class StoreCollection extends Reader {
  readonly #db: Store<Key, unknown>;
  readonly #readiness: Readiness;
  readonly #views = new WeakMap<View, Reader>();

  constructor(db: Store<Key, unknown>, readiness: Readiness) {
    super(readiness.layout, new StoreAccess(db, readiness));
    this.#db = db;
    this.#readiness = readiness;
  }

  get name(): string {
    return this.layout.name;
  }

  ready(options?: ReadyOptions): Promise<void> {
    return this.#readiness.ready(options);
  }

  keyOf(key: Key): Key {
    return this.layout.place(key);
  }

  in(view: View): Reader {
    let reader = this.#views.get(view);
    if (reader === undefined) {
      const access = new MomentAccess(view, this.#readiness);
      const isTransaction = 'set' in view;
      reader = isTransaction
        ? new TransactionCollection(this.layout, access, view as Transaction<Key, unknown>)
        : new Reader(this.layout, access);
      this.#views.set(view, reader);
    }
    return reader;
  }

  async insert(document: Loose, options?: WriteOptions): Promise<Key> {
    const [key] = await this.insertMany([document], options);
    return key as Key;
  }

  insertMany(documents: Iterable<Loose>, options?: WriteOptions): Promise<Key[]> {
    return this.#readiness.run(async () => {
      const batch = this.#batch();
      const claims = new Claims();
      const keys: Key[] = [];
      for (const given of documents) {
        const { key, document } = keyed(this.layout, given as Document);
        const place = this.layout.place(key);
        claims.take(place);
        batch.set(place, document, { ifSequence: null });
        this.#addEntries(batch, this.layout.entriesOf(document, key).values(), claims);
        keys.push(key);
      }
      if (keys.length > 0) await this.#commit(batch, options);
      return keys;
    });
  }

  put(given: Loose, options?: WriteOptions): Promise<Key> {
    return this.#readiness.run(async () => {
      const { key, document } = keyed(this.layout, given as Document);
      if (this.layout.indexes.size === 0) {
        await this.#commit(this.#batch().set(this.layout.place(key), document), options);
      } else {
        await this.#change(key, () => ({ document }), options);
      }
      return key;
    });
  }

  async update(key: Key, change: unknown, options?: WriteOptions): Promise<unknown> {
    let result: Document | undefined;
    const make = async (old: Document | undefined): Promise<Made> => {
      result = old;
      const document = await changed(this.layout, key, old, change);
      if (document === undefined) return undefined;
      result = document;
      return { document };
    };
    await this.#readiness.run(() => this.#change(key, make, options));
    return result;
  }

  async delete(key: Key, options?: WriteOptions): Promise<boolean> {
    let wasThere = false;
    const make = (old: Document | undefined): Made => {
      wasThere = old !== undefined;
      return wasThere ? { document: undefined } : undefined;
    };
    await this.#readiness.run(() => this.#change(key, make, options));
    return wasThere;
  }

  async clear(options?: WriteOptions): Promise<void> {
    const { documents, entries } = this.layout;
    await this.#readiness.run(() =>
      this.#commit(this.#batch().deleteRange({ prefix: documents }).deleteRange({ prefix: entries }), options),
    );
  }

  /** A batch that is refused once the definition is over. */
  #batch(): Batch<Key, unknown> {
    return this.#db.batch().delete(this.layout.retired(this.#readiness.generation), { ifSequence: null });
  }

  #addEntries(batch: Batch<Key, unknown>, entries: Iterable<IndexEntry>, claims?: Claims): void {
    for (const { index, key, value } of entries) {
      if (index.isUnique) claims?.take(key);
      batch.set(key, value, index.isUnique ? { ifSequence: null } : undefined);
    }
  }

  /** Reads a document, and writes what is made of it; again while somebody else writes it in between. */
  async #change(
    key: Key,
    make: (old: Document | undefined) => Made | PromiseLike<Made>,
    options: WriteOptions | undefined,
  ): Promise<void> {
    const { layout } = this;
    const place = layout.place(key);
    for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
      const entry = await this.#db.getEntry(place, options);
      const old = entry?.value as Document | undefined;
      const made = await make(old);
      if (made === undefined) return;
      const { document } = made;
      const batch = this.#batch();
      const ifSequence = entry?.sequence ?? null;
      // First of what the batch depends on: a conflict over a unique value is then one with another document.
      if (document === undefined) batch.delete(place, { ifSequence });
      else batch.set(place, document, { ifSequence });
      const { gone, added } = differences(layout, key, old, document);
      for (const entry of gone) batch.delete(entry.key);
      this.#addEntries(batch, added);
      if (await this.#commit(batch, options, place)) return;
      // Of tabs that do this in step, the same one could lose each time.
      await backOff(attempt, options?.signal);
    }
    throw contended(place);
  }

  /** Commits a batch; false where the document at `place` is to be read again, and written again. */
  async #commit(batch: Batch<Key, unknown>, options: WriteOptions | undefined, place?: Key): Promise<boolean> {
    try {
      await batch.commit(options);
      return true;
    } catch (error) {
      const isDocument = placeOf(error, this.layout.name)?.[1] === 'doc';
      if (place !== undefined && (isDocument || (error as Partial<VarveError>).code === 'VARVE_RETRY')) return false;
      throw explained(error, this.layout.name);
    }
  }
}

/** A document with its key in it. */
function keyed(layout: Layout, given: Document): { key: Key; document: Document } {
  const document = layout.withKey(given);
  return { key: layout.keyOf(document), document };
}
