/**
 * The messages other than frames, as discriminated unions: opening, closing and rare calls.
 * Invariant: a message is an object; an ArrayBuffer is a frame (frame-writer.ts). Both travel over one port, in order,
 * so a frame is answered before a `close` that was sent after it.
 */

import type { UserKey } from '../encryption/user-key.ts';
import type { WireError } from '../errors.ts';
import type { CommonOpenOptions, RecoveryReport, StorageKind, StorageReport } from '../types.ts';
import type { PlainFootprint } from './footprint.ts';

/**
 * The names of the engine's methods outside frames. `stop` ends the check with the given number, or without a number the repair.
 * `after` is answered with the state of the store as soon as that differs from the given state; without a given state, at once.
 * `renew` asks for more time for the client's lease, and is answered with whether it goes on. `keys` is answered with whether the
 * caller's own key does not open the store any more.
 */
type CallMethod = 'stats' | 'compact' | 'check' | 'stop' | 'after' | 'renew' | 'keys';

/** A change of the keys of a store: the argument of `keys`. `own` is the key with which the caller opened the store. */
export type KeyChange =
  | { readonly kind: 'encrypt'; readonly key: UserKey }
  | { readonly kind: 'add'; readonly own: UserKey; readonly key: UserKey }
  /** `wasThere`: the key opened the store when the caller began. If it opens nothing, it is removed already. */
  | { readonly kind: 'remove'; readonly key: UserKey; readonly wasThere?: boolean }
  | { readonly kind: 'change'; readonly own: UserKey; readonly from: UserKey; readonly to: UserKey }
  | { readonly kind: 'rotate'; readonly keys: readonly UserKey[]; readonly removeOthers: boolean };

/** The state of a store. Two states are equal only if nothing was written or lost between them. */
export interface StoreState {
  /** The sequence of the last acknowledged write. */
  readonly sequence: number;
  /** A different number each time the engine opens the store: changes reported before may not have been committed. */
  readonly opening: number;
}

/** The options that the engine gets when it opens a store: plain data only. */
export interface EngineOptions
  extends Pick<CommonOpenOptions, 'durability' | 'lockTimeout' | 'memoryBytes' | 'historyBytes' | 'version'> {
  storage?: StorageKind | undefined;
  /** URL of the wasm file, or the module compiled already. */
  wasm?: string | WebAssembly.Module | undefined;
  /** The key of an encrypted store. */
  key?: UserKey | undefined;
  /** Tried if `key` does not open the store: changes to these keys were asked for, and may be made without an answer. */
  nextKeys?: readonly UserKey[] | undefined;
}

/** The keys to open a store with. */
export type OpeningKeys = Pick<EngineOptions, 'key' | 'nextKeys'>;

/** A client that opens a store together with other tabs. */
export interface SharingOptions {
  /** The worker's name among the candidates for leader. */
  readonly member: string;
  /** The client's number. */
  readonly client: number;
  /** Whether the page can be seen. */
  readonly isVisible: boolean;
  /** Whether the page had the store open before, in a storage that keeps it. Then the store is not made anew. */
  readonly mustExist: boolean;
}

/** The arguments of a repair, or of a check of a store that is not open. */
export interface RepairRequest {
  /** The name of the new store. Undefined: a check. */
  readonly into: string | undefined;
  readonly dropOlder: boolean;
  readonly lockTimeout: number;
  readonly tools?: string | WebAssembly.Module | undefined;
  readonly key?: UserKey | undefined;
}

