/**
 * The asynchronous store: what `open` of `varve` resolves with. It is the view of everything, with the calls about the store as a whole.
 */

import type { Client } from '../client/client.ts';
import { Operations, scanEntries } from '../client/operations.ts';
import { formatsOf } from '../codec/formats.ts';
import { encodeRange } from '../codec/range.ts';
import type { EncryptionKey, EncryptionOptions, RotateKeyOptions } from '../encryption/types.ts';
import { COMPACT, checkOptions, keyOfNow, WRITE, withKeyOfNow } from '../options.ts';
import type { ExportOptions, ImportOptions, ImportReport, ImportSource } from '../portable/types.ts';
import { levelNumber } from '../protocol/frame.ts';
import type { OpenReport } from '../protocol/messages.ts';
import { asyncDispose } from '../runtime/dispose.ts';
import { untilAborted } from '../runtime/until-aborted.ts';
import type { CheckOptions, CheckReport } from '../tools/types.ts';
import type { CompactOptions, Progress, RecoveryReport, StorageReport, StoreStats } from '../types.ts';
import { Cursor } from './cursor.ts';
import type { KeyCall, KeyHolder } from './key-change.ts';
import { loaders } from './loaders.ts';
import type { OpenOptions } from './open-options.ts';
import { CHECK, EXPORT, wasmPlace } from './options.ts';
import type { PortableParts } from './portable.ts';
import type { Upgrade } from './transaction.ts';
import { View } from './view.ts';

/** What a store has besides its client. */
interface StoreEnds extends KeyHolder {
  readonly onClose?: (() => void) | undefined;
}

/**
 * An open store: a durable, ordered map. Every method rejects with a `VarveError`: `VARVE_CLOSED` after `close()`,
 * the signal's `reason` when it aborts, `VARVE_INVALID_KEY` and `VARVE_INVALID_VALUE` for a key or value that cannot be stored,
 * `VARVE_STORAGE_FULL`, `VARVE_CORRUPT`, `VARVE_IO` and `VARVE_POISONED` when the storage fails.
 *
 * A Uint8Array that a read returns is a view of a larger buffer: `slice()` it if you transfer it or keep it for long.
 *
 * @example
 * const db = await open<string, number>('counters');
 * await db.set('visits', 1);
 * await db.get('visits'); // 1
 */
export class Store<K, V> extends View<K, V> implements AsyncDisposable {
  /** The name with which it was opened. */
  readonly name: string;
  /** The storage in use, and why a better one is not in use. */
  readonly storage: StorageReport;
  /** The state that `open` found: a new store, a clean one, or a log that was replayed. */
  readonly recovery: RecoveryReport;
  readonly #ends: StoreEnds;
  /** How many checks were started: a signal stops only the check that it was given to. */
  #checks = 0;

  /** @internal Made by `open`. */
  constructor(name: string, client: Client, report: OpenReport, options: OpenOptions<K, V>, ends: StoreEnds) {
    const level = levelNumber(options.durability ?? 'relaxed');
    super(client, new Operations(formatsOf(client, options.keys, options.values)), level);
    this.name = name;
    this.storage = report.storage;
    this.recovery = report.recovery;
    this.#ends = ends;
  }

  /** @internal Upgrades the store to a version, with the writes of `upgrade`, in one transaction. */
  async upgradeTo(version: number, upgrade: Upgrade<K, V> | undefined, signal: AbortSignal | undefined): Promise<void> {
    const { runUpgrade } = await loaders.transactions();
    const parts = this.transactionParts({ durability: 'strict' }, WRITE);
    return runUpgrade(parts, this.name, version, upgrade, { signal });
  }

  /** @internal Answers reads from at most this many bytes that are kept here. Until the code has come, the engine answers them. */
  cacheReads(bytesMax: number): void {
    loaders.cache().then(
      ({ ReadCache }) => new ReadCache(this.client, bytesMax),
      () => undefined,
    );
  }

  /**
   * Returns statistics of the store as it is now.
   *
   * @example
   * const { levels } = await db.stats();
   */
  async stats(): Promise<StoreStats> {
    const stats = (await this.client.ask({ type: 'call', method: 'stats', args: [] })) as StoreStats;
    const { sharing } = stats;
    const { via } = this.client;
    if (sharing === undefined || via === undefined) return stats;
    return { ...stats, sharing: { ...sharing, via, leads: via === 'worker' } };
  }

