/**
 * What checking and repairing take and answer.
 *
 * Invariant: plain data, but for callbacks and signals: reports cross worker boundaries as they are.
 */

import type { Key } from '../types.ts';
import type { WasmSource } from '../wasm/compile.ts';

/** How far a check or a repair is. */
export interface ToolsProgress {
  /** Bytes looked at so far. */
  readonly done: number;
  /** Bytes to look at altogether. */
  readonly total: number;
}

/** What `check` and `repair` have in common. */
export interface ToolsOptions {
  /** Called now and then while it runs, and once at its end. */
  onProgress?: ((progress: ToolsProgress) => void) | undefined;
  /** Ends it with `VARVE_ABORTED`. */
  signal?: AbortSignal | undefined;
  /** Where `varve-tools.wasm` is, which is loaded only for this. Default: beside the worker script. */
  tools?: WasmSource | undefined;
}

/** Options of `check`. */
export interface CheckOptions extends ToolsOptions {}

/** What is wrong, roughly. */
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

/** One thing that is wrong. */
export interface CheckProblem {
  /** Kind and number of the file: `'table 12'`, `'log 3'`, `'manifest 0'`. */
  readonly file: string;
  readonly kind: CheckProblemKind;
  /** What is wrong, in a few words. */
  readonly message: string;
  /** Where in the file, in bytes. */
  readonly offset?: number | undefined;
  /** The level of a table. */
  readonly level?: number | undefined;
}

/** What `check` resolves with. */
export interface CheckReport {
  /** Whether there is no problem. */
  readonly ok: boolean;
  /** Tables that were looked at. */
  readonly tables: number;
  /** Data blocks in them. */
  readonly blocks: number;
  /** Entries in those: every version and tombstone. */
  readonly entries: number;
  /** WAL segments. */
  readonly segments: number;
  /** Records in them. */
  readonly records: number;
  /** Bytes that were verified. */
  readonly bytes: number;
  readonly problems: readonly CheckProblem[];
}

/** Options of `repair`. */
export interface RepairOptions extends ToolsOptions {
  /** The name of the new store, which must not exist. Default: the name with `-repaired` behind it. */
  into?: string | undefined;
  /**
   * Leaves out entries that may be older than what was lost. Default false: they are kept, and counted as `older`. Where
   * records of the log are lost, nobody knows of which keys: then every older entry is left out.
   */
  strict?: boolean | undefined;
  /** How long to wait for another holder of the store, in milliseconds. Default 5000. */
  wait?: number | undefined;
}

/** Something that could not be read. */
export interface LostPart {
  /** Kind and number of the file: `'table 12'`, `'log 3'`, `'manifest 0'`. */
  readonly file: string;
  /** What could not be read, in a few words. */
  readonly message: string;
  /** Where in the file, in bytes. */
  readonly offset: number;
  /** How many bytes, where that is known. */
  readonly bytes?: number | undefined;
  /** Whether entries may be missing; false where only a means to find them was damaged. */
  readonly data: boolean;
  /** No key before this one is concerned. Undefined: not known. Bytes, where it is a place between keys. */
  readonly from: Key | undefined;
  /** No key behind this one is concerned. Undefined: not known. Bytes, where it is a place between keys. */
  readonly to: Key | undefined;
}

/** What `repair` resolves with. */
export interface RepairReport {
  /** The name of the new store. */
  readonly store: string;
  /** Entries in it. */
  readonly entries: number;
  /** Tables that were read, in part at least. */
  readonly tables: number;
  /** WAL segments that were read, in part at least. */
  readonly segments: number;
  /** Records in them. */
  readonly records: number;
  /** Entries that may be older than what was lost: kept, or left out with `strict`. */
  readonly older: number;
  /** The log ended as a closed store's does: nothing is missing behind what was read of it. False after a crash, and without a log. */
  readonly sealed: boolean;
  /** No manifest told which tables count: keys that were deleted may be back. */
  readonly mayResurrect: boolean;
  /** Everything that could not be read. */
  readonly lost: readonly LostPart[];
}
