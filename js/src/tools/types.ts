/**
 * The options and results of checks and repairs.
 *
 * Invariant: plain data, except for callbacks and signals. Reports are sent between workers as they are.
 */

import type { EncryptionOptions } from '../encryption/types.ts';
import type { Key, Progress } from '../types.ts';
import type { WasmSource } from '../wasm/compile.ts';

/** Options of a store's `check`, which every check and repair has. */
export interface CheckOptions {
  /** Called from time to time during the work, and once at its end, with the bytes that are read. */
  onProgress?: ((progress: Progress) => void) | undefined;
  /** Ends the work. The call rejects with the signal's `reason`. */
  signal?: AbortSignal | undefined;
  /** The location of `varve-tools.wasm`, which is loaded only for this work. Default: beside the worker script. */
  tools?: WasmSource | undefined;
}

/** The rough kind of a problem. A minor version may add a kind. */
export type CheckProblemKind =
  | 'slot'
  | 'missing'
  | 'manifest'
  | 'levels'
  | 'log'
  | 'footer'
  | 'block'
  | 'order'
  | 'index'
  | 'filter'
  | 'counts';

/** One problem. */
export interface CheckProblem {
  /** Kind and number of the file: `'table 12'`, `'log 3'`, `'manifest 0'`. */
  readonly file: string;
  readonly kind: CheckProblemKind;
  /** A short description of the problem. */
  readonly message: string;
  /** Where in the file, in bytes. */
  readonly offset?: number | undefined;
  /** The level of a table. */
  readonly level?: number | undefined;
}

/** The result of `check`. A minor version may add fields. */
export interface CheckReport {
  /** True if there are no problems. */
  readonly ok: boolean;
  /** Tables that were checked. */
  readonly tables: number;
  /** Data blocks in them. */
  readonly blocks: number;
  /** Entries in the blocks: every version and tombstone counts. 0 without the key. */
  readonly entries: number;
  /** WAL segments. */
  readonly segments: number;
  /** Records in them. */
  readonly records: number;
  /** Verified bytes. */
  readonly bytes: number;
  /**
   * True if the store is encrypted and its key was not given. Then the check verified all checksums, which need no key, but not order,
   * filters and counts, and could not know which files are in use.
   */
  readonly withoutKey: boolean;
  readonly problems: readonly CheckProblem[];
}

/** The common options of `check` and `repair` of a store that is not open. */
export interface ClosedStoreOptions extends CheckOptions {
  /** The key of an encrypted store. */
  encryption?: EncryptionOptions | undefined;
  /** How long to wait if the store is open elsewhere, in milliseconds. Default 5000. */
  lockTimeout?: number | undefined;
}

/** Options of `repair`. */
export interface RepairOptions extends ClosedStoreOptions {
  /** The name of the new store, which must not exist yet. Default: the name followed by `-repaired`. */
  into?: string | undefined;
  /**
   * Leaves out entries that may be older than lost data. Default false: they are kept, and counted as `older`. If records of
   * the log are lost, their keys are unknown: then every older entry is left out.
   */
  dropOlder?: boolean | undefined;
  /** The key of an encrypted store. The new store has the same keys. */
  encryption?: EncryptionOptions | undefined;
}

/** A part of a file that could not be read. */
export interface LostPart {
  /** Kind and number of the file: `'table 12'`, `'log 3'`, `'manifest 0'`. */
  readonly file: string;
  /** A short description of the part. */
  readonly message: string;
  /** Where in the file, in bytes. */
  readonly offset: number;
  /** The number of bytes, if it is known. */
  readonly bytes?: number | undefined;
  /** Whether entries may be missing; false if the damaged part only helps to find entries. */
  readonly data: boolean;
  /** No key before this one is affected. Undefined: not known. Bytes, if it is a place between keys. */
  readonly from: Key | undefined;
  /** No key after this one is affected. Undefined: not known. Bytes, if it is a place between keys. */
  readonly to: Key | undefined;
}

/** The result of `repair`. A minor version may add fields. */
export interface RepairReport {
  /** The name of the new store. */
  readonly name: string;
  /** Entries in it. */
  readonly entries: number;
  /** Tables that were read, at least in part. */
  readonly tables: number;
  /** WAL segments that were read, at least in part. */
  readonly segments: number;
  /** Records in them. */
  readonly records: number;
  /** Entries that may be older than lost data: kept, or left out with `dropOlder`. */
  readonly older: number;
  /** True if the log ended like that of a closed store: nothing is missing at its end. False after a crash, and without a log. */
  readonly sealed: boolean;
  /** True if no manifest listed the valid tables: deleted keys may have come back. */
  readonly mayResurrect: boolean;
  /** All parts that could not be read. */
  readonly lost: readonly LostPart[];
}
