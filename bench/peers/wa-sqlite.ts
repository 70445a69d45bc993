/**
 * wa-sqlite with its VFS AccessHandlePoolVFS: of those in the published package the one that keeps its files open, and so
 * needs no asynchronous build. Used through the API that its readme shows, whose calls resolve.
 *
 * Invariant: a store has a pool of its own, in a folder of its own, registered under a name of its own: by itself all
 * pools have the same. The library is loaded once in each thread, as an application would.
 */

import type { AccessHandlePoolVFS } from 'wa-sqlite/src/examples/AccessHandlePoolVFS.js';
import type { AsyncSession, BatchEntries, Engine, Place, PointCall, SessionOptions, Sink } from '../core/engine.ts';
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

class WaSqliteSession implements AsyncSession {
  readonly kind = 'async';
  readonly #api: Api;
  readonly #db: number;
  readonly #statements: Statements;
  readonly #closePool: () => Promise<void>;
  /** What is under way: a connection takes one call at a time. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(api: Api, db: number, statements: Statements, closePool: () => Promise<void>) {
    this.#api = api;
    this.#db = db;
    this.#statements = statements;
    this.#closePool = closePool;
  }

  set(key: Key, value: Uint8Array): Promise<void> {
    return this.#alone(() => this.#set(key, value));
  }

  get(key: Key): Promise<Uint8Array | undefined> {
    return this.#alone(() => this.#get(key));
  }

  delete(key: Key): Promise<void> {
    return this.#alone(() => this.#delete(key));
  }

  batch({ keys, values }: BatchEntries): Promise<void> {
    return this.#together(async () => {
      for (let i = 0; i < keys.length; i++) await this.#set(keys[i] as Key, values[i] as Uint8Array);
    });
  }

  transact({ keys, values }: BatchEntries): Promise<(Uint8Array | undefined)[]> {
    return this.#together(async () => {
      const found: (Uint8Array | undefined)[] = [];
      for (const key of keys) found.push(await this.#get(key));
      for (let i = 0; i < keys.length; i++) await this.#set(keys[i] as Key, values[i] as Uint8Array);
      return found;
    });
  }

  range(from: Key | undefined, limit: number, sink: Sink): Promise<void> {
    return this.#alone(async () => {
      const api = this.#api;
      const statement = this.#statements[from === undefined ? 'first' : 'from'];
      if (from !== undefined) api.bind_text(statement, 1, from as string);
      api.bind_int(statement, from === undefined ? 1 : 2, limit);
      while ((await api.step(statement)) === ROW) {
        sink.take(api.column_text(statement, 0), copied(api.column_blob(statement, 1)));
      }
      await api.reset(statement);
    });
  }

  deleteRange(from: Key, to: Key): Promise<void> {
    return this.#alone(async () => {
      const api = this.#api;
      const statement = this.#statements.deleteRange;
      api.bind_text(statement, 1, from as string);
      api.bind_text(statement, 2, to as string);
      await api.step(statement);
      await api.reset(statement);
    });
  }

  wave(calls: readonly PointCall[]): Promise<(Uint8Array | undefined)[]> {
    return this.#together(async () => {
      const values: (Uint8Array | undefined)[] = [];
      for (const { key, value } of calls) {
        if (value === undefined) values.push(await this.#get(key));
        else {
          await (value === null ? this.#delete(key) : this.#set(key, value));
          values.push(undefined);
        }
      }
      return values;
    });
  }

  settle(where: Place): Promise<boolean> {
    return this.#alone(async () => {
      await this.#api.exec(this.#db, where === 'tables' ? TIDY : CHECKPOINT);
      return true;
    });
  }

  close(): Promise<void> {
    return this.#alone(async () => {
      for (const statement of Object.values(this.#statements)) await this.#api.finalize(statement);
      await this.#api.close(this.#db);
      await this.#closePool();
    });
  }

  async #set(key: Key, value: Uint8Array): Promise<void> {
    const api = this.#api;
    const statement = this.#statements.set;
    api.bind_text(statement, 1, key as string);
    api.bind_blob(statement, 2, value);
    await api.step(statement);
    await api.reset(statement);
  }

  async #get(key: Key): Promise<Uint8Array | undefined> {
    const api = this.#api;
    const statement = this.#statements.get;
    api.bind_text(statement, 1, key as string);
    const value = (await api.step(statement)) === ROW ? copied(api.column_blob(statement, 0)) : undefined;
    await api.reset(statement);
    return value;
  }

  async #delete(key: Key): Promise<void> {
    const statement = this.#statements.delete;
    this.#api.bind_text(statement, 1, key as string);
    await this.#api.step(statement);
    await this.#api.reset(statement);
  }

  /** Makes a call when those before it are done. */
  #alone<T>(call: () => Promise<T>): Promise<T> {
    const made = this.#last.then(call);
    this.#last = made.catch(() => undefined);
    return made;
  }

  /** The same in one transaction. */
  #together<T>(calls: () => Promise<T>): Promise<T> {
    return this.#alone(async () => {
      await this.#run('begin');
      const result = await calls();
      await this.#run('commit');
      return result;
    });
  }

  async #run(name: 'begin' | 'commit'): Promise<void> {
    await this.#api.step(this.#statements[name]);
    await this.#api.reset(this.#statements[name]);
  }
}

/** The library delivers a view of its memory, which the next call may overwrite. */
function copied(view: Uint8Array): Uint8Array {
  return view.slice();
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
export async function openWaSqlite(name: string, options: SessionOptions): Promise<WaSqliteSession> {
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
  return new WaSqliteSession(api, db, await prepare(api, db), () => pool.close());
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
