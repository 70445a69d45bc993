/**
 * A collection inside a transaction.
 *
 * Invariant: everything that a change depends on is read in the transaction, so the transaction conflicts with concurrent writes of it.
 * Changes run one after another, also when they are called at the same time: each sees the entries of the one before it.
 */

import { several } from '../options.ts';
import type { Transaction } from '../store/transaction.ts';
import { type Call, inTurn } from '../transaction/turns.ts';
import type { Key } from '../types.ts';
import type { SnapshotAccess } from './access.ts';
import { Claims, differences } from './changes.ts';
import type { Document, IndexEntry, Layout } from './definition.ts';
import { contended, taken, tooOld } from './errors.ts';
import { textOf } from './key.ts';
import { Reader } from './reader.ts';
import type { Loose, Taken, Taker } from './taken.ts';

const NONE: ReadonlyMap<string, IndexEntry> = new Map();

/** A document to put, or the place of a document to delete. */
type Next = Taken | Pick<Taken, 'key' | 'place'>;

/** A collection as one transaction sees and writes it; its types are those of `CollectionInTransaction`. */
export class TransactionCollection extends Reader {
  readonly #tx: Transaction<Key, unknown>;
  readonly #access: SnapshotAccess;
  readonly #taker: Taker;
  #last: Promise<unknown> = Promise.resolve();
  /** The last change of each document. */
  #written = new Map<string, Next>();

  constructor(layout: Layout, access: SnapshotAccess, taker: Taker, tx: Transaction<Key, unknown>) {
    super(layout, access);
    this.#taker = taker;
    this.#tx = tx;
    this.#access = access;
  }

  async insert(document: Loose): Promise<Key> {
    const [key] = await this.insertMany([document]);
    return key as Key;
  }

  async insertMany(documents: Iterable<Loose>): Promise<Key[]> {
    const next = Array.from(several(documents), (given) => this.#taker.take(given));
    await this.#queue(() => this.#write(next, true));
    return next.map(({ key }) => key);
  }

  async put(given: Loose): Promise<Key> {
    const next = this.#taker.take(given);
    await this.#queue(() => this.#write([next], false));
    return next.key;
  }

  async update(key: Key, given: unknown): Promise<unknown> {
    const place = this.layout.place(key);
    const [, , own] = place;
    const change = this.#taker.change(given);
    const text = textOf(own);
    let isOvertaken = false;
    // The function may wait for other changes, so it cannot run inside the queue. It runs again if one of those changed the document.
    const attempt = async (call: Call): Promise<unknown> => {
      isOvertaken = false;
      const written = this.#written;
      const last = written.get(text);
      const old = (await this.get(own)) as Document | undefined;
      const document = old && (await call(() => change(old)));
      if (document === undefined) return old;
      const taken = this.#taker.takeAs(own, document);
      return this.#queue(async () => {
        isOvertaken = this.#written !== written || written.get(text) !== last;
        if (isOvertaken) throw contended(place);
        await this.#write([taken], false);
        return document;
      });
    };
    return inTurn({ owner: this, key: text }, attempt, { is: () => isOvertaken });
  }

  async delete(key: Key): Promise<boolean> {
    const place = this.layout.place(key);
    return this.#queue(async () => {
      const wasThere = await this.#tx.has(place);
      if (wasThere) await this.#write([{ key: place[2], place }], false);
      return wasThere;
    });
  }

  clear(): Promise<void> {
    return this.#queue(async () => {
      this.#written = new Map();
      this.#tx.deleteRange({ prefix: this.layout.documents });
      this.#tx.deleteRange({ prefix: this.layout.entries });
    });
  }

  /**
   * Checks whether all documents can be written, and then writes all of them. The `Taker` has encoded them, and the keys of their entries,
   * so no write is refused after the first one.
   */
  async #write(documents: readonly Next[], isNew: boolean): Promise<void> {
    const { layout } = this;
    const tx = this.#tx;
    const claims = new Claims();
    const places = documents.map(({ place }) => place);
    if (isNew) for (const place of places) claims.take(place);
    const old = await tx.getMany(places);
    const there = isNew ? old.findIndex((document) => document !== undefined) : -1;
    if (there >= 0) throw taken(places[there] as Key, null);
    const changes = documents.map((next, i) =>
      differences(
        layout.entriesOf(old[i] as Document | undefined, next.key, undefined, true),
        'entries' in next ? next.entries : NONE,
      ),
    );
    const added = changes.flatMap((change) => change.added);
    const unique = added.filter(({ index }) => index.isUnique).map(({ key }) => key);
    for (const place of unique) claims.take(place);
    const isTaken = await tx.hasMany(unique);
    const first = isTaken.indexOf(true);
    if (first >= 0) throw taken(unique[first] as Key, null);
    const lifetimes = await Promise.all(
      documents.map((next) => ('isUpdate' in next ? tx.lifetime(next.place) : undefined)),
    );
    for (const [i, next] of documents.entries()) {
      this.#written.set(textOf(next.key), next);
      if ('bytes' in next) tx.setEncoded(next.place, next.bytes, lifetimes[i]);
      else tx.delete(next.place);
    }
    for (const { gone } of changes) for (const { key } of gone) tx.delete(key);
    const own = tx.at(layout.own);
    for (const { key, value } of added) own.set(key, value);
  }

  /** Runs a change after those that were called before it. */
  #queue<T>(change: () => Promise<T>): Promise<T> {
    const checked = async (): Promise<T> => {
      // A transaction that does not see the definition would not notice that one exists now.
      if (!(await this.#access.check())) throw tooOld(this.layout.name);
      return change();
    };
    const result = this.#last.then(checked);
    this.#last = result.catch(() => undefined);
    return result;
  }
}
