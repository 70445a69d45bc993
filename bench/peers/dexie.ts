/**
 * Dexie: one table with outbound keys. `put`, `get`, `delete` for one; `bulkPut`, `bulkGet`, `bulkDelete` for many, which
 * its documentation recommends; ranges by `where(':id').aboveOrEqual`.
 *
 * Invariant: a wave that mixes reads and writes is one explicit transaction, in which its calls take effect in order.
 */

import type { Dexie, PromiseExtended, Table } from 'dexie';
import type { AsyncSession, BatchEntries, Engine, PointCall, Sink } from '../core/engine.ts';
import type { Key } from '../core/generator.ts';
import { type Run, runsOf } from './runs.ts';
import { versionOf } from './versions.ts';

const NAME = 'dexie';
const STORE = 'entries';

/** A key may be a tuple as well, which the types of bulk calls do not have. */
type Entries = Table<Uint8Array, string>;

class DexieSession implements AsyncSession {
  readonly kind = 'async';
  readonly #db: Dexie;
  readonly #table: Entries;

  constructor(db: Dexie) {
    this.#db = db;
    this.#table = db.table(STORE);
  }

  set(key: Key, value: Uint8Array): PromiseExtended<unknown> {
    return this.#table.put(value, key as string);
  }

  get(key: Key): PromiseExtended<Uint8Array | undefined> {
    return this.#table.get(key as string);
  }

  delete(key: Key): PromiseExtended<void> {
    return this.#table.delete(key as string);
  }

  deleteRange(from: Key, to: Key): PromiseExtended<unknown> {
    return this.#table.where(':id').between(from, to).delete();
  }

  batch({ keys, values }: BatchEntries): PromiseExtended<unknown> {
    return this.#table.bulkPut(values, keys as readonly string[]);
  }

  async transact({ keys, values }: BatchEntries): Promise<readonly (Uint8Array | undefined)[]> {
    return this.#db.transaction('rw', this.#table, async () => {
      const found = await this.#table.bulkGet(keys as string[]);
      await this.#table.bulkPut(values, keys as readonly string[]);
      return found;
    });
  }

  async range(from: Key | undefined, limit: number, sink: Sink): Promise<void> {
    const table = this.#table;
    const found = from === undefined ? table.toCollection() : table.where(':id').aboveOrEqual(from as string);
    // Values alone come by `getAll`, keys alone by `getAllKeys`: together quicker than a cursor that has both.
    const [keys, values] = await this.#db.transaction('r', table, () => {
      const limited = found.limit(limit);
      return Promise.all([limited.clone().primaryKeys(), limited.clone().toArray()]);
    });
    for (let i = 0; i < keys.length; i++) sink.take(keys[i] as Key, values[i] as Uint8Array);
  }

  async wave(calls: readonly PointCall[]): Promise<readonly (Uint8Array | undefined)[]> {
    const runs = runsOf(calls);
    const values = new Array<Uint8Array | undefined>(calls.length);
    const make = (run: Run): PromiseExtended<void> => this.#make(run, values);
    const [first] = runs;
    if (first !== undefined && runs.length === 1) await make(first);
    else await this.#db.transaction('rw', this.#table, () => Promise.all(runs.map(make)));
    return values;
  }

  async settle(): Promise<boolean> {
    // Nothing to wait for: every write has been awaited.
    return true;
  }

  async close(): Promise<void> {
    this.#db.close();
  }

  #make(run: Run, values: (Uint8Array | undefined)[]): PromiseExtended<void> {
    const keys = run.keys as string[];
    if (run.kind === 'set') return this.#table.bulkPut(run.values, keys).then(() => undefined);
    if (run.kind === 'delete') return this.#table.bulkDelete(keys);
    return this.#table.bulkGet(keys).then((got) => {
      for (let i = 0; i < got.length; i++) values[run.from + i] = got[i];
    });
  }
}

export const dexie: Engine = {
  name: NAME,
  version: versionOf(NAME),
  url: 'https://dexie.org',
  about: 'Dexie: put, get and delete, one transaction each; in flight and for batches bulkPut, bulkGet and bulkDelete.',
  recommended:
    'bulkPut, bulkGet and bulkDelete for many entries (dexie.org/docs/Table/Table.bulkPut()), and chromeTransactionDurability for the level (dexie.org/docs/Dexie/Dexie).',
  role: 'peer',
  accesses: ['worker', 'page', 'inflight'],
  abilities: ['set', 'get', 'miss', 'mixed', 'delete', 'batch', 'range', 'deleteRange', 'open', 'tuple', 'transaction'],
  durabilities: ['relaxed', 'strict'],
  async open(name, { durability }) {
    const { Dexie: Database } = await import('dexie');
    const db = new Database(name, {
      chromeTransactionDurability: durability === 'strict' ? 'strict' : 'relaxed',
    });
    // No inbound key, no index: `where(':id')` names the key.
    db.version(1).stores({ [STORE]: '' });
    await db.open();
    return new DexieSession(db);
  },
  async remove(name) {
    const { Dexie: Database } = await import('dexie');
    await Database.delete(name);
  },
};
