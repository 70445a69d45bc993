/**
 * A collection of a store.
 *
 * Invariant: each change of a document is one batch with the changes of its entries. The batch has three conditions. The document is
 * as it was read, or still absent. No document has the value in a unique index. The generation of the definition is not over. So the
 * result is correct with any number of tabs that write, without a transaction, and an insert reads nothing.
 */

import { hasCode, invalid } from '../errors.ts';
import { durabilityOf, several } from '../options.ts';
import type { Batch } from '../store/batch.ts';
import type { Transaction } from '../store/transaction.ts';
import type { View } from '../store/view.ts';
import { type Call, inTurn } from '../transaction/turns.ts';
import type { Key, WriteOptions } from '../types.ts';
import { SnapshotAccess, type Source, StoreAccess } from './access.ts';
import { Claims, differences } from './changes.ts';
import { Checker } from './check.ts';
import type { Document, IndexEntry } from './definition.ts';
import { contended, explained, isOver, placeOf } from './errors.ts';
import { textOf } from './key.ts';
import { Reader } from './reader.ts';
import type { Readiness } from './readiness.ts';
import { type Loose, type Taken, Taker } from './taken.ts';
import { TransactionCollection } from './transaction-collection.ts';
import type { CollectionReport, ReadyOptions } from './types.ts';

const NONE: ReadonlyMap<string, IndexEntry> = new Map();

/** Computes the change of a document: a new document; null deletes it; undefined changes nothing. */
type Make = (old: Document | undefined) => Taken | null | undefined | PromiseLike<Taken | null | undefined>;

/** Adds writes to a batch. It runs again if the batch has to be made again. */
type Fill = (batch: Batch<Key, unknown>) => void;

/** Documents with indexes in a store; its types are those of `Collection`. */
export class StoreCollection extends Reader {
  readonly #db: View<Key, unknown>;
  readonly #readiness: Readiness;
  readonly #taker: Taker;
  readonly #views = new WeakMap<Source, Reader>();

  constructor(db: View<Key, unknown>, readiness: Readiness) {
    super(readiness.layout, new StoreAccess(db, readiness));
    this.#db = db;
    this.#readiness = readiness;
    this.#taker = new Taker(db, readiness.layout);
  }

  get name(): string {
    return this.layout.name;
  }

  ready(options?: ReadyOptions): Promise<void> {
    return this.#readiness.ready(options);
  }

  reindex(options: ReadyOptions = {}): Promise<void> {
    return this.#readiness.reindex(options);
  }