  /**
   * Asks the browser never to clear this origin's storage by itself; resolves with true if it agreed. Firefox asks the user; Chromium
   * and Safari decide by how the site is used. Browsers answer in pages only: elsewhere the result is false.
   *
   * @example
   * if (!(await db.persist())) offerExport(); // it may be gone when the device runs out of room
   */
  async persist(): Promise<boolean> {
    return (await globalThis.navigator?.storage?.persist?.()) === true;
  }

  /**
   * Merges all tables now, and drops overwritten and deleted entries. The store also does this by itself, in the background.
   * Reads and writes continue meanwhile; the merge may not contain writes made while it runs. Rejects with `VARVE_CORRUPT` or `VARVE_IO` if
   * a table cannot be read, and with `VARVE_STORAGE_FULL` if there is no room for merged tables.
   *
   * @example
   * await db.clear();
   * await db.compact({ onProgress: ({ done, total }) => show(done / total) }); // the space is free
   */
  async compact(options: CompactOptions = {}): Promise<void> {
    checkOptions(options, COMPACT);
    const { onProgress } = options;
    // In a separate microtask: an error that the callback throws must not reach the connection.
    const progress = (value: unknown): void => queueMicrotask(() => onProgress?.(value as Progress));
    await this.client.ask({ type: 'call', method: 'compact', args: [] }, progress);
  }

  /**
   * Encrypts a store that was opened without a key: new data at once, and the rest before it resolves. Keep the key before you call this:
   * if it is interrupted, or rejects with another code than those below, the store needs the key all the same, and the rest is encrypted
   * later, except tables that cannot be read (`VARVE_CORRUPT`, `VARVE_IO`): use `repair`. Tabs that have the store open keep it open; open
   * it in them with the key from then on. Rejects with `VARVE_KEY` if the store is encrypted already, and this key does not open it; with
   * `VARVE_INVALID_ARGUMENT` for a key of a wrong form.
   *
   * @example
   * await db.encrypt({ key: await deriveKey(passphrase) });
   */
  async encrypt(options: EncryptionOptions & CompactOptions): Promise<void> {
    const { onProgress, ...encryption } = options ?? {};
    return this.#changeKeys('encrypt', withKeyOfNow({ encryption }).encryption, () => this.compact({ onProgress }));
  }

  /**
   * Adds a key: each of up to 16 keys opens the store. A key that opens it already is not added again. Rejects with `VARVE_KEY` if the
   * store is not encrypted.
   *
   * @example
   * await db.addEncryptionKey(outputOfPasskey); // the passphrase still opens it
   */
  async addEncryptionKey(key: EncryptionKey): Promise<void> {
    return this.#changeKeys('add', keyOfNow(key));
  }

  /**
   * Removes a key. Rejects with `VARVE_KEY` if it opens nothing, or if the tab that led ended and it is not known whether the key was
   * removed; and with `VARVE_INVALID_ARGUMENT` if it is the last one.
   */
  async removeEncryptionKey(key: EncryptionKey): Promise<void> {
    return this.#changeKeys('remove', keyOfNow(key));
  }

  /**
   * Puts a key into the place of another. Nothing is encrypted anew: a person with a copy of the old key slots can open them with the old
   * key, and read data of before the next `rotateKey()`. Rejects with `VARVE_KEY` if `from` opens nothing, unless `to` opens the store
   * already.
   *
   * @example
   * await db.changeEncryptionKey(await deriveKey(old), await deriveKey(passphrase));
   */
  async changeEncryptionKey(from: EncryptionKey, to: EncryptionKey): Promise<void> {
    return this.#changeKeys('change', keyOfNow(from), keyOfNow(to));
  }

