/** The worker of the notes app over SQLite: settings as in peers/sql-schema.ts. */

import sqlite from '@sqlite.org/sqlite-wasm';
import { createBirpc } from 'birpc';
import { overPort } from '../../../peers/remote.ts';
import type { Note, Notes } from './app.ts';

const TABLE = 'CREATE TABLE IF NOT EXISTS notes (title TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID';
const FIND = 'SELECT title, text FROM notes WHERE title >= ?1 AND title < ?1 || char(0x10ffff) ORDER BY title LIMIT ?2';

const opening = (async () => {
  const pool = await (await sqlite()).installOpfsSAHPoolVfs({});
  const db = new pool.OpfsSAHPoolDb('/notes.db');
  db.exec(`PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; ${TABLE}`);
  return db;
})();

const calls: Notes = {
  find: async (beginning, limit) => (await opening).selectObjects(FIND, [beginning, limit]) as unknown as Note[],
  add: async ({ title, text }) => void (await opening).exec('INSERT INTO notes VALUES (?, ?)', { bind: [title, text] }),
};

createBirpc<object, Notes>(calls, overPort(self as unknown as DedicatedWorkerGlobalScope));
