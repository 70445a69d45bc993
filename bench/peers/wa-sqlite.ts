/**
 * wa-sqlite with its VFS AccessHandlePoolVFS: of those in the published package the one that keeps its files open, and so
 * needs no asynchronous build. Used through the API that its readme shows, whose calls resolve.
 *
 * Invariant: a store has a pool of its own, in a folder of its own, registered under a name of its own: by itself all
 * pools have the same. The library is loaded once in each thread, as an application would.
 */

import type { AccessHandlePoolVFS } from 'wa-sqlite/src/examples/AccessHandlePoolVFS.js';
import type { AsyncSession, BatchEntries, Engine, SessionOptions } from '../core/engine.ts';
import type { Key } from '../core/generator.ts';
import { compiledAsset } from './assets.ts';
import { folderUse, removeFolder } from './opfs-folder.ts';
import { inWorker, openRemote } from './remote.ts';
import { CHECKPOINT, expectWal, GROUP, JOURNAL, SQL, type StatementName, setUp, TIDY } from './sqlite-schema.ts';
import { versionOf } from './versions.ts';

const NAME = 'wa-sqlite';
const FOLDER = 'bench-wa-sqlite';
const ROW = 100;

/** The part of the library's API that is used here. */
type Api = ReturnType<typeof import('wa-sqlite').Factory>;
type Statements = Readonly<Record<StatementName, number>>;

/** Calls of a store, as the worker of the peers also makes them. */
export type ServedSession = AsyncSession & Required<Pick<AsyncSession, 'transact' | 'deleteRange'>>;

function sessionOf(api: Api, db: number, statements: Statements, closePool: () => Promise<void>): ServedSession {
  /** What is under way: a connection takes one call at a time. */
  let last: Promise<unknown> = Promise.resolve();
  const alone = <T>(call: () => Promise<T>): Promise<T> => {
    const made = last.then(call);
    last = made.catch(() => undefined);
    return made;
  };
  /** Runs a statement; what it delivers first, if it is a row. */
  const run = async (name: StatementName, key?: Key, second?: Uint8Array | Key): Promise<Uint8Array | undefined> => {
    const statement = statements[name];
    if (key !== undefined) api.bind_text(statement, 1, key as string);
    if (second instanceof Uint8Array) api.bind_blob(statement, 2, second);
    else if (second !== undefined) api.bind_text(statement, 2, second as string);
    // The library delivers a view of its memory, which the next call may overwrite.
    const value = (await api.step(statement)) === ROW ? api.column_blob(statement, 0).slice() : undefined;
    await api.reset(statement);
    return value;
  };
  const together = <T>(calls: () => Promise<T>): Promise<T> =>
    alone(async () => {
      await run('begin');
      const result = await calls();
      await run('commit');
      return result;
    });
  const setAll = async ({ keys, values }: BatchEntries): Promise<void> => {
    for (let i = 0; i < keys.length; i++) await run('set', keys[i] as Key, values[i] as Uint8Array);
  };
  return {
    kind: 'async',
    set: (key, value) => alone(() => run('set', key, value)),
    get: (key) => alone(() => run('get', key)),
    delete: (key) => alone(() => run('delete', key)),
    deleteRange: (from, to) => alone(() => run('deleteRange', from, to)),
    batch: (entries) => together(() => setAll(entries)),
    transact: (entries) =>
      together(async () => {
        const found: (Uint8Array | undefined)[] = [];
        for (const key of entries.keys) found.push(await run('get', key));
        await setAll(entries);
        return found;
      }),
    range: (from, limit, sink) =>
      alone(async () => {
        const statement = statements[from === undefined ? 'first' : 'from'];
        if (from !== undefined) api.bind_text(statement, 1, from as string);
        api.bind_int(statement, from === undefined ? 1 : 2, limit);
        while ((await api.step(statement)) === ROW)
          sink.take(api.column_text(statement, 0), api.column_blob(statement, 1).slice());
        await api.reset(statement);
      }),
    wave: (calls) =>
      together(async () => {
        const values: (Uint8Array | undefined)[] = [];
        for (const { key, value } of calls) {
          if (value === undefined) values.push(await run('get', key));
          else values.push(await (value === null ? run('delete', key) : run('set', key, value)));
        }
        return values;
      }),
    settle: (where) =>
      alone(async () => {
        await api.exec(db, where === 'tables' ? TIDY : CHECKPOINT);
        return true;
      }),
    close: () =>
      alone(async () => {
        for (const statement of Object.values(statements)) await api.finalize(statement);
        await api.close(db);
        await closePool();
      }),
  };
}

