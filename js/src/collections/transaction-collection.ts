/**
 * A collection inside a transaction.
 *
 * Invariant: what a change depends on is read in the transaction, so that it conflicts with whoever writes that meanwhile. Changes run one
 * after another, also when they are called at once: each sees the entries of the one before it.
 */

import type { Transaction } from '../store/transaction.ts';
import type { Key } from '../types.ts';
import type { MomentAccess } from './access.ts';
import { Claims, changed, differences, type Loose } from './changes.ts';
import type { Document, Layout } from './definition.ts';
import { taken, tooOld } from './errors.ts';
import { Reader } from './reader.ts';

interface Next {
  readonly key: Key;
  /** Undefined deletes it. */
  readonly document: Document | undefined;
}

/** A collection as one transaction sees and writes it; its types are those of `CollectionInTransaction`. */
export class TransactionCollection extends Reader {
  readonly #tx: Transaction<Key, unknown>;
  readonly #moment: MomentAccess;
  #last: Promise<unknown> = Promise.resolve();
  /** Changes made so far. */
  #writes = 0;

  constructor(layout: Layout, moment: MomentAccess, tx: Transaction<Key, unknown>) {
    super(layout, moment);
    this.#tx = tx;
    this.#moment = moment;
  }

  async insert(document: Loose): Promise<Key> {
    const [key] = await this.insertMany([document]);
    return key as Key;
  }

  async insertMany(documents: Iterable<Loose>): Promise<Key[]> {
    const next = Array.from(documents, (given) => this.#next(given));
    await this.#queue(() => this.#write(next, true));
    return next.map(({ key }) => key);
  }

  async put(given: Loose): Promise<Key> {
    const next = this.#next(given);
    await this.#queue(() => this.#write([next], false));
    return next.key;
  }

  async update(key: Key, change: unknown): Promise<unknown> {
    for (;;) {
      const writes = this.#writes;
      const old = (await this.get(key)) as Document | undefined;
      const document = await changed(this.layout, key, old, change);
      if (document === undefined) return old;
      // The function may wait for other changes, so it cannot be in the queue itself: it runs again if there were any.
      const isWritten = await this.#queue(async () => {
        if (this.#writes !== writes) return false;
        await this.#write([{ key, document }], false);
        return true;
      });
      if (isWritten) return document;
    }
  }

  delete(key: Key): Promise<boolean> {
    return this.#queue(async () => {
      const wasThere = await this.#tx.has(this.layout.place(key));
      if (wasThere) await this.#write([{ key, document: undefined }], false);
      return wasThere;
    });
  }

  clear(): Promise<void> {
    return this.#queue(async () => {
      this.#writes++;
      this.#tx.deleteRange({ prefix: this.layout.documents });
      this.#tx.deleteRange({ prefix: this.layout.entries });
    });
  }

  #next(given: Loose): Next {
    const document = this.layout.withKey(given as Document);
    return { key: this.layout.keyOf(document), document };
  }

  /** Looks whether all of it can be written, and then writes all of it. */
  async #write(documents: readonly Next[], isNew: boolean): Promise<void> {
    const { layout } = this;
    const tx = this.#tx;
    const claims = new Claims();
    const places = documents.map(({ key }) => layout.place(key));
    if (isNew) for (const place of places) claims.take(place);
    const old = await tx.getMany(places);
    const there = isNew ? old.findIndex((document) => document !== undefined) : -1;
    if (there >= 0) throw taken(places[there] as Key, null);
    const changes = documents.map(({ key, document }, i) => differences(layout, key, old[i] as Document, document));
    const added = changes.flatMap((change) => change.added);
    const unique = added.filter(({ index }) => index.isUnique).map(({ key }) => key);
    for (const place of unique) claims.take(place);
    const isTaken = await tx.hasMany(unique);
    const first = isTaken.indexOf(true);
    if (first >= 0) throw taken(unique[first] as Key, null);
    this.#writes++;
    for (const [i, { document }] of documents.entries()) {
      const place = places[i] as Key;
      if (document === undefined) tx.delete(place);
      else tx.set(place, document);
    }
    for (const { gone } of changes) for (const { key } of gone) tx.delete(key);
    for (const { key, value } of added) tx.set(key, value);
  }

  /** Runs a change behind those that were called before it. */
  #queue<T>(change: () => Promise<T>): Promise<T> {
    const checked = async (): Promise<T> => {
      // One that does not see the definition would not notice that there is one now.
      if (!(await this.#moment.check())) throw tooOld(this.layout.name);
      return change();
    };
    const result = this.#last.then(checked);
    this.#last = result.catch(() => undefined);
    return result;
  }
}
