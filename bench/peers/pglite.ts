/**
 * PGlite: Postgres compiled to wasm, its files on an OPFS access handle pool. In a worker it runs in that worker; from the
 * page through PGliteWorker, the library's own way.
 *
 * Invariant: a call is one statement with parameters. Many are one statement over arrays where they are of one kind, and one
 * transaction where they are mixed. After closing, nothing opens a file again.
 *
 * Levels: Postgres writes its log to the file at each commit, so the operating system has it when a statement resolves.
 * `relaxedDurability` omits the flush that would follow: `relaxed`. Without it the statement resolves after the flush: `strict`.
 */

import type { PGlite, PGliteInterface, Transaction } from '@electric-sql/pglite';
import type { AsyncSession, SessionOptions } from '../core/engine.ts';
import type { Key } from '../core/generator.ts';
import { assetUrl, compiledAsset, engineOf, inWorker } from './library.ts';
import { folderUse, removeEntry } from './opfs.ts';
import { type Run, runsOf } from './runs.ts';

const NAME = 'pglite';
const FOLDER = 'bench-pglite';

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
/** The database, or a transaction of it. */
type Queries = Pick<Transaction, 'query'>;

/** Rows as arrays, which saves an object for each. */
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
    // To make a database takes many seconds; a truncated table gets new files, like those of a new one.
    clear: async () => {
      await pg.exec('TRUNCATE entries');
      await pg.exec('CHECKPOINT');
    },
    close,
  };
}

/** Makes a run as one statement, and puts the values of its reads in their places in `values`. */
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

/** One statement for many entries. It takes a key only once: of two with one key the last one counts. */
async function setMany(queries: Queries, keys: readonly Key[], values: readonly Uint8Array[]): Promise<void> {
  const entries = new Map(keys.map((key, i) => [key, values[i]]));
  await queries.query(SQL.setMany, [[...entries.keys()], [...entries.values()]]);
}

/** The files of Postgres itself: fetched once in each thread. */
let bundle: Promise<Blob> | undefined;

/** Starts Postgres over a store in the calling thread, which must be a dedicated worker. */
export async function startPglite(name: string, relaxedDurability: boolean): Promise<PGlite> {
  bundle ??= fetch(assetUrl(NAME, 'pglite.data')).then((response) => response.blob());
  const [{ PGlite: Database }, { OpfsAhpFS }, pgliteWasmModule, initdbWasmModule, fsBundle] = await Promise.all([
    import('@electric-sql/pglite'),
    import('@electric-sql/pglite/opfs-ahp'),
    compiledAsset(NAME, 'pglite.wasm'),
    compiledAsset(NAME, 'initdb.wasm'),
    bundle,
  ]);
  /** With relaxed durability the library syncs its pool behind the calls, also after closing its files. */
  class WaitingPool extends OpfsAhpFS {
    #behind: Promise<void> = Promise.resolve();
    #closed = false;

    override syncToFs(relaxedSync?: boolean): Promise<void> {
      if (!this.#closed) this.#behind = super.syncToFs(relaxedSync);
      return this.#behind;
    }

    override async closeFs(): Promise<void> {
      this.#closed = true;
      await this.#behind;
      await super.closeFs();
    }
  }
  const fs = new WaitingPool(`${FOLDER}/${name}`);
  return Database.create({ fs, relaxedDurability, pgliteWasmModule, initdbWasmModule, fsBundle });
}

async function open(name: string, { durability }: SessionOptions): Promise<AsyncSession> {
  const relaxed = durability !== 'strict';
  if (inWorker()) {
    const pg = await startPglite(name, relaxed);
    await pg.exec(TABLE);
    return sessionOf(pg, () => pg.close());
  }
  const { PGliteWorker } = await import('@electric-sql/pglite/worker');
  const worker = new Worker(new URL('./pglite-worker.js', import.meta.url), { type: 'module', name });
  const pg = await PGliteWorker.create(worker, { id: name, meta: { name, relaxed } });
  await pg.exec(TABLE);
  return sessionOf(pg, async () => {
    await new Promise<void>((resolve) => {
      worker.addEventListener('message', ({ data }) => data.type === 'bench-closed' && resolve());
      worker.postMessage({ type: 'bench-close' });
    });
    await pg.close();
  });
}

export const pglite = engineOf(
  {
    name: NAME,
    url: 'https://pglite.dev',
    about:
      'PGlite on opfs-ahp: one statement per call. From the page: its own PGliteWorker; in flight and for batches one statement over arrays.',
    recommended:
      'opfs-ahp in a worker (pglite.dev/docs/filesystems), PGliteWorker from a page (pglite.dev/docs/multi-tab-worker), parameters rather than text, relaxedDurability where it is enough (pglite.dev/docs/api).',
    open,
    disk: (name) => folderUse(FOLDER, name),
    remove: (name) => removeEntry(FOLDER, name),
  },
  'tuple',
);
