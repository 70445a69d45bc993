/**
 * The package `varve/abstract-level`: a database for everything that is built on Level, an `AbstractLevel` over a store of `varve`.
 *
 * Invariants: Keys and values are bytes in the store, and keys are in the order of their bytes. Every operation takes effect in the
 * order of the calls; only iterators and snapshots may still see what a `clear` that goes on deletes. abstract-level is the page's own,
 * because libraries check for its classes.
 */

import {
  type AbstractBatchOperation,
  type AbstractBatchOptions,
  type AbstractChainedBatch,
  type AbstractDatabaseOptions,
  type AbstractDelOptions,
  AbstractLevel,
  type AbstractPutOptions,
} from 'abstract-level';
import type { AnyStore, StoreOrName } from './adapters/any-store.ts';
import { type IteratorOptions, LevelIterator, LevelSnapshot, type LevelView } from './adapters/level-iterator.ts';
import { type Bounds, rangeOf } from './adapters/level-range.ts';
import { type MigrateOptions as CommonMigrateOptions, type MigrationReport, moveOnce } from './adapters/migration.ts';
import { repeated } from './adapters/repeated.ts';
import { hasCode, invalid } from './errors.ts';
import { bytes, deleteStore, type ListStoresOptions, listStores, type OpenOptions, open } from './index.ts';
import { OPEN } from './store/options.ts';
import type { ReadView } from './store/read-view.ts';
import type { Key, Progress, WriteOptions } from './types.ts';

export type { AnyStore, MigrationReport, Progress, StoreOrName };

/** Options of a database: encodings, `createIfMissing` and `errorIfExists`, and the options of Varve's `open`. */
export interface VarveLevelOptions<K, V>
  extends AbstractDatabaseOptions<K, V>,
    Omit<OpenOptions, 'keys' | 'values' | 'version' | 'upgrade'> {}

/** An option of every write. */
export interface SyncOption {
  /** Whether the write waits until it is on the disk, with the durability `strict`. Default: the durability of the store. */
  sync?: boolean | undefined;
}

/** Options that abstract-level passes on. */
interface ReadOptions {
  readonly snapshot?: LevelSnapshot | null;
}

type Operation =
  | { readonly type: 'put'; readonly key: Uint8Array; readonly value: Uint8Array }
  | { readonly type: 'del'; readonly key: Uint8Array };

const MANIFEST = { encodings: { view: true }, seek: true, has: true, explicitSnapshots: true };

/** The writes that the class inherits, with one more option. */
export interface VarveLevel<KDefault, VDefault> {
  put(key: KDefault, value: VDefault): Promise<void>;
  put<K = KDefault, V = VDefault>(key: K, value: V, options: AbstractPutOptions<K, V> & SyncOption): Promise<void>;
  del(key: KDefault): Promise<void>;
  del<K = KDefault>(key: K, options: AbstractDelOptions<K> & SyncOption): Promise<void>;
  batch(): AbstractChainedBatch<this, KDefault, VDefault>;
  batch(operations: AbstractBatchOperation<this, KDefault, VDefault>[]): Promise<void>;
  batch<K = KDefault, V = VDefault>(
    operations: AbstractBatchOperation<this, K, V>[],
    options: AbstractBatchOptions<K, V> & SyncOption,
  ): Promise<void>;
}

/**
 * A Level database. It opens by itself, in the store that `location` names, or in a part of a store of your own.
 *
 * @example
 * const db = new VarveLevel<string, Note>('notes', { valueEncoding: 'json' });
 * await db.put('silt', { title: 'Silt' });
 * for await (const [key, note] of db.iterator({ gte: 's' })) show(key, note);
 */
// biome-ignore lint/suspicious/noUnsafeDeclarationMerging: abstract-level implements what the interface declares.
export class VarveLevel<KDefault = string, VDefault = string> extends AbstractLevel<Uint8Array, KDefault, VDefault> {
  readonly #given: StoreOrName;
  #view: LevelView | undefined;
  #end: (() => Promise<void>) | undefined;
  /** A `clear` that still reads the keys that it deletes. Later calls wait for it: it must not delete what they write. */
  #clearing: Promise<void> | undefined;

