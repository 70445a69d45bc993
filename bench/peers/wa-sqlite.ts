/**
 * wa-sqlite with AccessHandlePoolVFS, the one VFS of the published package that keeps its files open, and so needs no
 * asynchronous build; through the asynchronous API of its readme.
 *
 * Invariant: each store has its own pool and folder; the pool gets a name of its own, because all have the same by default.
 * The library is loaded once in each thread, as in an application.
 */

import type { AccessHandlePoolVFS } from 'wa-sqlite/src/examples/AccessHandlePoolVFS.js';
import type { AsyncSession, PointCall, SessionOptions } from '../core/engine.ts';
import type { Key } from '../core/generator.ts';
import { compiledAsset } from './library.ts';
import { getsThenSets, setsOf } from './runs.ts';
import { CHECKPOINT, expectWal, JOURNAL, SQL, type StatementName, setUp, sqliteEngines, TIDY } from './sql-schema.ts';

const NAME = 'wa-sqlite';
const ROW = 100;

type Api = ReturnType<typeof import('wa-sqlite').Factory>;
type Statements = Readonly<Record<StatementName, number>>;

type ServedSession = AsyncSession & Required<Pick<AsyncSession, 'deleteRange'>>;

function sessionOf(api: Api, db: number, statements: Statements, closePool: () => Promise<void>): ServedSession {
  let last: Promise<unknown> = Promise.resolve();
  const alone = <T>(call: () => Promise<T>): Promise<T> => {
    const made = last.then(call);
    last = made.catch(() => undefined);
    return made;
  };
  /** Runs a statement. Resolves with the first column of its first row. */
  const run = async (name: StatementName, key?: Key, second?: Uint8Array | Key): Promise<Uint8Array | undefined> => {
    const statement = statements[name];
    if (key !== undefined) api.bind_text(statement, 1, key as string);
    if (second instanceof Uint8Array) api.bind_blob(statement, 2, second);
    else if (second !== undefined) api.bind_text(statement, 2, second as string);
    // A view of the library's memory, which the next call may overwrite.
    const value = (await api.step(statement)) === ROW ? api.column_blob(statement, 0).slice() : undefined;
    await api.reset(statement);
    return value;
  };
  const wave = (calls: readonly PointCall[]): Promise<(Uint8Array | undefined)[]> =>
    alone(async () => {
      const values: (Uint8Array | undefined)[] = [];
      await run('begin');
      for (const { key, value } of calls) {
        if (value === undefined) values.push(await run('get', key));
        else values.push(await (value === null ? run('delete', key) : run('set', key, value)));
      }
      await run('commit');
      return values;
    });
  return {
    kind: 'async',
    set: (key, value) => alone(() => run('set', key, value)),
    get: (key) => alone(() => run('get', key)),
    delete: (key) => alone(() => run('delete', key)),
    deleteRange: (from, to) => alone(() => run('deleteRange', from, to)),
    batch: (entries) => wave(setsOf(entries)),
    transact: async (entries) => (await wave(getsThenSets(entries))).slice(0, entries.keys.length),
    wave,
    range: (from, limit, sink) =>
      alone(async () => {
        const statement = statements[from === undefined ? 'first' : 'from'];
        if (from !== undefined) api.bind_text(statement, 1, from as string);
        api.bind_int(statement, from === undefined ? 1 : 2, limit);
        while ((await api.step(statement)) === ROW)
          sink.take(api.column_text(statement, 0), api.column_blob(statement, 1).slice());
        await api.reset(statement);
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

let library: ReturnType<typeof load> | undefined;
let openings = 0;

async function load(): Promise<{ api: Api; Pool: typeof AccessHandlePoolVFS }> {
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
  const pool = new NamedPool(`/bench-${NAME}/${name}`);
  await pool.isReady;
  api.vfs_register(pool, false);
  const db = await api.open_v2('entries.db', undefined, vfs);
  await api.exec(db, setUp(options));
  await api.exec(db, JOURNAL, ([mode]) => expectWal(NAME, mode));
  return sessionOf(api, db, await prepare(api, db), () => pool.close());
}

export const [waSqlite, waSqliteGrouped] = sqliteEngines(
  {
    name: NAME,
    url: 'https://github.com/rhashimoto/wa-sqlite',
    groupsInFlight: true,
    build: 'wa-sqlite on AccessHandlePoolVFS: prepared statements through its API',
    recommended:
      'AccessHandlePoolVFS with the synchronous build as the quickest on OPFS, with an exclusive lock and a write-ahead log, which one connection allows (github.com/rhashimoto/wa-sqlite/tree/master/src/examples#vfs-comparison).',
  },
  openWaSqlite,
);
