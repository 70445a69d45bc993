/**
 * Stores in the SQL storage of a Durable Object. Each store has its own table beside the object's other tables:
 * `varve:` and the name of the store, escaped.
 *
 * Invariant: an object opens a store only once at a time. Only Varve writes the table: call `deleteAll()`, or change rows by
 * hand, only when no store is open.
 */

import { invalid, VarveError } from '../errors.ts';
import { checkOptions, type Known } from '../options.ts';
import { untilAborted } from '../runtime/until-aborted.ts';
import { delay } from '../runtime/wait.ts';
import type { LockOptions, StorageAdapter } from '../storage/adapter.ts';
import { ChunkTable, dropTable, sqlOf, tablesOf } from './chunk-table.ts';
import type { SqlStorage } from './platform.ts';
import { SqlDevice } from './sql-device.ts';

/** The platform keeps at most 10 GB in an object. The rest is for the overhead of the rows and for other tables. */
const BYTES_MAX_DEFAULT = 9e9;
/** Slots are rows, so any number would work. */
const SLOTS_MAX = 1000;
/** How often a waiting caller checks whether the store was closed. */
const LOOK_MS = 10;

/** The parts of `ctx` that the storage uses. */
export interface StorageContext {
  readonly storage: { readonly sql: SqlStorage };
  abort(reason?: string): void;
}

/** Options of `objectStorage`. */
export interface ObjectStorageOptions {
  /**
   * The most bytes that each store may take. Further writes are refused with `VARVE_STORAGE_FULL`. Default 9e9, of the 10 GB that an
   * object may have.
   */
  maxBytes?: number | undefined;
}

const STORAGE: Known<ObjectStorageOptions> = { maxBytes: 1 };

interface OpenTable {
  readonly table: ChunkTable;
  readonly device: SqlDevice;
}

/** The open stores, by the object's storage, so that two adapters of one object cannot avoid the lock. */
const openTables = new WeakMap<SqlStorage, Map<string, OpenTable>>();

/** The storage of one Durable Object. */
export class ObjectStorageAdapter implements StorageAdapter {
  readonly kind = 'durable-object';
  readonly #ctx: StorageContext;
  readonly #options: ObjectStorageOptions;

  constructor(ctx: StorageContext, options: ObjectStorageOptions = {}) {
    checkOptions(options, STORAGE);
    const { maxBytes = BYTES_MAX_DEFAULT } = options;
    if (!(maxBytes > 0)) throw invalid('maxBytes is a number of bytes above 0.');
    this.#ctx = ctx;
    this.#options = options;
  }

  async open(name: string, options: LockOptions): Promise<SqlDevice> {
    return this.#whenClosed(name, options, () => this.openNow(name));
  }

  /** `open`, without waiting. */
  openNow(name: string): SqlDevice {
    const sql = this.#sql();
    const open = this.#closed(name);
    const table = new ChunkTable(sql, name);
    const device = new SqlDevice(table, {
      maxBytes: () => this.#options.maxBytes ?? BYTES_MAX_DEFAULT,
      slotsMax: SLOTS_MAX,
      onFailure: (cause) => this.#ctx.abort(`The store ${name} could not be written: ${reasonOf(cause)}`),
      onClose: () => void open.delete(name),
    });
    open.set(name, { table, device });
    return device;
  }

  /** Rows that an open store has written, in the platform's count. */
  rowsWritten(name: string): number {
    return this.#open().get(name)?.table.rowsWritten ?? 0;
  }

  /** Closes all open stores without another write. */
  abort(): void {
    for (const { device } of [...this.#open().values()]) device.abort();
  }

  async list(): Promise<string[]> {
    return tablesOf(this.#sql());
  }

  async delete(name: string, options: LockOptions): Promise<boolean> {
    return this.#whenClosed(name, options, () => {
      this.#closed(name);
      const sql = this.#sql();
      if (!tablesOf(sql).includes(name)) return false;
      dropTable(sql, name);
      return true;
    });
  }

  /** Calls `act` when the store is closed or the time is over. Nothing else can run in between. */
  async #whenClosed<T>(name: string, { lockTimeout, signal }: LockOptions, act: () => T): Promise<T> {
    for (let left = lockTimeout; ; left -= LOOK_MS) {
      signal?.throwIfAborted();
      if (left <= 0 || !this.#open().has(name)) return act();
      await untilAborted(delay(Math.min(left, LOOK_MS)), signal).catch(() => undefined);
    }
  }

  #sql(): SqlStorage {
    return sqlOf(this.#ctx.storage);
  }

  #open(): Map<string, OpenTable> {
    const sql = this.#sql();
    const known = openTables.get(sql) ?? new Map<string, OpenTable>();
    openTables.set(sql, known);
    return known;
  }

  /** Returns the open stores. Throws if this store is among them. */
  #closed(name: string): Map<string, OpenTable> {
    const open = this.#open();
    if (open.has(name)) throw new VarveError('VARVE_LOCKED', `This object has the store ${name} open.`);
    return open;
  }
}

/**
 * The SQL storage of a Durable Object, for the option `storage` of `open`. `VarveObject` does all of this by itself.
 *
 * @example
 * import { open } from 'varve/synchronous';
 * import { objectStorage } from 'varve/cloudflare';
 * import wasm from 'varve/varve.wasm';
 * ctx.blockConcurrencyWhile(async () => {
 *   this.db = await open('notes', { storage: objectStorage(ctx), wasm, compactor: false, memoryBytes: 8 * 2 ** 20 });
 * });
 */
export function objectStorage(ctx: StorageContext, options?: ObjectStorageOptions): StorageAdapter {
  return new ObjectStorageAdapter(ctx, options);
}

function reasonOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