  /**
   * @param location The name of a store, which the database opens and closes. If that store was deleted or has failed, close the database,
   *   and open it again. Or a store, a view of one, or the promise of one, which it does not close: the entries of the database are the
   *   keys in it that are bytes.
   */
  constructor(location: StoreOrName, options?: VarveLevelOptions<KDefault, VDefault> | undefined) {
    const isNamed = typeof location === 'string';
    super({ ...MANIFEST, createIfMissing: isNamed, errorIfExists: isNamed }, options);
    this.#given = location;
  }

  /** The name of its store; undefined for a database in a store of your own. */
  get location(): string | undefined {
    return typeof this.#given === 'string' ? this.#given : undefined;
  }

  /** Deletes the store of this name with all its data. Its databases must be closed. */
  static async destroy(location: string, options?: ListStoresOptions): Promise<void> {
    await deleteStore(location, options);
  }

  /** @internal The view, when the database is open. */
  async view(): Promise<LevelView> {
    await this.open();
    return this.#opened;
  }

  /** @internal */
  async _open(options: VarveLevelOptions<KDefault, VDefault>): Promise<void> {
    const location = this.#given;
    if (typeof location !== 'string') {
      this.#view = (await location).at([], { values: bytes });
      return;
    }
    const { createIfMissing, errorIfExists, storage, worker } = options;
    if (errorIfExists || !createIfMissing) {
      const exists = (await listStores({ worker, ...(typeof storage === 'object' && { storage }) })).includes(location);
      if (exists ? errorIfExists : !createIfMissing)
        throw new Error(`The store ${location} ${exists ? 'exists' : 'does not exist'}.`);
    }
    // Level databases ignore options that they do not know.
    const known = Object.fromEntries(Object.entries(options).filter(([name]) => Object.hasOwn(OPEN, name)));
    const store = await open(location, known).catch((error) => {
      if (!hasCode(error, 'VARVE_LOCKED')) throw error;
      throw Object.assign(new Error(error.message, { cause: error }), { code: 'LEVEL_LOCKED' });
    });
    this.#view = store.at([], { values: bytes });
    this.#end = () => store.close();
  }

  /** @internal */
  async _close(): Promise<void> {
    await this.#end?.();
  }

  /** @internal */
  _get(key: Uint8Array, options: ReadOptions): Promise<Uint8Array | undefined> {
    return this.#inOrder(() => this.#read(options, (reads) => reads.get(key)));
  }

  /** @internal */
  _getMany(keys: Uint8Array[], options: ReadOptions): Promise<(Uint8Array | undefined)[]> {
    return this.#inOrder(() => this.#read(options, (reads) => reads.getMany(keys)));
  }

  /** @internal */
  _has(key: Uint8Array, options: ReadOptions): Promise<boolean> {
    return this.#inOrder(() => this.#read(options, (reads) => reads.has(key)));
  }

  /** @internal */
  _hasMany(keys: Uint8Array[], options: ReadOptions): Promise<boolean[]> {
    return this.#inOrder(() => this.#read(options, (reads) => reads.hasMany(keys)));
  }

  /** @internal */
  async _put(key: Uint8Array, value: Uint8Array, options: SyncOption): Promise<void> {
    await this.#inOrder(() => this.#opened.set(key, value, durabilityOf(options)));
  }

  /** @internal */
  async _del(key: Uint8Array, options: SyncOption): Promise<void> {
    await this.#inOrder(() => this.#opened.delete(key, durabilityOf(options)));
  }

  /** @internal */
  async _batch(operations: readonly Operation[], options: SyncOption): Promise<void> {
    const batch = this.#opened.batch();
    for (const operation of operations) {
      if (operation.type === 'put') batch.set(operation.key, operation.value);
      else batch.delete(operation.key);
    }
    await this.#inOrder(() => batch.commit(durabilityOf(options)));
  }