  check(options: ReadyOptions = {}): Promise<CollectionReport<Key>> {
    return new Checker(this.#db, this.#readiness, options).check();
  }

  keyOf(key: Key): Key {
    return this.layout.place(key);
  }

  in(view: Source): Reader {
    let reader = this.#views.get(view);
    if (reader === undefined) {
      const isTransaction = Object(view) === view && 'derivations' in view;
      // The store changes while indexes are built, so reads of it have no fixed read point.
      if (!isTransaction && !(Object(view) === view && 'sequence' in view))
        throw invalid(
          `in() of '${this.name}' takes a transaction or a snapshot. To read the store as it is now, use the collection itself.`,
        );
      // It may be of another view of the store.
      const own = view.at(this.#db);
      const access = new SnapshotAccess(own, this.#readiness);
      reader = isTransaction
        ? new TransactionCollection(this.layout, access, this.#taker, own as Transaction<Key, unknown>)
        : new Reader(this.layout, access);
      this.#views.set(view, reader);
    }
    return reader;
  }

  async insert(document: Loose, options?: WriteOptions): Promise<Key> {
    const [key] = await this.insertMany([document], options);
    return key as Key;
  }

  async insertMany(documents: Iterable<Loose>, options?: WriteOptions): Promise<Key[]> {
    const claims = new Claims();
    const all = Array.from(several(documents), (given) => this.#taker.take(given));
    for (const { place, entries } of all) claims.takeAll(place, entries.values());
    const fill: Fill = (batch): void => {
      for (const { place, bytes, entries } of all) {
        batch.setEncoded(place, bytes, { ifSequence: null });
        this.#addEntries(batch, entries.values());
      }
    };
    await this.#run(async (how) => all.length > 0 && this.#commit(fill, how), options);
    return all.map(({ key }) => key);
  }

  async put(given: Loose, options?: WriteOptions): Promise<Key> {
    const taken = this.#taker.take(given);
    const { key, place, bytes } = taken;
    const write = (how: WriteOptions): Promise<void> =>
      this.layout.indexes.size === 0
        ? this.#inTurn(place, () => this.#commit((batch) => batch.setEncoded(place, bytes), how), how)
        : this.#change(key, () => taken, how);
    await this.#run(write, options);
    return key;
  }

  async update(key: Key, given: unknown, options?: WriteOptions): Promise<unknown> {
    const [, , own] = this.layout.place(key);
    const change = this.#taker.change(given);
    let result: Document | undefined;
    const make = async (old: Document | undefined): Promise<Taken | undefined> => {
      result = old;
      const document = old && (await change(old));
      if (document === undefined) return undefined;
      result = document;
      return this.#taker.takeAs(own, document);
    };
    await this.#run((how) => this.#change(own, make, how), options);
    return result;
  }

  async delete(key: Key, options?: WriteOptions): Promise<boolean> {
    const [, , own] = this.layout.place(key);
    let wasThere = false;
    const make = (old: Document | undefined): null | undefined => {
      wasThere = old !== undefined;
      return wasThere ? null : undefined;
    };
    await this.#run((how) => this.#change(own, make, how), options);
    return wasThere;
  }

  async clear(options?: WriteOptions): Promise<void> {
    const { documents, entries } = this.layout;
    const fill: Fill = (batch): void => void batch.deleteRange({ prefix: documents }).deleteRange({ prefix: entries });
    await this.#run((how) => this.#commit(fill, how), options);
  }

  /** Checks the options of a write, and runs it with a copy of them when the indexes are ready. */
  async #run<T>(write: (options: WriteOptions) => Promise<T>, options: WriteOptions | undefined): Promise<T> {
    const how = { durability: durabilityOf(options), signal: options?.signal };
    return this.#readiness.run(() => write(how), how.signal);
  }

  /** Reads a document and writes its change. Repeats this as long as somebody else writes the document in between. */
  async #change(key: Key, make: Make, options: WriteOptions): Promise<void> {
    const { layout } = this;
    const place = layout.place(key);
    const attempt = async (call: Call): Promise<void> => {
      const entry = await this.#db.getEntry(place, { signal: options.signal });
      const old = entry?.value as Document | undefined;
      // Computed before the caller's function gets the document, because that function may change it in place.
      const before = layout.entriesOf(old, key, undefined, true);
      const made = await call(() => make(old));
      if (made === undefined) return;
      const ifSequence = entry?.sequence ?? null;
      const { gone, added } = differences(before, made?.entries ?? NONE);
      const fill: Fill = (batch): void => {
        // This is the first condition of the batch: a later conflict over a unique value is then with another document.
        if (made === null) batch.delete(place, { ifSequence });
        else
          batch.setEncoded(place, made.bytes, { ifSequence, expiresAt: made.isUpdate ? entry?.expiresAt : undefined });
        for (const entry of gone) batch.delete(entry.key);
        this.#addEntries(batch, added);
      };
      await this.#commit(fill, options);
    };
    return this.#inTurn(place, attempt, options);
  }

  /** Runs a write of a document after those that were called before it, and again as long as somebody else writes it in between. */
  #inTurn(place: Key, attempt: (call: Call) => Promise<void>, { signal }: WriteOptions): Promise<void> {
    return inTurn({ owner: this.#db, key: textOf(place), signal }, attempt, {
      is: (error) => placeOf(error, this.layout.name)?.[1] === 'doc' || hasCode(error, 'VARVE_RETRY'),
      last: () => contended(place),
    });
  }

  /** Commits a batch. If it is refused because the generation is over, it commits one of the next generation. */
  async #commit(fill: Fill, options: WriteOptions): Promise<void> {
    for (;;) {
      const { generation } = this.#readiness;
      const batch = this.#db.batch().delete(this.layout.retired(generation), { ifSequence: null });
      fill(batch);
      try {
        await batch.commit(options);
        return;
      } catch (error) {
        if (!isOver(error)) throw explained(error, this.layout.name);
      }
      await this.#readiness.renew(generation, options.signal);
    }
  }

  #addEntries(batch: Batch<Key, unknown>, entries: Iterable<IndexEntry>): void {
    const own = batch.at(this.layout.own);
    for (const { index, key, value } of entries) own.set(key, value, index.isUnique ? { ifSequence: null } : undefined);
  }
}
