/**
 * The package `varve`: durable, ordered stores for a page, with the engine in a worker.
 *
 * Invariant: importing this starts nothing; `open` and `preload` start the worker. The worker's script is beside this file in the
 * package, and `new Worker(new URL(...))` is written here in the one form that every bundler recognizes.
 */

import { lazyPort } from './client/lazy-port.ts';
import type { DeriveKeyOptions, PassphraseKey } from './encryption/types.ts';
import { checkOptions } from './options.ts';
import { foreignWorker, moduleWorker } from './runtime/module-worker.ts';
import { isAdapter } from './storage/adapter.ts';
import { loaders } from './store/loaders.ts';
import { openStore, type Sharing } from './store/open.ts';
import type { OpenOptions } from './store/open-options.ts';
import { CHECK_CLOSED, DELETE, LIST, OPEN, PRELOAD, REPAIR } from './store/options.ts';
import type { Spawn } from './store/start.ts';
import type { Store } from './store/store.ts';
import type {
  CheckReport,
  ClosedStoreOptions,
  RepairReport,
  RepairOptions as RepairToolsOptions,
} from './tools/types.ts';
import type {
  DeleteStoreOptions as CommonDeleteStoreOptions,
  ListStoresOptions as CommonListStoresOptions,
  Key,
} from './types.ts';
import { loadEngine } from './wasm/compile.ts';

export type * from './changes/types.ts';
export * from './common.ts';
export type { Batch } from './store/batch.ts';
export type { TransactionHandle } from './store/begin.ts';
export type { OpenOptions } from './store/open-options.ts';
export type { ReadView } from './store/read-view.ts';
export type { Snapshot } from './store/snapshot.ts';
export type { Store } from './store/store.ts';
export type { Transaction, Upgrade } from './store/transaction.ts';
export type { View } from './store/view.ts';

type Spawned = Pick<OpenOptions, 'worker'>;

/** Options of `preload`. */
export type PreloadOptions = Pick<OpenOptions, 'wasm'>;

/** Options of `listStores`. */
export interface ListStoresOptions extends CommonListStoresOptions, Spawned {}

/** Options of `deleteStore`. */
export interface DeleteStoreOptions extends CommonDeleteStoreOptions, Spawned {}

/** Options of `check`. */
export interface CheckStoreOptions extends ClosedStoreOptions, ListStoresOptions {}

/** Options of `repair`. */
export interface RepairOptions extends RepairToolsOptions, ListStoresOptions {}

/**
 * Opens a store, and creates it if it does not exist. The types of keys and values follow from the codecs; with the default
 * codecs, the type arguments give them.
 *
 * Rejects with `VARVE_LOCKED` when another opening keeps the store to itself for longer than `lockTimeout`, `VARVE_CORRUPT` when its files
 * are damaged (see `repair`), `VARVE_KEY` when its key is wrong, missing or not needed, `VARVE_VERSION` when newer code wrote them or
 * `version` is lower than the store's version, `VARVE_UNAVAILABLE` when the storage or a file of the package cannot be had just now,
 * `VARVE_UNSUPPORTED` where workers are unavailable, `VARVE_INVALID_ARGUMENT` for an invalid name or option, with the signal's `reason`
 * when it aborts, and with any error that `upgrade` throws.
 *
 * @example
 * const db = await open<string, number>('counters', { durability: 'strict' });
 * console.log(db.storage.kind, db.recovery.state); // 'opfs', 'clean'
 *
 * @example
 * const notes = await open('notes', {
 *   version: 2,
 *   async upgrade(tx, { oldVersion }) {
 *     if (!(await tx.has('settings'))) tx.set('settings', { theme: 'light' });
 *     if (oldVersion < 2) for await (const [key, note] of tx.entries({ prefix: ['note'] })) tx.set(key, withTags(note));
 *   },
 * });
 */
export async function open<K = Key, V = unknown>(name: string, options: OpenOptions<K, V> = {}): Promise<Store<K, V>> {
  return openStore(name, options, spawnOf(options, OPEN), { compile: compilerOf(options) });
}

/**
 * Fetches and compiles the engine and starts a worker, for a page that will open a store later, for example after a sign-in. The next
 * `open` takes this worker. An error of the loading is not reported here: `open` tries again, and reports it.
 *
 * @example
 * preload();
 * const user = await signIn();
 * const db = await open(`notes-${user.id}`);
 */
export function preload(options: PreloadOptions = {}): void {
  checkOptions(options, PRELOAD);
  loadEngine(options.wasm).catch(() => undefined);
  if (spare !== undefined || typeof Worker !== 'function') return;
  try {
    spare = newWorker();
    spare.onerror = () => {
      spare = undefined;
    };
  } catch {
    // `open` tries again.
  }
}

/** A worker that was started ahead. */
let spare: Worker | undefined;

function newWorker(): Worker {
  return (
    foreignWorker(import.meta.url, 'engine-worker.js', 'varve') ??
    new Worker(new URL('./engine-worker.js', import.meta.url), { type: 'module', name: 'varve' })
  );
}

/** The worker that was started ahead, or a new one. */
function takeWorker(): Worker {
  const worker = spare ?? newWorker();
  spare = undefined;
  return worker;
}

