/**
 * PGlite: Postgres compiled to wasm, its files on an OPFS access handle pool. In a worker it runs in that worker; from the
 * page through PGliteWorker, the library's own way.
 *
 * Invariant: a call is one statement with parameters, many are one statement over arrays where they are of one kind, and
 * one transaction where they are mixed.
 *
 * Levels: Postgres writes its log to the file at each commit, so it is with the operating system when a statement
 * resolves. `relaxedDurability` leaves out the flush that would follow: `relaxed`. Without it the log is flushed before
 * the statement resolves: `strict`.
 */

import type { PGliteInterface, Transaction } from '@electric-sql/pglite';
import type { AsyncSession, Engine, SessionOptions } from '../core/engine.ts';
import type { Key } from '../core/generator.ts';
import { folderUse, removeFolder } from './opfs-folder.ts';
import { PGLITE, PGLITE_FOLDER, startPglite } from './pglite-files.ts';
import { inWorker } from './remote.ts';
import { type Run, runsOf } from './runs.ts';
import { versionOf } from './versions.ts';

/** What the page tells the worker in which it has Postgres run. */
export interface PgliteMeta {
  readonly name: string;
  readonly relaxed: boolean;
}

/** Keys in the order of their bytes, as everywhere in the bench. */
const TABLE = 'CREATE TABLE IF NOT EXISTS entries (k text COLLATE "C" PRIMARY KEY, v bytea NOT NULL)';
const UPSERT = 'ON CONFLICT (k) DO UPDATE SET v = excluded.v';
const SQL = {
  get: 'SELECT v FROM entries WHERE k = $1',
  getMany: 'SELECT k, v FROM entries WHERE k = ANY($1::text[])',
  set: `INSERT INTO entries (k, v) VALUES ($1, $2) ${UPSERT}`,
  setMany: `INSERT INTO entries (k, v) SELECT * FROM unnest($1::text[], $2::bytea[]) ${UPSERT}`,
  delete: 'DELETE FROM entries WHERE k = $1',
  deleteMany: 'DELETE FROM entries WHERE k = ANY($1::text[])',
  deleteRange: 'DELETE FROM entries WHERE k >= $1 AND k < $2',
  from: 'SELECT k, v FROM entries WHERE k >= $1 ORDER BY k LIMIT $2',
  first: 'SELECT k, v FROM entries ORDER BY k LIMIT $1',
} as const;

type Entry = [key: string, value: Uint8Array];
/** What statements are run on: the database, or a transaction of it. */
type Queries = Pick<Transaction, 'query'>;

/** Rows as arrays, which spares an object for each. */
const ROWS = { rowMode: 'array' } as const;

function sessionOf(pg: PGliteInterface, close: () => Promise<void>): AsyncSession {
  return {
    kind: 'async',
    set: (key, value) => pg.query(SQL.set, [key, value]),
    get: async (key) => (await pg.query<[Uint8Array]>(SQL.get, [key], ROWS)).rows[0]?.[0],
    delete: (key) => pg.query(SQL.delete, [key]),
    deleteRange: (from, to) => pg.query(SQL.deleteRange, [from, to]),
    batch: ({ keys, values }) => setMany(pg, keys, values),
    transact: async ({ keys, values }) => {
      const found = new Array<Uint8Array | undefined>(keys.length);
      await pg.transaction(async (transaction) => {
        await make(transaction, { kind: 'get', from: 0, keys: [...keys], values: [] }, found);
        await setMany(transaction, keys, values);
      });
      return found;
    },
    range: async (from, limit, sink) => {
      const [sql, given] = from === undefined ? [SQL.first, [limit]] : [SQL.from, [from, limit]];
      for (const [key, value] of (await pg.query<Entry>(sql, given, ROWS)).rows) sink.take(key, value);
    },
    wave: async (calls) => {
      const values = new Array<Uint8Array | undefined>(calls.length);
      const runs = runsOf(calls);
      const [first] = runs;
      if (first !== undefined && runs.length === 1) await make(pg, first, values);
      else {
        await pg.transaction(async (transaction) => {
          for (const run of runs) await make(transaction, run, values);
        });
      }
      return values;
    },
    settle: async (where) => {
      if (where === 'tables') await pg.exec('VACUUM ANALYZE entries');
      await pg.exec('CHECKPOINT');
      return true;
    },
    // To make a database takes many seconds; to cut a table off gives it new files, like those of a new one.
    clear: async () => {
      await pg.exec('TRUNCATE entries');
      await pg.exec('CHECKPOINT');
    },
    close,
  };
}

/** Makes a run of calls of one kind as one statement; what it reads goes to its place in `values`. */
async function make(queries: Queries, run: Run, values: (Uint8Array | undefined)[]): Promise<void> {
  if (run.kind === 'set') await setMany(queries, run.keys, run.values);
  else if (run.kind === 'delete') await queries.query(SQL.deleteMany, [run.keys]);
  else {
    const { rows } = await queries.query<Entry>(SQL.getMany, [run.keys], ROWS);
    const found = new Map<Key, Uint8Array>(rows);
    run.keys.forEach((key, i) => {
      values[run.from + i] = found.get(key);
    });
  }
}

/** One statement for many entries. Of two with one key the last one counts: a statement takes a key only once. */
async function setMany(queries: Queries, keys: readonly Key[], values: readonly Uint8Array[]): Promise<void> {
  const entries = new Map(keys.map((key, i) => [key, values[i]]));
  await queries.query(SQL.setMany, [[...entries.keys()], [...entries.values()]]);
}

async function openInline(name: string, { durability }: SessionOptions): Promise<AsyncSession> {
  const pg = await startPglite(name, durability !== 'strict');
  await pg.exec(TABLE);
  return sessionOf(pg, () => pg.close());
}

async function openFromPage(name: string, { durability }: SessionOptions): Promise<AsyncSession> {
  const { PGliteWorker } = await import('@electric-sql/pglite/worker');
  const worker = new Worker(new URL('./pglite-worker.js', import.meta.url), { type: 'module', name });
  const meta: PgliteMeta = { name, relaxed: durability !== 'strict' };
  const pg = await PGliteWorker.create(worker, { id: name, meta });
  await pg.exec(TABLE);
  return sessionOf(pg, async () => {
    await closed(worker);
    await pg.close();
  });
}

/** Has the worker close its database. */
function closed(worker: Worker): Promise<void> {
  return new Promise((resolve) => {
    worker.addEventListener('message', ({ data }: MessageEvent<{ readonly type: string }>) => {
      if (data.type === 'bench-closed') resolve();
    });
    worker.postMessage({ type: 'bench-close' });
  });
}

export const pglite: Engine = {
  name: PGLITE,
  version: versionOf(PGLITE),
  url: 'https://pglite.dev',
  about:
    'PGlite on opfs-ahp: one statement per call. From the page: its own PGliteWorker; in flight and for batches one statement over arrays.',
  recommended:
    'opfs-ahp in a worker (pglite.dev/docs/filesystems), PGliteWorker from a page (pglite.dev/docs/multi-tab-worker), parameters rather than text, relaxedDurability where it is enough (pglite.dev/docs/api).',
  role: 'peer',
  accesses: ['worker', 'page', 'inflight'],
  abilities: ['set', 'get', 'miss', 'mixed', 'delete', 'batch', 'range', 'deleteRange', 'open', 'transaction'],
  durabilities: ['relaxed', 'strict'],
  open: (name, options) => (inWorker() ? openInline(name, options) : openFromPage(name, options)),
  disk: (name) => folderUse(PGLITE_FOLDER, name),
  remove: (name) => removeFolder(PGLITE_FOLDER, name),
};
