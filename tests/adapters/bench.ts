// The page of `npm run bench -- adapters`: the same work through an adapter and through the library in whose place it stands;
// and through an encrypted store and other encrypted databases.
//
// Invariant: each measurement has a page of its own, so nothing that an earlier one read is in the memory of the page. It opens its
// database before the clock starts, unless the work is opening. Every work checks what it read.

import { IndexedDBStorageAdapter } from '@automerge/automerge-repo-storage-indexeddb';
import { QueryClient } from '@tanstack/query-core';
import {
  type AsyncStorage,
  experimental_createQueryPersister as createPersister,
} from '@tanstack/query-persist-client-core';
import { BrowserLevel } from 'browser-level';
import * as oldKeyval from 'idb-keyval';
import type { WriteTransaction } from 'replicache';
import { ReplicacheImpl } from 'replicache/impl';
import { createStorage, type Driver } from 'unstorage';
import indexedDriver from 'unstorage/drivers/indexedb';
import { open } from 'varve';
import { VarveLevel } from 'varve/abstract-level';
import { asyncStorage } from 'varve/async-storage';
import { VarveStorageAdapter } from 'varve/automerge';
import * as keyval from 'varve/idb-keyval';
import { varveDriver } from 'varve/unstorage';
import { VarvePersistence } from 'varve/yjs';
import { type StoreProvider, varveStoreProvider } from 'varve/zero';
import { IndexeddbPersistence } from 'y-indexeddb';
import { Doc } from 'yjs';
import type { Keyval, Note } from './encrypted.ts';
import * as encrypted from './encrypted.ts';

/** Opens what is measured, and returns the work. */
type Open = () => Promise<() => Promise<unknown>>;

interface Side {
  /** Fills the database, before all measurements. */
  readonly fill?: () => Promise<unknown>;
  readonly open: Open;
}

/** One work, through both. */
interface Contest {
  readonly work: string;
  readonly original: Side;
  readonly adapter: Side;
}

const KEYS = Array.from({ length: 1000 }, (_, i) => `key ${String(i).padStart(4, '0')}`);
const noteOf = (key: string): Note => ({
  key,
  title: `The title of ${key}`,
  tags: ['lake', 'silt'],
  at: 1_700_000_000_000,
});

function check(isRight: boolean, what: unknown): void {
  if (!isRight) throw new Error(`A wrong result: ${JSON.stringify(what)}`);
}

/** Each key after the one before it is done. */
async function oneByOne(call: (key: string) => Promise<unknown>): Promise<void> {
  for (const key of KEYS) await call(key);
}

const together = (call: (key: string) => Promise<unknown>): Promise<unknown> => Promise.all(KEYS.map(call));

type Provider = typeof IndexeddbPersistence | typeof VarvePersistence;

/** Loads a document, changes it, and closes it; returns the length of its text. */
async function visit(Provider: Provider, name: string, change?: (doc: Doc) => unknown): Promise<number> {
  const doc = new Doc();
  const provider = new Provider(name, doc);
  await provider.whenSynced;
  await change?.(doc);
  await provider.destroy();
  return doc.getText('text').length;
}

const opened = (Provider: Provider): Side => ({
  fill: () => oneByOne((key) => visit(Provider, key, (doc) => doc.getText('text').insert(0, `The text of ${key}`))),
  open: async () => () => oneByOne(async (key) => check((await visit(Provider, key)) === 20, key)),
});

const TURN = new MessageChannel();
/** The next turn of the event loop. */
const nextTurn = () =>
  new Promise((done) => {
    TURN.port1.onmessage = done;
    TURN.port2.postMessage(undefined);
  });

const updated = (Provider: Provider): Side => ({
  async open() {
    const name = crypto.randomUUID();
    await visit(Provider, name);
    return async () => {
      await visit(Provider, name, async (doc) => {
        const text = doc.getText('text');
        for (let i = 0; i < 10_000; i++) {
          text.insert(i, 'x');
          await nextTurn();
        }
      });
      check((await visit(Provider, name)) === 10_000, name);
    };
  },
});

const keyvalSide = (library: Keyval, work: () => Promise<unknown>): Side => ({
  fill: () => library.setMany(KEYS.map((key) => [key, noteOf(key)])),
  async open() {
    await library.get('absent');
    return work;
  },
});

/** The same work through pairs of libraries. */
const keyvalContests = (work: string, run: (library: Keyval) => Promise<unknown>): Contest[] =>
  PAIRS.map(({ name, original, adapter }) => ({
    work: `${name}: ${work}`,
    original: keyvalSide(original, () => run(original)),
    adapter: keyvalSide(adapter, () => run(adapter)),
  }));