  /**
   * Makes a new data key, for everything that is written from now on; `compact()` brings over the rest. All keys of the store must be given.
   * Rejects with `VARVE_KEY` if one is wrong or missing.
   *
   * @example
   * await db.rotateKey({ keys: [passphraseKey, passkeyKey] });
   * await db.compact();
   */
  async rotateKey(options: RotateKeyOptions = {}): Promise<void> {
    return this.#changeKeys(
      'rotate',
      options?.keys ? { ...options, keys: Array.from(options.keys, keyOfNow) } : options,
    );
  }

  /**
   * Verifies every block and every record of the store, in a separate worker, while reads and writes continue. It changes
   * nothing. Problems are listed in the report, not thrown. Use `repair` to salvage a store that has problems.
   *
   * @example
   * const { ok, problems } = await db.check({ onProgress: ({ done, total }) => show(done / total) });
   * if (!ok) console.warn(problems); // [{ file: 'table 12', kind: 'block', message: 'block checksum', offset: 40960, level: 6 }]
   */
  async check(options: CheckOptions = {}): Promise<CheckReport> {
    checkOptions(options, CHECK);
    const { onProgress, signal, tools } = options;
    const number = ++this.#checks;
    const request = { number, tools: tools === undefined ? undefined : wasmPlace(tools) };
    const progress = (value: unknown): void => queueMicrotask(() => onProgress?.(value as Progress));
    const call = (method: 'check' | 'stop', ...args: unknown[]): Promise<unknown> =>
      this.client.ask({ type: 'call', method, args }, progress);
    return untilAborted(call('check', request) as Promise<CheckReport>, signal, () => call('stop', number));
  }

  /**
   * Exports the store as it is at this call, or a range of it, as a stream of bytes. `import` reads it, on any storage and runtime.
   * Each block has a checksum; keys, values and expiries are copied as they are stored. Index entries of collections are left out,
   * because they follow from the documents. A failure, or an abort of the signal, ends the stream with an error. The export keeps a
   * snapshot open until the stream ends or is cancelled.
   *
   * @example
   * await db.export().pipeTo(await file.createWritable());
   * await fetch('/backup', { method: 'PUT', body: await new Response(db.export({ prefix: ['note'] })).blob() });
   */
  export(options: ExportOptions<K> = {}): ReadableStream<Uint8Array> {
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
    const begin = async (): Promise<void> => {
      const range = encodeRange(options, this.formats.keys, EXPORT);
      const { signal, onProgress, encryption } = withKeyOfNow(options);
      const snapshot = this.snapshot();
      const { exportTo, rawStore } = await loaders.portable();
      return exportTo(rawStore(this.#parts()), snapshot, writable, { range, signal, onProgress, encryption });
    };
    begin().catch((error) => writable.abort(error));
    return readable;
  }

  /**
   * Reads an export into this store. A store that is not empty gives `VARVE_EXISTS`, unless `merge: true`. Each block is verified before
   * any of it is applied; a damaged or truncated export rejects with `VARVE_CORRUPT` and the offset. If an import was interrupted, import the same
   * export again: it continues where it stopped, unless something else was written meanwhile; then `merge: true` begins again, and
   * without it the store counts as not empty. Give the whole export, or a function that opens it at an offset. The
   * store gets the export's `version`; if the store has another version, the import rejects with `VARVE_VERSION`. Indexes of
   * collections whose documents are imported are rebuilt before their next use.
   *
   * @example
   * await db.import(file, { onProgress: ({ bytes }) => show(bytes / file.size) });
   * await db.import((offset) => fetch('/backup', { headers: { range: `bytes=${offset}-` } }).then(({ body }) => body!));
   */
  async import(source: ImportSource, options: ImportOptions = {}): Promise<ImportReport> {
    const given = withKeyOfNow(options);
    const { importFrom, rawStore } = await loaders.portable();
    return importFrom(rawStore(this.#parts()), source, given);
  }

  /**
   * Waits for running operations, flushes their writes, seals the store and ends its worker. A second call has no further effect. An
   * `update` or a `transaction` is several operations: if it still runs, it may be refused with `VARVE_CLOSED`, and then it wrote nothing.
   *
   * @example
   * await using db = await open('notes'); // closed at the end of the block
   */
  close(): Promise<void> {
    this.#ends.onClose?.();
    return this.client.close();
  }

  /** `close()`, for `await using`. */
  [asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Changes the keys of the store. */
  async #changeKeys(...change: KeyCall): Promise<void> {
    const { changeKeys } = await loaders.encryption();
    const ask = (made: object) => this.client.ask({ type: 'call', method: 'keys', args: [made] }) as Promise<boolean>;
    return changeKeys(this.#ends, change, ask);
  }

  /** The parts of the store that exports and imports use. */
  #parts(): PortableParts {
    return { client: this.client, Cursor, scan: scanEntries, level: this.level };
  }
}
