/**
 * idb-keyval: keys and values over IndexedDB, in its own words "super-simple". `set` and `get` for one, `setMany`,
 * `getMany` and `delMany` for many, which its readme recommends as faster than single calls.
 *
 * Invariant: it asks for no durability, so a write has the browser's standard, in Chromium `relaxed`. It has no strict.
 */

import type { UseStore } from 'idb-keyval';
import type { AsyncSession, BatchEntries, Engine, PointCall } from '../core/engine.ts';
import { cannot } from '../core/engine.ts';
import type { Key } from '../core/generator.ts';
import { waveOfRuns } from './runs.ts';
import { versionOf } from './versions.ts';

const NAME = 'idb-keyval';
const STORE = 'entries';

type Library = typeof import('idb-keyval');

class IdbKeyvalSession implements AsyncSession {
  readonly kind = 'async';
  readonly #library: Library;
  readonly #store: UseStore;

  constructor(library: Library, store: UseStore) {
    this.#library = library;
    this.#store = store;
  }

  set(key: Key, value: Uint8Array): Promise<void> {
    return this.#library.set(key as IDBValidKey, value, this.#store);
  }

  get(key: Key): Promise<Uint8Array | undefined> {
    return this.#library.get<Uint8Array>(key as IDBValidKey, this.#store);
  }

  delete(key: Key): Promise<void> {
    return this.#library.del(key as IDBValidKey, this.#store);
  }

  batch({ keys, values }: BatchEntries): Promise<void> {
    const entries = keys.map((key, i): [IDBValidKey, Uint8Array] => [key as IDBValidKey, values[i] as Uint8Array]);
    return this.#library.setMany(entries, this.#store);
  }

  async range(): Promise<void> {
    cannot(NAME, 'range');
  }

  wave(calls: readonly PointCall[]): Promise<readonly (Uint8Array | undefined)[]> {
    return waveOfRuns(calls, {
      set: (run) => this.batch(run),
      get: ({ keys }) => this.#library.getMany<Uint8Array>(keys as IDBValidKey[], this.#store),
      delete: ({ keys }) => this.#library.delMany(keys as IDBValidKey[], this.#store),
    });
  }

  async settle(): Promise<boolean> {
    // Nothing to wait for: every write has been awaited.
    return true;
  }

  async close(): Promise<void> {
    // The library has no call for it; its connection is in the transaction of any store that it opened.
    await this.#store('readonly', ({ transaction }) => transaction.db.close());
  }
}

export const idbKeyval: Engine = {
  name: NAME,
  version: versionOf(NAME),
  url: 'https://github.com/jakearchibald/idb-keyval',
  about: 'idb-keyval: set, get and del, one transaction each; in flight and for batches setMany, getMany and delMany.',
  recommended:
    'A store of its own by createStore; setMany and getMany rather than many single calls (github.com/jakearchibald/idb-keyval#readme).',
  role: 'peer',
  accesses: ['worker', 'page', 'inflight'],
  abilities: ['set', 'get', 'miss', 'mixed', 'delete', 'batch', 'open', 'tuple'],
  durabilities: ['relaxed'],
  async open(name) {
    const library = await import('idb-keyval');
    const store = library.createStore(name, STORE);
    // The database is opened by the first call: part of opening here.
    await store('readonly', () => undefined);
    return new IdbKeyvalSession(library, store);
  },
  async remove(name) {
    const { promisifyRequest } = await import('idb-keyval');
    await promisifyRequest(indexedDB.deleteDatabase(name));
  },
};