const PAIRS: { name: string; original: Keyval; adapter: Keyval }[] = [
  { name: 'varve/idb-keyval', original: oldKeyval, adapter: keyval },
  { name: 'encrypted, beside RxDB', original: encrypted.rxdb, adapter: encrypted.varve },
  { name: 'encrypted, beside SQLite3MultipleCiphers', original: encrypted.sqlite, adapter: encrypted.varve },
];

interface Level {
  get(key: string): Promise<Note | undefined>;
  put(key: string, value: Note): Promise<void>;
  batch(puts: { type: 'put'; key: string; value: Note }[]): Promise<void>;
  iterator(): AsyncIterable<[string, Note]>;
  close(): Promise<void>;
}

const levelSide = (make: () => Level, run: (db: Level) => Promise<unknown>): Side => ({
  async fill() {
    const db = make();
    await db.batch(KEYS.map((key) => ({ type: 'put', key, value: noteOf(key) })));
    await db.close();
  },
  async open() {
    const db = make();
    await db.get('absent');
    return () => run(db);
  },
});

const levelContest = (work: string, run: (db: Level) => Promise<unknown>): Contest => ({
  work: `varve/abstract-level: ${work}`,
  original: levelSide(() => new BrowserLevel<string, Note>('level', { valueEncoding: 'json' }), run),
  adapter: levelSide(() => new VarveLevel<string, Note>('level', { valueEncoding: 'json' }), run),
});

const CLIENT = new QueryClient();

const persisterOf = (storage: AsyncStorage<string>) => createPersister<string>({ storage });

/** `isRestored`: the queries are read by a client that has none yet; otherwise they are stored. */
function querySide(storage: () => AsyncStorage<string>, isRestored: boolean): Side {
  const store = (persister: ReturnType<typeof persisterOf>) => (key: string) => {
    CLIENT.setQueryData(['note', key], noteOf(key));
    return persister.persistQueryByKey(['note', key], CLIENT);
  };
  const restore = (persister: ReturnType<typeof persisterOf>) => async (key: string) => {
    const query = CLIENT.getQueryCache().build(CLIENT, { queryKey: ['note', key] });
    const note = await persister.retrieveQuery<Note>(query.queryHash);
    check(note?.key === key, note);
  };
  return {
    fill: () => together(store(persisterOf(storage()))),
    async open() {
      const opened = storage();
      await opened.getItem('absent');
      return () => together((isRestored ? restore : store)(persisterOf(opened)));
    },
  };
}

const ORIGINALS: [name: string, storage: AsyncStorage<string>][] = [
  ['idb-keyval', { getItem: (key) => oldKeyval.get(key), setItem: oldKeyval.set, removeItem: oldKeyval.del }],
  ['localStorage', localStorage],
];

const queryContest = (name: string, storage: AsyncStorage<string>, isRestored: boolean): Contest => ({
  work: `varve/async-storage beside ${name}: 1,000 queries ${isRestored ? 'restored' : 'stored'}`,
  original: querySide(() => storage, isRestored),
  adapter: querySide(() => asyncStorage<string>(open('queries')), isRestored),
});

type Repository = Pick<IndexedDBStorageAdapter, 'save' | 'load' | 'loadRange' | 'removeRange'>;

const automergeSide = (storage: () => Repository): Side => ({
  async open() {
    const repository = storage();
    await repository.removeRange(['document']);
    return async () => {
      await together((key) => repository.save(['document', 'incremental', key], new Uint8Array(100)));
      check((await repository.loadRange(['document'])).length === KEYS.length, 'chunks');
    };
  },
});

const clientOf = (name: string, kvStore: StoreProvider | 'idb') => {
  const add = (tx: WriteTransaction, key: string) => tx.set(key, { ...noteOf(key) });
  return new ReplicacheImpl({ name, kvStore, mutators: { add }, pullInterval: null, logLevel: 'error' });
};

type Client = ReturnType<typeof clientOf>;

const countOf = (client: Client): Promise<number> =>
  client.query(async (tx) => (await tx.scan().keys().toArray()).length);

/** A client stores its mutations when it has a moment: here, after every ten. */
async function mutate(client: Client): Promise<void> {
  for (let start = 0; start < KEYS.length; start += 10) {
    await Promise.all(KEYS.slice(start, start + 10).map(client.mutate.add));
    await client.persist();
  }
}

const mutated = (kvStore: () => StoreProvider | 'idb'): Side => ({
  async open() {
    const client = clientOf(crypto.randomUUID(), kvStore());
    await countOf(client);
    return async () => {
      await mutate(client);
      check((await countOf(client)) === KEYS.length, 'notes');
    };
  },
});

const loaded = (kvStore: () => StoreProvider | 'idb'): Side => ({
  async fill() {
    const client = clientOf('notes', kvStore());
    await mutate(client);
    await client.close();
  },
  open: async () => async () => check((await countOf(clientOf('notes', kvStore()))) === KEYS.length, 'notes'),
});

