/**
 * The synchronous store: every operation returns at once. It is the view of everything, with the calls about the store as a whole.
 */

import { formatsOf } from '../codec/formats.ts';
import { encodeRange } from '../codec/range.ts';
import type { EncryptionKey, EncryptionOptions, RotateKeyOptions } from '../encryption/types.ts';
import type { EngineHost } from '../engine/engine-host.ts';
import { notLoaded } from '../errors.ts';
import { COMPACT, checkOptions, keyOfNow, withKeyOfNow } from '../options.ts';
import type { RawStore } from '../portable/raw-store.ts';
import type { ExportOptions, ImportOptions, ImportReport, ImportSource } from '../portable/types.ts';
import { asyncDispose } from '../runtime/dispose.ts';
import { changeKeys, type KeyCall, type KeyHolder } from '../store/key-change.ts';
import { CHECK, EXPORT } from '../store/options.ts';
import type { CheckOptions, CheckReport } from '../tools/types.ts';
import type {
  CommonOpenOptions,
  CompactOptions,
  Durability,
  RecoveryReport,
  StorageReport,
  StoreStats,
} from '../types.ts';
import { SyncCore } from './core.ts';
import { SyncRawScan } from './raw-scan.ts';
import { type SyncUpgrade, upgradeSync } from './transaction.ts';
import { SyncView } from './view.ts';

/** Exports and imports are rare, so their code is loaded by the first one. */
const loadPortable = (): Promise<typeof import('../portable/portable.ts')> =>
  import('../portable/portable.ts').catch(notLoaded);

/** An open store whose operations return at once. Made by `open` of `varve/synchronous`. */
export class SyncStore<K, V> extends SyncView<K, V> {
  /** The name with which it was opened. */
  readonly name: string;
  /** The storage in use, and why a better one is not in use. */
  readonly storage: StorageReport;
  /** The state that `open` found. */
  readonly recovery: RecoveryReport;
  readonly #core: SyncCore;
  readonly #engine: KeyHolder['engine'];

  /** @internal */
  constructor(
    host: EngineHost,
    { keys, values }: Pick<CommonOpenOptions<K, V>, 'keys' | 'values'>,
    durability: Durability | undefined,
    engine: KeyHolder['engine'] = {},
  ) {
    const core = new SyncCore(host, durability);
    super(core, formatsOf(core, keys, values));
    this.name = host.name;
    this.storage = host.storage;
    this.recovery = host.recovery;
    this.#core = core;
    this.#engine = engine;
  }

  /** @internal Upgrades the store to a version, with the writes of `upgrade`, in one transaction. */
  upgradeTo(version: number, upgrade: SyncUpgrade<K, V> | undefined): void {
    upgradeSync(this.transactionParts(), this.name, version, upgrade);
  }

  /** Returns statistics of the store. */
  stats(): StoreStats {
    this.#core.ensureOpen();
    return this.#core.host.stats();
  }

  /** Flushes and merges everything into one run, in the compactor; resolves when it is done. Reads and writes continue meanwhile. */
  async compact(options: CompactOptions = {}): Promise<void> {
    this.#core.ensureOpen();
    checkOptions(options, COMPACT);
    await this.#core.host.compact(options.onProgress);
  }

  /** Encrypts a store that was opened without a key: see `encrypt` of `varve`. */
  async encrypt(options: EncryptionOptions & CompactOptions): Promise<void> {
    const { onProgress, ...encryption } = options ?? {};
    return this.#changeKeys('encrypt', withKeyOfNow({ encryption }).encryption, () => this.compact({ onProgress }));
  }

  /** Adds a key: see `addEncryptionKey` of `varve`. */
  async addEncryptionKey(key: EncryptionKey): Promise<void> {
    return this.#changeKeys('add', keyOfNow(key));
  }

  /** Removes a key: see `removeEncryptionKey` of `varve`. */
  async removeEncryptionKey(key: EncryptionKey): Promise<void> {
    return this.#changeKeys('remove', keyOfNow(key));
  }

  /** Puts a key into the place of another: see `changeEncryptionKey` of `varve`. */
  async changeEncryptionKey(from: EncryptionKey, to: EncryptionKey): Promise<void> {
    return this.#changeKeys('change', keyOfNow(from), keyOfNow(to));
  }

  /** Makes a new data key for everything that is written from now on: see `rotateKey` of `varve`. */
  async rotateKey(options: RotateKeyOptions = {}): Promise<void> {
    return this.#changeKeys(
      'rotate',
      options?.keys ? { ...options, keys: Array.from(options.keys, keyOfNow) } : options,
    );
  }

  /** Verifies every block and record while reads and writes continue, in a separate worker if the store has a compactor. */
  async check(options: CheckOptions = {}): Promise<CheckReport> {
    this.#core.ensureOpen();
    checkOptions(options, CHECK);
    return this.#core.host.check(options);
  }

  /** Exports the store as it is at this call, or a range of it, as a stream of bytes: see `export` of `varve`. It returns at once. */
  export(options: ExportOptions<K> = {}): ReadableStream<Uint8Array> {
    this.#core.ensureOpen();
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
    const begin = async (): Promise<void> => {
      const range = encodeRange(options, this.formats.keys, EXPORT);
      const { signal, onProgress, encryption } = withKeyOfNow(options);
      const snapshot = this.snapshot();
      const { exportTo } = await loadPortable();
      return exportTo(this.#portable(), snapshot, writable, { range, signal, onProgress, encryption });
    };
    begin().catch((error) => writable.abort(error));
    return readable;
  }

  /** Reads an export into this store: see `import` of `varve`. */
  async import(source: ImportSource, options: ImportOptions = {}): Promise<ImportReport> {
    const given = withKeyOfNow(options);
    const { importFrom } = await loadPortable();
    return importFrom(this.#portable(), source, given);
  }

  /** Logs the buffered writes and closes the store, so that others can open it. It is safe to call it twice. */
  close(): Promise<void> {
    this.#core.log.close();
    return this.#core.host.close();
  }

  /** `close()`, for `await using`. */
  [asyncDispose](): Promise<void> {
    return this.close();
  }

  async #changeKeys(...call: KeyCall): Promise<void> {
    this.#core.ensureOpen();
    return changeKeys({ engine: this.#engine }, call, async (change) => {
      // The writes of this turn are in the log before files get other keys.
      this.#core.ensureOpen();
      return this.#core.host.changeKeys(change);
    });
  }

  /** The store below its codecs. */
  #portable(): RawStore {
    const owner = { store: this.#core.host.store, ensureOpen: () => this.#core.ensureOpen() };
    return {
      scan: (range, snapshot) => new SyncRawScan(owner, range, snapshot),
      get: (key, snapshot) => {
        this.#core.ensureOpen();
        return this.#core.reserved(key, snapshot);
      },
      commit: (items, durability) => this.#core.commitBatch(items, 0, durability),
    };
  }
}
