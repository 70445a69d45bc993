/**
 * The package `varve/zero`: a key-value store for Zero 1 and Replicache 15, over stores of `varve`. It imports nothing of them.
 *
 * Invariants: A transaction has the lock of its database from its beginning until it is released: readers together, a writer alone, in
 * all tabs. So reads see one state without a snapshot. A commit applies all writes of its transaction, or none. Values are
 * deeply frozen, because clients keep and compare them.
 */

import type { AnyStore, StoreOrName } from './adapters/any-store.ts';
import { storeOf } from './adapters/named-stores.ts';
import { repeated } from './adapters/repeated.ts';
import { holdLock } from './adapters/rw-lock.ts';
import { structured } from './index.ts';
import { databaseLock } from './share/names.ts';
import type { View } from './store/view.ts';

export type { AnyStore, StoreOrName };

/** A value: JSON. */
export type ReadonlyJSONValue =
  | null
  | string
  | boolean
  | number
  | readonly ReadonlyJSONValue[]
  | { readonly [key: string]: ReadonlyJSONValue | undefined };

/** A transaction that reads. After `release` its calls reject. */
export interface KVRead {
  has(key: string): Promise<boolean>;
  /** The value, deeply frozen; undefined if the key is absent. */
  get(key: string): Promise<ReadonlyJSONValue | undefined>;
  /** Ends the transaction, without what was not committed. */
  release(): void;
  readonly closed: boolean;
}

/** A transaction that reads and writes. It reads its own writes. */
export interface KVWrite extends KVRead {
  /** Freezes the value, deeply. */
  put(key: string, value: ReadonlyJSONValue): Promise<void>;
  del(key: string): Promise<void>;
  /** Applies all writes, or none, with the durability of the Varve store. */
  commit(): Promise<void>;
}

/** A database of a client. */
export interface KVStore {
  /** Begins a transaction when all writers that came before it have ended. */
  read(): Promise<KVRead>;
  /** Begins a transaction when all transactions that came before it have ended. */
  write(): Promise<KVWrite>;
  /** After it no transaction can begin. */
  close(): Promise<void>;
  readonly closed: boolean;
}

/** A value for the option `kvStore` of Zero and Replicache. */
export interface StoreProvider {
  create(name: string): KVStore;
  /** Deletes a database. */
  drop(name: string): Promise<void>;
}

type Values = View<string, ReadonlyJSONValue>;

/** The name of the store for providers that name none. */
const STORE = 'zero';

/**
 * Puts the databases of Zero or Replicache into one Varve store: the option `kvStore`. `store` is a store, a view of one, or the promise of
 * one; or a name, `'zero'` by default. If it cannot be opened, transactions reject with that error. The provider does not close it.
 *
 * @example
 * const zero = new Zero({ schema, server, userID, kvStore: varveStoreProvider() });
 * const replicache = new Replicache({ name, mutators, kvStore: varveStoreProvider(db.at(['replicache'])) });
 */
export function varveStoreProvider(store: StoreOrName = STORE): StoreProvider {
  const open = async (name: string): Promise<Values> =>
    (await storeOf(store)).at([name], { values: structured.as<ReadonlyJSONValue>() });
  return {
    create: (name) => new Database(name, open),
    async drop(name) {
      const release = await holdLock(databaseLock(name), 'exclusive');
      try {
        await (await open(name)).clear();
      } finally {
        release();
      }
    },
  };
}

/** A database. Those of one name in different Varve stores have one lock: one more wait, and no other harm. */
class Database implements KVStore {
  closed = false;
  readonly #name: string;
  readonly #open: (name: string) => Promise<Values>;

  constructor(name: string, open: (name: string) => Promise<Values>) {
    this.#name = name;
    this.#open = open;
  }

  read(): Promise<KVRead> {
    return this.#begin('shared', (values, release) => new ReadTransaction(values, release));
  }

  write(): Promise<KVWrite> {
    return this.#begin('exclusive', (values, release) => new WriteTransaction(values, release));
  }

  async close(): Promise<void> {
    this.closed = true;
  }

  async #begin<T>(mode: LockMode, make: (values: Values, release: () => void) => T): Promise<T> {
    if (this.closed) throw new Error('Store is closed');
    const release = await holdLock(databaseLock(this.#name), mode);
    try {
      return make(await this.#open(this.#name), release);
    } catch (error) {
      release();
      throw error;
    }
  }
}

class ReadTransaction implements KVRead {
  closed = false;
  readonly #values: Values;
  readonly #release: () => void;

  constructor(values: Values, release: () => void) {
    this.#values = values;
    this.#release = release;
  }

  async has(key: string): Promise<boolean> {
    const values = this.opened();
    return repeated(() => values.has(key));
  }

  async get(key: string): Promise<ReadonlyJSONValue | undefined> {
    const values = this.opened();
    return frozen(await repeated(() => values.get(key)));
  }

  release(): void {
    this.closed = true;
    this.#release();
  }

  /** The view. Throws if the transaction is closed. */
  protected opened(): Values {
    if (this.closed) throw new Error('Transaction is closed');
    return this.#values;
  }
}

class WriteTransaction extends ReadTransaction implements KVWrite {
  /** The writes: values, and undefined for deletions. */
  readonly #pending = new Map<string, ReadonlyJSONValue | undefined>();

  override async has(key: string): Promise<boolean> {
    this.opened();
    return this.#pending.has(key) ? this.#pending.get(key) !== undefined : super.has(key);
  }

  override async get(key: string): Promise<ReadonlyJSONValue | undefined> {
    this.opened();
    return this.#pending.has(key) ? this.#pending.get(key) : super.get(key);
  }

  async put(key: string, value: ReadonlyJSONValue): Promise<void> {
    this.opened();
    if (value === undefined) throw new TypeError('The value is undefined.');
    this.#pending.set(key, frozen(value));
  }

  async del(key: string): Promise<void> {
    this.opened();
    this.#pending.set(key, undefined);
  }

  async commit(): Promise<void> {
    const batch = this.opened().batch();
    for (const [key, value] of this.#pending) {
      if (value === undefined) batch.delete(key);
      else batch.set(key, value);
    }
    await batch.commit();
    this.#pending.clear();
  }
}

/** Freezes a value and everything in it. */
function frozen<T extends ReadonlyJSONValue | undefined>(value: T): T {
  if (typeof value !== 'object' || value === null) return value;
  for (const part of Object.values(value)) frozen(part);
  return Object.freeze(value);
}