/**
 * Makes a key of a passphrase, by PBKDF2 with SHA-256. Each key slot has a salt, so the work is done when the key is used: some tenths of a
 * second. The same characters in another form of Unicode are the same passphrase. Rejects with `VARVE_INVALID_ARGUMENT` for an empty
 * passphrase, and with `VARVE_UNSUPPORTED` where there is no WebCrypto (pages that are not served over HTTPS).
 *
 * @example
 * const key = await deriveKey(passphrase);
 * await db.export({ encryption: { key } }).pipeTo(await file.createWritable());
 */
export async function deriveKey(passphrase: string, options?: DeriveKeyOptions): Promise<PassphraseKey> {
  return (await loaders.encryption()).deriveKey(passphrase, options);
}

/**
 * The names of this origin's stores, sorted. Rejects with `VARVE_UNAVAILABLE` when a storage cannot be used just now.
 *
 * @example
 * const names = await listStores(); // ['counters', 'notes']
 */
export async function listStores(options: ListStoresOptions = {}): Promise<string[]> {
  const spawn = spawnOf(options, LIST);
  return (await loaders.requests()).listNames(options, spawn);
}

/**
 * Deletes a store with all its data; resolves with true if it existed. Rejects with `VARVE_LOCKED` when it stays open
 * somewhere for longer than `lockTimeout`, and with `VARVE_UNAVAILABLE` when a storage that may have it cannot be used just now.
 *
 * @example
 * await deleteStore('counters');
 */
export async function deleteStore(name: string, options: DeleteStoreOptions = {}): Promise<boolean> {
  const spawn = spawnOf(options, DELETE);
  return (await loaders.requests()).deleteNamed(name, options, spawn);
}

/**
 * Checks a store that is not open anywhere, or that does not open: verifies every block and every record, and lists what is damaged.
 * Nothing is changed. `store.check()` does the same with an open store.
 *
 * An encrypted store can be checked without its key: checksums are over encrypted bytes, so damage shows, and damage is not confused
 * with a wrong key. With the key, order, filters and counts are verified, too. `CheckReport.withoutKey` shows which of the two it was.
 * After a crash, a file that was being written counts as damaged if the report cannot tell the two apart; opening the store puts it right.
 *
 * Rejects with `VARVE_NOT_FOUND` when the store does not exist, `VARVE_KEY` when the key is wrong, and with `VARVE_LOCKED`,
 * `VARVE_VERSION`, `VARVE_UNSUPPORTED`, `VARVE_UNAVAILABLE` and the signal's `reason` as `open` does.
 *
 * @example
 * const { ok, problems } = await check('notes');
 * for (const { file, message } of problems) console.warn(file, message);
 */
export async function check(name: string, options: CheckStoreOptions = {}): Promise<CheckReport> {
  const spawn = spawnOf(options, CHECK_CLOSED);
  return (await loaders.requests()).checkNamed(name, options, spawn);
}

/**
 * Salvages the readable data of a damaged store into a new store, and reports what is lost. The damaged store must not be open
 * anywhere; it is not changed. The repair reads every block and every record whose checksum is right. For each key it takes the
 * newest version that is left, with its sequence and its expiry. See `RepairReport` for the limits of this.
 *
 * To continue under the old name, delete the damaged store and repair the new store into the old name: the repair of an undamaged
 * store is a copy. (After LevelDB's RepairDB and the `.recover` of SQLite's shell.)
 *
 * Rejects with `VARVE_NOT_FOUND` when the store does not exist, `VARVE_EXISTS` when the new store already exists, and with `VARVE_LOCKED`,
 * `VARVE_STORAGE_FULL`, `VARVE_VERSION`, `VARVE_UNSUPPORTED`, `VARVE_UNAVAILABLE` and the signal's `reason` as `open` does.
 *
 * @example
 * const { name, entries, lost } = await repair('notes'); // 'notes-repaired'
 * for (const { file, message, from, to } of lost) console.warn(file, message, from, to);
 * await deleteStore('notes');
 * await repair(name, { into: 'notes' });
 * await deleteStore(name);
 */
export async function repair(name: string, options: RepairOptions = {}): Promise<RepairReport> {
  const spawn = spawnOf(options, REPAIR);
  return (await loaders.requests()).repairNamed(name, options, spawn);
}

/**
 * Compiles the engine in this page while its worker starts: it takes the worker as long to start as the page to fetch and compile the
 * engine. A worker of the caller's own knows where its engine is, and in a realm without workers the engine is compiled once anyway.
 */
function compilerOf({ worker, wasm }: Pick<OpenOptions, 'worker' | 'wasm'>): Sharing['compile'] {
  const isOurs = worker === undefined && typeof Worker === 'function';
  return isOurs || wasm !== undefined ? () => loadEngine(wasm) : undefined;
}

/** How a call starts its worker. Checks the options of the call first; `known` has their names besides `worker`. */
function spawnOf(options: Pick<OpenOptions, 'worker' | 'storage'>, known: Readonly<Record<string, 1>>): Spawn {
  checkOptions(options, { ...known, worker: 1 });
  const { worker, storage } = options;
  const adapter = isAdapter(storage) ? storage : undefined;
  if (adapter !== undefined || (worker === undefined && typeof Worker !== 'function')) {
    return () => lazyPort(async () => (await import('./server/inline.ts')).inlineEngine(adapter));
  }
  if (typeof worker === 'function') return worker;
  if (worker === undefined) return takeWorker;
  return (name) => moduleWorker(String(worker), `varve: ${name}`);
}
