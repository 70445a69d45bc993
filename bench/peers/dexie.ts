/**
 * Dexie: one table with outbound keys, and the bulk calls that its documentation recommends for many entries.
 *
 * Invariant: a wave that mixes reads and writes is one explicit transaction, in which its calls take effect in order.
 */

import type { Dexie, Table } from 'dexie';
import type { AsyncSession } from '../core/engine.ts';
import type { Key } from '../core/generator.ts';
import { engineOf } from './library.ts';
import { runsOf, settled, waveOfRuns } from './runs.ts';

const STORE = 'entries';

/** A key may be a tuple as well, which the types of bulk calls do not allow. */
type Entries = Table<Uint8Array, string>;

function sessionOf(db: Dexie): AsyncSession {
  const table: Entries = db.table(STORE);
  const wave = waveOfRuns({
    set: ({ keys, values }) => table.bulkPut(values, keys as string[]),
    get: ({ keys }) => table.bulkGet(keys as string[]),
    delete: ({ keys }) => table.bulkDelete(keys as string[]),
  });
  return {
    kind: 'async',
    set: (key, value) => table.put(value, key as string),
    get: (key) => table.get(key as string),
    delete: (key) => table.delete(key as string),
    deleteRange: (from, to) => table.where(':id').between(from, to).delete(),
    batch: ({ keys, values }) => table.bulkPut(values, keys as readonly string[]),
    transact: ({ keys, values }) =>
      db.transaction('rw', table, async () => {
        const found = await table.bulkGet(keys as string[]);
        await table.bulkPut(values, keys as readonly string[]);
        return found;
      }),
    range: async (from, limit, sink) => {
      const found = from === undefined ? table.toCollection() : table.where(':id').aboveOrEqual(from as string);
      // Values alone come by `getAll`, keys alone by `getAllKeys`: together quicker than a cursor that has both.
      const [keys, values] = await db.transaction('r', table, () => {
        const limited = found.limit(limit);
        return Promise.all([limited.clone().primaryKeys(), limited.clone().toArray()]);
      });
      for (let i = 0; i < keys.length; i++) sink.take(keys[i] as Key, values[i] as Uint8Array);
    },
    wave: (calls) => (runsOf(calls).length > 1 ? db.transaction('rw', table, () => wave(calls)) : wave(calls)),
    settle: settled,
    close: async () => db.close(),
  };
}

export const dexie = engineOf({
  name: 'dexie',
  url: 'https://dexie.org',
  about: 'Dexie: put, get and delete, one transaction each; in flight and for batches bulkPut, bulkGet and bulkDelete.',
  recommended:
    'bulkPut, bulkGet and bulkDelete for many entries (dexie.org/docs/Table/Table.bulkPut()), and chromeTransactionDurability for the level (dexie.org/docs/Dexie/Dexie).',
  async open(name, { durability }) {
    const { Dexie: Database } = await import('dexie');
    const db = new Database(name, { chromeTransactionDurability: durability === 'strict' ? 'strict' : 'relaxed' });
    // No inbound key, no index: `where(':id')` names the key.
    db.version(1).stores({ [STORE]: '' });
    await db.open();
    return sessionOf(db);
  },
  remove: async (name) => (await import('dexie')).Dexie.delete(name),
});