/** Page to worker. `id` comes back with the answer. */
export type Request =
  /** Opens a store. With `sharing`, waits while there is another leader; without it, nobody else can open the store meanwhile. */
  | {
      readonly type: 'open';
      readonly id: number;
      readonly name: string;
      readonly options: EngineOptions;
      readonly sharing?: SharingOptions | undefined;
    }
  /** The first message of a client to a leader: answered by `welcome` at once, and by `opened` when the store is open. */
  | {
      readonly type: 'join';
      readonly id: number;
      readonly client: number;
      readonly protocol: number;
      /** Rises with each attempt of the client: so a delayed message does not replace that of a later attempt. */
      readonly attempt: number;
      /** The storage that the client's `open` asked for. */
      readonly storage: StorageKind | undefined;
      readonly isLogged: boolean;
      /** The version that the client opened the store with. */
      readonly version: number | undefined;
      /** The key that the client opened the store with, and those to which it has asked to change. */
      readonly key?: UserKey | undefined;
      readonly nextKeys?: readonly UserKey[] | undefined;
    }
  | { readonly type: 'call'; readonly id: number; readonly method: CallMethod; readonly args: readonly unknown[] }
  | { readonly type: 'close'; readonly id: number }
  /** Names of the stores of this origin: answered by a `result` with `string[]`. Needs no open store. */
  | { readonly type: 'list'; readonly id: number }
  /** Removes a store: answered by a `result` with whether it was there. Needs no open store. */
  | { readonly type: 'delete'; readonly id: number; readonly name: string; readonly lockTimeout: number }
  /** Repairs or checks a store: answered by `progress`, then a `result` with a `RepairReport` or a `CheckReport`. Needs no open store. */
  | { readonly type: 'repair'; readonly id: number; readonly name: string; readonly request: RepairRequest }
  /** The page is hidden or goes away: flush at once. Not answered. */
  | { readonly type: 'hidden' }
  /** To its own worker: the keys of the store, for the next time that it leads. Not answered. */
  | { readonly type: 'key'; readonly keys: OpeningKeys }
  /** The page is visible again. Not answered. */
  | { readonly type: 'visible' }
  /** The scans and snapshots that the client had open are open again. Not answered. */
  | { readonly type: 'returned' }
  /** The client keeps nothing any more of what the revocation named. Not answered. */
  | { readonly type: 'revoked'; readonly revocation: number }
  /** To its own worker: ask again which worker leads. Not answered. */
  | { readonly type: 'seek' }
  /** Answered by `pong` at once, whatever else is running. */
  | { readonly type: 'ping' }
  /** Comes with a port to the broker, through which the ports of clients arrive. Not answered. */
  | { readonly type: 'line' };

/** The report of `open`. */
export interface OpenReport {
  /** A store that was made after another of this name was deleted has another id. */
  readonly id: string;
  readonly storage: StorageReport;
  readonly recovery: RecoveryReport;
}

/** Worker to page. */
export type Response =
  | { readonly type: 'opened'; readonly id: number; readonly report: OpenReport }
  | { readonly type: 'result'; readonly id: number; readonly value: unknown }
  /** The progress of a call that will be answered later. */
  | { readonly type: 'progress'; readonly id: number; readonly value: unknown }
  | { readonly type: 'failed'; readonly id: number; readonly error: WireError }
  /** The engine cannot go on (not the answer to one request): everything pending is rejected with it. */
  | { readonly type: 'dead'; readonly error: WireError }
  /** Another client is about to write these: the client drops what it keeps of them, and sends `revoked`. */
  | { readonly type: 'revoke'; readonly revocation: number; readonly footprint: PlainFootprint }
  /** A tab has the store open with this version, which is higher than the client's: the client's writes are refused. 0: no tab has. */
  | { readonly type: 'versionchange'; readonly version: number }
  /** The leader has accepted the client. */
  | { readonly type: 'welcome' }
  | { readonly type: 'pong' }
  /** To its own page: another worker leads, or has a resource that a leader needs; this one waits for that worker to end. */
  | { readonly type: 'waits' }
  /** To its own page: this worker has the lock, and opens the store. */
  | { readonly type: 'opening' }
  /** To its own page: `member` leads. `hasSyncHandles`: whether this worker could open a store in OPFS too. */
  | { readonly type: 'leader'; readonly member: string; readonly term: string; readonly hasSyncHandles: boolean }
  /** To its own page: this worker leads. */
  | { readonly type: 'leads'; readonly report: OpenReport }
  /** To its own page: this worker no longer leads. */
  | { readonly type: 'retired' }
  /** To its own page: get a `line`. */
  | { readonly type: 'broker' }
  /** To its own page: somebody deletes the store. */
  | { readonly type: 'deleted' };