async function prepare(api: Api, db: number): Promise<Statements> {
  const statements: [string, number][] = [];
  for (const [name, sql] of Object.entries(SQL)) {
    const text = api.str_new(db, sql);
    const prepared = await api.prepare_v2(db, api.str_value(text));
    api.str_finish(text);
    if (prepared === null) throw new Error(`wa-sqlite has no statement for "${sql}".`);
    statements.push([name, prepared.stmt]);
  }
  return Object.fromEntries(statements) as Statements;
}

interface Library {
  readonly api: Api;
  readonly Pool: typeof AccessHandlePoolVFS;
}

let library: Promise<Library> | undefined;
/** Openings so far: each pool needs a name of its own. */
let openings = 0;

async function load(): Promise<Library> {
  const [{ Factory }, { default: start }, { AccessHandlePoolVFS: Pool }, wasm] = await Promise.all([
    import('wa-sqlite'),
    import('wa-sqlite/dist/wa-sqlite.mjs'),
    import('wa-sqlite/src/examples/AccessHandlePoolVFS.js'),
    compiledAsset(NAME, 'wa-sqlite.wasm'),
  ]);
  const instantiateWasm = (imports: WebAssembly.Imports, done: (instance: WebAssembly.Instance) => void): object => {
    void WebAssembly.instantiate(wasm, imports).then(done);
    return {};
  };
  return { api: Factory(await start({ instantiateWasm })), Pool };
}

/** Opens a store in the calling thread, which must be a dedicated worker. */
export async function openWaSqlite(name: string, options: SessionOptions): Promise<ServedSession> {
  library ??= load();
  const { api, Pool } = await library;
  const vfs = `${name}-${openings++}`;
  const NamedPool = class extends Pool {
    override get name(): string {
      return vfs;
    }
  };
  const pool = new NamedPool(`/${FOLDER}/${name}`);
  await pool.isReady;
  api.vfs_register(pool, false);
  const db = await api.open_v2('entries.db', undefined, vfs);
  await api.exec(db, setUp(options));
  await api.exec(db, JOURNAL, ([mode]) => expectWal(NAME, mode));
  return sessionOf(api, db, await prepare(api, db), () => pool.close());
}

const shared: Omit<Engine, 'name' | 'about' | 'open' | 'accesses'> = {
  version: versionOf(NAME),
  url: 'https://github.com/rhashimoto/wa-sqlite',
  recommended:
    'AccessHandlePoolVFS with the synchronous build as the quickest on OPFS, with an exclusive lock and a write-ahead log, which one connection allows (github.com/rhashimoto/wa-sqlite/tree/master/src/examples#vfs-comparison).',
  role: 'peer',
  abilities: ['set', 'get', 'miss', 'mixed', 'delete', 'batch', 'range', 'deleteRange', 'open', 'transaction'],
  durabilities: ['relaxed', 'strict'],
  disk: (name) => folderUse(FOLDER, name),
  remove: (name) => removeFolder(FOLDER, name),
};

export const waSqlite: Engine = {
  ...shared,
  name: NAME,
  about:
    'wa-sqlite on AccessHandlePoolVFS: prepared statements through its API, one transaction per call. From the page: a thin worker of the bench; in flight: 100 calls in one message and one transaction.',
  accesses: ['worker', 'page', 'inflight'],
  open: (name, options) => (inWorker() ? openWaSqlite(name, options) : openRemote(NAME, name, options)),
};

export const waSqliteGrouped: Engine = {
  ...shared,
  name: `${NAME}-grouped`,
  about: `The same with ${GROUP} point calls in one transaction: the counterpart of a grouped set.`,
  accesses: ['worker'],
  durabilities: ['relaxed'],
  grouped: GROUP,
  groupsInFlight: true,
  only: 'point writes',
  open: openWaSqlite,
};