  /** @internal */
  async _clear(options: Bounds & ReadOptions & SyncOption & { reverse: boolean; limit: number }): Promise<void> {
    const { snapshot, reverse, limit } = options;
    const batch = this.#opened.batch();
    if (limit < 0 && !snapshot) {
      batch.deleteRange(rangeOf(options));
      await this.#inOrder(() => batch.commit(durabilityOf(options)));
      return;
    }
    const wanted = { ...rangeOf(options), reverse, limit: limit < 0 ? undefined : limit };
    const work = async (): Promise<void> => {
      for (const key of await this.#read(options, (reads) => reads.keys(wanted).toArray())) batch.delete(key);
      await batch.commit(durabilityOf(options));
    };
    const cleared = this.#inOrder(work);
    const clearing = cleared.catch(() => undefined);
    this.#clearing = clearing;
    // Before the calls that wait for it: a call after this one must not overtake them.
    void clearing.then(() => {
      if (this.#clearing === clearing) this.#clearing = undefined;
    });
    await cleared;
  }

  /** @internal */
  _iterator(options: IteratorOptions): LevelIterator {
    return new LevelIterator(this as never, options, this.#opened);
  }

  /** @internal */
  _snapshot(options: object): LevelSnapshot {
    return new LevelSnapshot(options, this.#opened);
  }

  /** Makes a call, after a `clear` before it that goes on. */
  #inOrder<T>(call: () => Promise<T>): Promise<T> {
    return this.#clearing === undefined ? call() : this.#clearing.then(call);
  }

  /** The view of an open database. */
  get #opened(): LevelView {
    return this.#view as LevelView;
  }

  #readsOf({ snapshot }: ReadOptions): ReadView<Key, Uint8Array> {
    return snapshot?.reads ?? this.#opened;
  }

  /** Reads, and reads again if the read point is gone. A snapshot has no other one. */
  #read<T>(options: ReadOptions, call: (reads: ReadView<Key, Uint8Array>) => Promise<T>): Promise<T> {
    const read = (): Promise<T> => call(this.#readsOf(options));
    return options.snapshot ? read() : repeated(read);
  }
}

const durabilityOf = ({ sync }: SyncOption): WriteOptions => (sync ? { durability: 'strict' } : {});

/** Options of `migrate`. */
export interface MigrateOptions extends CommonMigrateOptions {
  /** The location of the old database. Default: the location of the new one. */
  location?: string | undefined;
  /** The option `prefix` of browser-level. Default: 'level-js-', as there. */
  prefix?: string | undefined;
}

/**
 * Copies a database of browser-level, once, with its sublevels. Call it before you use the database. A key that is there already keeps
 * its value. The old database stays until you delete it. If the copying is cut off, the next call begins anew; nothing is lost. Tabs may
 * call it at the same time: no call resolves before everything is there.
 *
 * @example
 * const db = new VarveLevel('notes');
 * await migrate(db, { signal, onProgress: ({ done, total }) => show(done / total) });
 * indexedDB.deleteDatabase('level-js-notes');
 */
export async function migrate<K, V>(db: VarveLevel<K, V>, options: MigrateOptions = {}): Promise<MigrationReport> {
  const { location = db.location, prefix = 'level-js-' } = options;
  if (location === undefined) throw invalid('The database has no location: name the one of the old database.');
  const database = prefix + location;
  const move = {
    database,
    stores: { [location]: (key: unknown, value: unknown): [Key, Uint8Array] => [bytesOf(key), bytesOf(value)] },
    view: await db.view(),
    // It is not among the keys of the database, which are bytes.
    mark: [['browser-level', database], new Uint8Array()] as [Key, Uint8Array],
  };
  return moveOnce(move, options);
}

/** A value as browser-level stored it. Versions before 5, called level-js, stored text as text. */
function bytesOf(stored: unknown): Uint8Array {
  if (stored instanceof ArrayBuffer) return new Uint8Array(stored);
  return stored instanceof Uint8Array ? stored : new TextEncoder().encode(String(stored));
}
