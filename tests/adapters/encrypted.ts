// Encrypted databases with the same four calls: Varve, RxDB (its fields encrypted by crypto-js, over Dexie) and SQLite3MultipleCiphers
// (PowerSync's build of wa-sqlite, in IndexedDB, where its documentation begins).

import createModule from '@journeyapps/wa-sqlite/dist/mc-wa-sqlite-async.mjs';
import { IDBBatchAtomicVFS } from '@journeyapps/wa-sqlite/src/examples/IDBBatchAtomicVFS.js';
import * as SQLite from '@journeyapps/wa-sqlite/src/sqlite-api.js';
import { createRxDatabase } from 'rxdb/plugins/core';
import { wrappedKeyEncryptionCryptoJsStorage } from 'rxdb/plugins/encryption-crypto-js';
import { getRxStorageDexie } from 'rxdb/plugins/storage-dexie';
import { deriveKey, open } from 'varve';

export interface Note {
  key: string;
  title: string;
  tags: string[];
  at: number;
}

/** A library that stores notes under their keys. */
export interface Keyval {
  get(key: string): Promise<Note | undefined>;
  set(key: string, value: Note): Promise<unknown>;
  getMany(keys: string[]): Promise<(Note | undefined)[]>;
  setMany(entries: [string, Note][]): Promise<unknown>;
}

const PASSPHRASE = 'correct horse battery staple';

/** The calls of a database that opens at the first of them. */
function later(opening: () => Promise<Keyval>): Keyval {
  let opened: Promise<Keyval> | undefined;
  const db = (): Promise<Keyval> => {
    opened ??= opening();
    return opened;
  };
  return {
    get: async (key) => (await db()).get(key),
    set: async (key, value) => (await db()).set(key, value),
    getMany: async (keys) => (await db()).getMany(keys),
    setMany: async (entries) => (await db()).setMany(entries),
  };
}

export const varve = later(async () => {
  const db = await open<string, Note>('encrypted', { encryption: { key: await deriveKey(PASSPHRASE) } });
  return {
    get: (key) => db.get(key),
    set: (key, value) => db.set(key, value),
    getMany: (keys) => db.getMany(keys),
    setMany: (entries) => db.setMany(entries),
  };
});

export const rxdb = later(async () => {
  const storage = wrappedKeyEncryptionCryptoJsStorage({ storage: getRxStorageDexie() });
  const db = await createRxDatabase({ name: 'encrypted', storage, password: PASSPHRASE });
  const schema = {
    version: 0,
    primaryKey: 'key',
    type: 'object',
    properties: {
      key: { type: 'string', maxLength: 100 },
      title: { type: 'string' },
      tags: { type: 'array', items: { type: 'string' } },
      at: { type: 'number' },
    },
    required: ['key', 'title', 'tags', 'at'],
    encrypted: ['title', 'tags', 'at'],
  } as const;
  const { notes } = await db.addCollections({ notes: { schema } });
  return {
    get: async (key) => (await notes.findOne(key).exec())?.toMutableJSON() as Note | undefined,
    set: (_, note) => notes.upsert(note),
    async getMany(keys) {
      const found = await notes.findByIds(keys).exec();
      return keys.map((key) => found.get(key)?.toMutableJSON() as Note | undefined);
    },
    setMany: (entries) => notes.bulkUpsert(entries.map(([, note]) => note)),
  };
});

export const sqlite = later(async () => {
  const module = await createModule({ locateFile: (file: string) => `/${file}` });
  const api = SQLite.Factory(module);
  const vfs = await IDBBatchAtomicVFS.create('encrypted', module, { lockPolicy: 'exclusive' });
  api.vfs_register(vfs, true);
  const status = module.ccall('sqlite3mc_vfs_create', 'int', ['string', 'int'], ['encrypted', 1]);
  if (status !== 0) throw new Error(`SQLite3MultipleCiphers does not encrypt: ${status}.`);
  const db = await api.open_v2('notes');
  await api.exec(db, `PRAGMA key = '${PASSPHRASE}'`);
  // As durable as the others.
  await api.exec(db, 'PRAGMA synchronous = NORMAL');
  await api.exec(db, 'CREATE TABLE IF NOT EXISTS notes (key TEXT PRIMARY KEY, note TEXT NOT NULL) WITHOUT ROWID');
  const prepare = async (sql: string): Promise<number> => {
    for await (const statement of api.statements(db, sql, { unscoped: true })) return statement;
    throw new Error(`No statement: ${sql}`);
  };
  const [getting, setting] = [
    await prepare('SELECT note FROM notes WHERE key = ?'),
    await prepare('INSERT OR REPLACE INTO notes VALUES (?, ?)'),
  ];
  let last: Promise<unknown> = Promise.resolve();
  /** The module does one call at a time. */
  const alone = <T>(call: () => Promise<T>): Promise<T> => {
    const made = last.then(call);
    last = made.catch(() => undefined);
    return made;
  };
  const get = async (key: string): Promise<Note | undefined> => {
    api.bind_collection(getting, [key]);
    const isRow = (await api.step(getting)) === SQLite.SQLITE_ROW;
    const note = isRow ? (JSON.parse(api.column_text(getting, 0)) as Note) : undefined;
    await api.reset(getting);
    return note;
  };
  const set = async (key: string, note: Note): Promise<void> => {
    api.bind_collection(setting, [key, JSON.stringify(note)]);
    await api.step(setting);
    await api.reset(setting);
  };
  return {
    get: (key) => alone(() => get(key)),
    set: (key, note) => alone(() => set(key, note)),
    getMany: (keys) =>
      alone(async () => {
        const notes: (Note | undefined)[] = [];
        await api.exec(db, 'BEGIN');
        for (const key of keys) notes.push(await get(key));
        await api.exec(db, 'COMMIT');
        return notes;
      }),
    setMany: (entries) =>
      alone(async () => {
        await api.exec(db, 'BEGIN');
        for (const [key, note] of entries) await set(key, note);
        await api.exec(db, 'COMMIT');
      }),
  };
});
