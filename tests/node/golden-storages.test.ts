// Stores as the first release leaves them in IndexedDB, Deno KV and a Durable Object, after a crash. Every later version opens them.

import 'fake-indexeddb/auto';
import { readFileSync, writeFileSync } from 'node:fs';
import { deserialize, serialize } from 'node:v8';
import { gunzipSync, gzipSync } from 'node:zlib';
import { IDBFactory } from 'fake-indexeddb';
import { openDB } from 'idb';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ObjectStorageAdapter } from '../../js/src/cloudflare/adapter.ts';
import { open as openInline } from '../../js/src/inline.ts';
import { DenoKvStorage } from '../../js/src/storage/denokv/adapter.ts';
import * as sync from '../../js/src/synchronous.ts';
import type { Key } from '../../js/src/types.ts';
import { randomFrom, wasm } from './support/engine.ts';
import { FakeKv, FakeKvState } from './support/fake-kv.ts';
import { FakeLocks } from './support/fake-opfs.ts';
import { FakeSql } from './support/fake-sql.ts';

/** A place that keeps a store in rows, and its rows as values that can be cloned. */
interface Place {
  open(): Promise<OpenStore>;
  rows(): Promise<unknown>;
  restore(rows: unknown): Promise<void>;
}

/** The part of an asynchronous or synchronous store that is used here. */
interface OpenStore {
  get(key: Key): unknown;
  set(key: Key, value: unknown): unknown;
  delete(key: Key): unknown;
  flush(): unknown;
  compact(): unknown;
  close(): unknown;
  entries(): AsyncIterable<unknown> | Iterable<unknown>;
}

/** The slot number of the reserve in IndexedDB: its bytes are random, and only take room. */
const RESERVE = 2 ** 32 - 1;
const OBJECT_STORES = ['journal', 'chunks'] as const;
const TABLE = '"varve:life"';

const PLACES: Record<string, () => Place> = {
  indexeddb: () => ({
    open: () => openInline('life', { storage: 'indexeddb', wasm }) as Promise<OpenStore>,
    async rows() {
      const database = await openDB('varve:life');
      const read = async (store: string): Promise<[IDBValidKey[], Uint8Array[]]> => {
        const [keys, values] = [await database.getAllKeys(store), (await database.getAll(store)) as Uint8Array[]];
        const isReserve = (key: IDBValidKey): boolean => (key as [number, number])[0] === RESERVE;
        return [keys, values.map((bytes, i) => (isReserve(keys[i] as IDBValidKey) ? bytes.fill(0) : bytes))];
      };
      const all = await Promise.all(OBJECT_STORES.map(read));
      database.close();
      return all;
    },
    async restore(rows) {
      const database = await openDB('varve:life', 1, {
        upgrade(made) {
          for (const store of OBJECT_STORES) made.createObjectStore(store);
        },
      });
      for (const [i, [keys, values]] of (rows as [IDBValidKey[], Uint8Array[]][]).entries()) {
        const writing = database.transaction(OBJECT_STORES[i] as string, 'readwrite');
        for (const [k, key] of keys.entries()) await writing.store.put(values[k], key);
        await writing.done;
      }
      database.close();
    },
  }),
  'deno-kv': () => {
    const state = new FakeKvState();
    return {
      open: () =>
        openInline('life', {
          storage: new DenoKvStorage(new FakeKv(state), { prefix: ['varve'], leaseMs: 20_000 }),
          wasm,
        }) as Promise<OpenStore>,
      rows: async () => [...state.entries],
      async restore(rows) {
        for (const [id, entry] of rows as typeof state.entries) state.entries.set(id, entry);
        state.expire();
      },
    };
  },
  'durable-object': () => {
    const sql = new FakeSql();
    return {
      async open() {
        const storage = new ObjectStorageAdapter({ storage: { sql }, abort: () => undefined });
        return (await sync.open('life', { storage, wasm, compactor: false })) as unknown as OpenStore;
      },
      async rows() {
        await sql.committed();
        return sql
          .exec(`SELECT id, version, start, length(bytes) AS length FROM ${TABLE} ORDER BY id`)
          .toArray()
          .map(({ id, version, start, length }) => {
            const [row] = sql
              .exec(`SELECT substr(bytes, ?, ?) AS bytes FROM ${TABLE} WHERE id = ?`, 1, length, id)
              .toArray();
            return [id, version, start, new Uint8Array(row?.['bytes'] as ArrayBuffer)];
          });
      },
      async restore(rows) {
        sql.exec(`CREATE TABLE ${TABLE}`);
        for (const row of rows as unknown[][]) sql.exec(`INSERT INTO ${TABLE}`, ...row);
      },
    };
  },
};

