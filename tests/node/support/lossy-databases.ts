/**
 * IndexedDB in memory that loses power. A transaction is lost if it was not strict and no strict one followed. It can also be full.
 *
 * Invariant: `losePower` leaves the databases as they were when some transaction had completed. That is the last strict one, or one of those
 * after it, as the caller draws. Former connections go on over databases that nothing reads any more.
 */

import { IDBFactory } from 'fake-indexeddb';

type Rows = [IDBValidKey, unknown][];
/** Databases, their stores, and what is in them. */
type Image = Map<string, Map<string, Rows>>;

/** The internals of fake-indexeddb. */
interface Inside {
  readonly _databases: Map<string, { readonly rawObjectStores: Map<string, { readonly records: Iterable<Row> }> }>;
}

interface Row {
  readonly key: IDBValidKey;
  readonly value: unknown;
}

/** The databases of one test. `factory` is to be the global `indexedDB`. */
export class LossyDatabases {
  factory = new IDBFactory();
  /** Bytes of values that transactions may still add; undefined: any number. */
  room: number | undefined;
  /** The databases after each transaction since the last strict one, beginning with that one. */
  #images: Image[] = [new Map()];
  readonly #restore: () => void;

  constructor() {
    const { transaction } = IDBDatabase.prototype;
    const { add, put } = IDBObjectStore.prototype;
    const { commit } = IDBTransaction.prototype;
    const brought = new WeakMap<IDBTransaction, number>();
    for (const [method, original] of Object.entries({ add, put })) {
      IDBObjectStore.prototype[method as 'put'] = function (this: IDBObjectStore, value: Uint8Array, key) {
        brought.set(this.transaction, (brought.get(this.transaction) ?? 0) + value.length);
        return original.call(this, value, key);
      };
    }
    const refuses = (bytes: number): boolean => {
      if (this.room === undefined) return false;
      if (bytes > this.room) return true;
      this.room -= bytes;
      return false;
    };
    IDBTransaction.prototype.commit = function (this: IDBTransaction) {
      if (!refuses(brought.get(this) ?? 0)) return commit.call(this);
      this.abort();
      Object.defineProperty(this, 'error', { value: new DOMException('Full.', 'QuotaExceededError') });
    };
    const committed = (isStrict: boolean): void => {
      if (isStrict) this.#images = [];
      this.#images.push(imageOf(this.factory));
    };
    IDBDatabase.prototype.transaction = function (this: IDBDatabase, ...args) {
      const made = transaction.apply(this, args);
      if (args[1] === 'readwrite') made.addEventListener('complete', () => committed(args[2]?.durability === 'strict'));
      return made;
    };
    this.#restore = () => {
      IDBDatabase.prototype.transaction = transaction;
      Object.assign(IDBObjectStore.prototype, { add, put });
      IDBTransaction.prototype.commit = commit;
    };
  }

  /** Leaves a state that a power cut may leave; `random` draws a number below its argument. */
  async losePower(random: (below: number) => number): Promise<void> {
    const image = this.#images[random(this.#images.length)] as Image;
    this.factory = new IDBFactory();
    for (const [name, stores] of image) await make(this.factory, name, stores);
    this.#images = [image];
  }

  /** Restores IndexedDB as it was before. */
  end(): void {
    this.#restore();
  }
}

function imageOf(factory: IDBFactory): Image {
  const { _databases } = factory as unknown as Inside;
  return new Map(
    [..._databases].map(([name, { rawObjectStores }]) => [
      name,
      new Map([...rawObjectStores].map(([store, { records }]) => [store, rowsOf(records)])),
    ]),
  );
}

function rowsOf(records: unknown): Rows {
  const rows: Rows = [];
  for (const { key, value } of (records as { values(): Iterable<Row> }).values()) rows.push([key, value]);
  return rows;
}

function make(factory: IDBFactory, name: string, stores: Map<string, Rows>): Promise<void> {
  return new Promise((resolve, reject) => {
    const opening = factory.open(name, 1);
    opening.onerror = () => reject(opening.error);
    opening.onsuccess = () => {
      opening.result.close();
      resolve();
    };
    opening.onupgradeneeded = () => {
      for (const [store, rows] of stores) {
        const made = opening.result.createObjectStore(store);
        for (const [key, value] of rows) made.put(value, key);
      }
    };
  });
}