const clientSides = (side: (kvStore: () => StoreProvider | 'idb') => Side) => ({
  original: side(() => 'idb'),
  adapter: side(() => varveStoreProvider()),
});

type Items = ReturnType<typeof createStorage<Note>>;

const itemSide = (driver: () => Driver, run: (storage: Items) => Promise<unknown>): Side => ({
  fill: () => createStorage<Note>({ driver: driver() }).setItems(KEYS.map((key) => ({ key, value: noteOf(key) }))),
  async open() {
    const storage = createStorage<Note>({ driver: driver() });
    await storage.getItem('absent');
    return () => run(storage);
  },
});

const itemContest = (work: string, run: (storage: Items) => Promise<unknown>): Contest => ({
  work: `varve/unstorage: ${work}`,
  original: itemSide(() => indexedDriver({}), run),
  adapter: itemSide(() => varveDriver({ store: open('items') }), run),
});

const sides = (side: (Provider: Provider) => Side) => ({
  original: side(IndexeddbPersistence),
  adapter: side(VarvePersistence),
});

const contests: Contest[] = [
  { work: 'varve/yjs: 1,000 documents opened, one by one', ...sides(opened) },
  { work: 'varve/yjs: 10,000 updates of a document, stored and loaded', ...sides(updated) },
  ...keyvalContests('1,000 keys set, one by one', ({ set }) => oneByOne((key) => set(key, noteOf(key)))),
  ...keyvalContests('1,000 keys set together', ({ set }) => together((key) => set(key, noteOf(key)))),
  ...keyvalContests('1,000 keys in one `setMany`', ({ setMany }) => setMany(KEYS.map((key) => [key, noteOf(key)]))),
  ...keyvalContests('1,000 keys got, one by one', ({ get }) =>
    oneByOne(async (key) => check((await get(key))?.key === key, key)),
  ),
  ...keyvalContests('1,000 keys got together', ({ get }) =>
    together(async (key) => check((await get(key))?.key === key, key)),
  ),
  ...keyvalContests('1,000 keys in one `getMany`', async ({ getMany }) =>
    check(
      (await getMany(KEYS)).every((value, i) => value?.key === KEYS[i]),
      'getMany',
    ),
  ),
  levelContest('1,000 puts, one by one', (db) => oneByOne((key) => db.put(key, noteOf(key)))),
  levelContest('1,000 puts together', (db) => together((key) => db.put(key, noteOf(key)))),
  levelContest('1,000 puts in one batch', (db) =>
    db.batch(KEYS.map((key) => ({ type: 'put', key, value: noteOf(key) }))),
  ),
  levelContest('1,000 gets, one by one', (db) =>
    oneByOne(async (key) => check((await db.get(key)) !== undefined, key)),
  ),
  levelContest('1,000 entries iterated', async (db) => {
    let count = 0;
    for await (const [key] of db.iterator()) check(key === KEYS[count++], key);
    check(count === KEYS.length, count);
  }),
  ...ORIGINALS.flatMap(([name, persister]) =>
    [false, true].map((isRestored) => queryContest(name, persister, isRestored)),
  ),
  {
    work: 'varve/automerge: 1,000 parts of a document, stored and loaded',
    original: automergeSide(() => new IndexedDBStorageAdapter()),
    adapter: automergeSide(() => new VarveStorageAdapter()),
  },
  { work: 'varve/zero: 1,000 mutations of Replicache, stored by tens', ...clientSides(mutated) },
  { work: 'varve/zero: 1,000 notes loaded by a new client of Replicache', ...clientSides(loaded) },
  itemContest('1,000 items set, one by one', (items) => oneByOne((key) => items.setItem(key, noteOf(key)))),
  itemContest('1,000 items set together', (items) => together((key) => items.setItem(key, noteOf(key)))),
  itemContest('1,000 items got, one by one', (items) =>
    oneByOne(async (key) => check((await items.getItem(key))?.key === key, key)),
  ),
  itemContest('1,000 items got together', (items) =>
    together(async (key) => check((await items.getItem(key))?.key === key, key)),
  ),
  itemContest('1,000 keys listed', async (items) => check((await items.getKeys()).length === KEYS.length, 'keys')),
];

const page = {
  works: contests.map(({ work }) => work),
  async fill(index: number): Promise<void> {
    await contests[index]?.original.fill?.();
    await contests[index]?.adapter.fill?.();
  },
  /** Milliseconds of the work. */
  async measure(index: number, side: 'original' | 'adapter'): Promise<number> {
    const work = await contests[index]?.[side].open();
    const start = performance.now();
    await work?.();
    return performance.now() - start;
  },
};

declare global {
  var adapterBench: typeof page;
}

globalThis.adapterBench = page;
