/**
 * The `idb` library, as its readme shows it: `db.put`, `db.get`, one transaction each.
 */

import type { IDBPDatabase } from 'idb';
import type { AsyncSession, BatchEntries, Engine, PointCall, SessionOptions, Sink } from '../core/engine.ts';
import type { Key } from '../core/generator.ts';
import { versionOf } from './versions.ts';

const STORE = 'entries';

class IdbSession implements AsyncSession {
  readonly kind = 'async';
  readonly #db: IDBPDatabase;
  readonly #durability: 'relaxed' | 'strict';

  constructor(db: IDBPDatabase, options: SessionOptions) {
    this.#db = db;
    this.#durability = options.durability === 'strict' ? 'strict' : 'relaxed';
  }

  async set(key: Key, value: Uint8Array): Promise<void> {
    await this.batch({ keys: [key], values: [value] });
  }

  async delete(key: Key): Promise<void> {
    const transaction = this.#db.transaction(STORE, 'readwrite', { durability: this.#durability });
    await Promise.all([transaction.store.delete(key as IDBValidKey), transaction.done]);
  }

  async deleteRange(from: Key, to: Key): Promise<void> {
    const transaction = this.#db.transaction(STORE, 'readwrite', { durability: this.#durability });
    await Promise.all([transaction.store.delete(IDBKeyRange.bound(from, to, false, true)), transaction.done]);
  }

  async batch({ keys, values }: BatchEntries): Promise<void> {
    const transaction = this.#db.transaction(STORE, 'readwrite', { durability: this.#durability });
    await Promise.all([
      ...keys.map((key, i) => transaction.store.put(values[i], key as IDBValidKey)),
      transaction.done,
    ]);
  }

  get(key: Key): Promise<Uint8Array | undefined> {
    return this.#db.get(STORE, key as IDBValidKey);
  }

  async range(from: Key | undefined, limit: number, sink: Sink): Promise<void> {
    const range = from === undefined ? undefined : IDBKeyRange.lowerBound(from);
    const { store } = this.#db.transaction(STORE, 'readonly');
    const [keys, values] = await Promise.all([store.getAllKeys(range, limit), store.getAll(range, limit)]);
    for (let i = 0; i < keys.length; i++) sink.take(keys[i] as Key, values[i]);
  }

  wave(calls: readonly PointCall[]): Promise<(Uint8Array | undefined)[]> {
    return Promise.all(
      calls.map(async ({ key, value }) => {
        if (value === undefined) return this.get(key);
        await (value === null ? this.delete(key) : this.set(key, value));
        return undefined;
      }),
    );
  }

  async settle(): Promise<boolean> {
    // Nothing to wait for: every write has been awaited.
    return true;
  }

  async close(): Promise<void> {
    this.#db.close();
  }
}

export const idb: Engine = {
  name: 'idb',
  version: versionOf('idb'),
  url: 'https://github.com/jakearchibald/idb',
  recommended:
    'A transaction with tx.store and tx.done awaited together, db.get for one value (github.com/jakearchibald/idb#readme).',
  about: 'The idb library: one transaction per call; in flight: 100 transactions.',
  role: 'peer',
  accesses: ['worker', 'page', 'inflight'],
  abilities: ['set', 'get', 'miss', 'mixed', 'delete', 'batch', 'range', 'deleteRange', 'open', 'tuple'],
  durabilities: ['relaxed', 'strict'],
  async open(name, options) {
    const { openDB } = await import('idb');
    const db = await openDB(name, 1, { upgrade: (upgraded) => void upgraded.createObjectStore(STORE) });
    return new IdbSession(db, options);
  },
  async remove(name) {
    const { deleteDB } = await import('idb');
    await deleteDB(name);
  },
};