/** What the store holds: notes, of which some were deleted and some changed after the last merge, and a picture. */
function contents(): Map<Key, unknown> {
  const random = randomFrom(7);
  const picture = (bytes: number): Uint8Array => Uint8Array.from({ length: bytes }, () => random(256));
  const all = new Map<Key, unknown>();
  for (let n = 0; n < 400; n++) all.set(['note', n], { text: 'word '.repeat(random(20)), done: n % 3 === 0 });
  all.set(['picture', 0], picture(50_000));
  return all;
}

const isDeleted = (n: number): boolean => n % 10 === 0;
const changed = { text: 'changed', at: new Date(0) };

async function write(db: OpenStore): Promise<void> {
  for (const [key, value] of contents()) await db.set(key, value);
  await db.compact();
  for (let n = 0; n < 400; n++) if (isDeleted(n)) await db.delete(['note', n]);
  for (let n = 1; n < 5; n++) await db.set(['note', n], changed);
  await db.flush();
}

async function entriesOf(db: OpenStore): Promise<unknown[]> {
  const all: unknown[] = [];
  for await (const entry of db.entries()) all.push(entry);
  return all;
}

function expected(): Map<Key, unknown> {
  const all = new Map<Key, unknown>();
  for (const [key, value] of contents()) {
    const [kind, n] = key as [string, number];
    if (kind === 'note' && isDeleted(n)) continue;
    all.set(key, kind === 'note' && n < 5 ? changed : value);
  }
  return all;
}

/** A copy whose bytes have memory of their own. `deserialize` returns views into one buffer, and each clone would copy all of it. */
function owned(value: unknown): unknown {
  if (value instanceof Uint8Array) return Uint8Array.from(value);
  if (Array.isArray(value)) return value.map(owned);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, owned(part)]));
}

beforeEach(() => {
  vi.stubGlobal('indexedDB', new IDBFactory());
  vi.stubGlobal('navigator', { locks: new FakeLocks() });
});

afterEach(() => {
  vi.unstubAllGlobals();
});

describe.each(Object.keys(PLACES))('a store in %s', (name) => {
  const file = new URL(`golden/${name}-v1.v8.gz`, import.meta.url);
  const place = (): Place => (PLACES[name] as () => Place)();

  // `VARVE_BLESS=1 npx vitest run golden-storages`, for a new format version only.
  test.runIf(process.env['VARVE_BLESS'] !== undefined)('is written anew', async () => {
    const made = place();
    const db = await made.open();
    await write(db);
    // As it would be found after a crash.
    writeFileSync(file, gzipSync(serialize(await made.rows()), { level: 9 }));
    await db.close();
  });

  test('opens, has every entry, takes writes, and opens again', async () => {
    const golden = place();
    await golden.restore(owned(deserialize(gunzipSync(readFileSync(file)))));
    let db = await golden.open();
    expect(await entriesOf(db)).toEqual([...expected()]);
    await db.set('later', 1);
    await db.compact();
    await db.close();
    db = await golden.open();
    expect(await db.get('later')).toBe(1);
    expect(await entriesOf(db)).toEqual([['later', 1], ...expected()]);
    await db.close();
  });
});
