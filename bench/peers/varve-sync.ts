/**
 * Varve inside the worker (`varve/synchronous`): every call returns at once.
 *
 * `varve-sync` groups: a set is staged, readable at once, and logged with the others at 64 KiB, at the end of the turn
 * or at the `commit()` that ends a round. `varve-sync-each` calls `commit()` after each write: one append per write.
 */

import { deleteStore, open, type SyncStore } from 'varve/synchronous';
import { turn } from '../core/clock.ts';
import type { BatchEntries, Engine, Place, SessionOptions, Sink, StoreNumbers, SyncSession } from '../core/engine.ts';
import type { Key } from '../core/generator.ts';
import { storeFiles } from './varve-files.ts';

class VarveSyncSession implements SyncSession {
  readonly kind = 'sync';
  readonly #store: SyncStore<Key, Uint8Array>;

  constructor(store: SyncStore<Key, Uint8Array>) {
    this.#store = store;
  }

  set(key: Key, value: Uint8Array): void {
    this.#store.set(key, value);
  }

  get(key: Key): Uint8Array | undefined {
    return this.#store.get(key);
  }

  delete(key: Key): void {
    this.#store.delete(key);
  }

  batch({ keys, values }: BatchEntries): void {
    const batch = this.#store.batch();
    for (let i = 0; i < keys.length; i++) batch.set(keys[i] as Key, values[i] as Uint8Array);
    batch.commit();
  }

  range(from: Key | undefined, limit: number, sink: Sink): void {
    for (const [key, value] of this.#store.entries({ gte: from, limit })) sink.take(key, value);
  }

  deleteRange(from: Key, to: Key): void {
    this.#store.deleteRange({ gte: from, lt: to });
  }

  transact({ keys, values }: BatchEntries): (Uint8Array | undefined)[] {
    return this.#store.transaction((tx) => {
      const found = keys.map((key) => tx.get(key));
      keys.forEach((key, i) => {
        tx.set(key, values[i] as Uint8Array);
      });
      return found;
    });
  }

  commit(): void {
    this.#store.commit();
  }

  async settle(where: Place, entries: number): Promise<boolean> {
    this.commit();
    if (where === 'tables') await this.#store.compact();
    await turn();
    return where !== 'memtable' || this.#store.stats().memtable.entries >= entries;
  }

  async report(): Promise<StoreNumbers> {
    return this.#store.stats();
  }

  async close(): Promise<void> {
    await this.#store.close();
  }
}

/** The same with one append for each write. */
export class VarveSyncEachSession extends VarveSyncSession {
  override set(key: Key, value: Uint8Array): void {
    super.set(key, value);
    this.commit();
  }

  override delete(key: Key): void {
    super.delete(key);
    this.commit();
  }

  override deleteRange(from: Key, to: Key): void {
    super.deleteRange(from, to);
    this.commit();
  }
}

async function openStore(
  name: string,
  { durability, memoryBytes, storage }: SessionOptions,
): Promise<SyncStore<Key, Uint8Array>> {
  return open<Key, Uint8Array>(name, { durability, memoryBytes, storage });
}

export const varveSync: Engine = {
  name: 'varve-sync',
  about: 'varve/synchronous: sets are grouped into one append every 64 KiB, at the end of a turn and at commit().',
  role: 'varve',
  accesses: ['worker'],
  abilities: ['set', 'get', 'miss', 'mixed', 'delete', 'batch', 'range', 'deleteRange', 'open', 'tuple', 'transaction'],
  durabilities: ['memory', 'relaxed', 'strict'],
  open: async (name, options) => new VarveSyncSession(await openStore(name, options)),
  disk: storeFiles,
  async remove(name) {
    await deleteStore(name);
  },
};

export const varveSyncEach: Engine = {
  ...varveSync,
  name: 'varve-sync-each',
  about: 'varve/synchronous with commit() after each write: one append per write.',
  durabilities: ['relaxed'],
  only: 'point writes',
  open: async (name, options) => new VarveSyncEachSession(await openStore(name, options)),
};
