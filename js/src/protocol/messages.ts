/**
 * The messages beside the frames, as discriminated unions: opening, closing and what is called rarely.
 * Invariant: a message is an object; an ArrayBuffer is a frame (frame-writer.ts). Both travel over one port, in order,
 * so a `close` sent after a frame finds the frame answered.
 */

import type { WireError } from '../errors.ts';
import type { RepairRequest } from '../tools/repair.ts';
import type { EngineOptions, RecoveryReport, StorageKind, StorageReport } from '../types.ts';

/**
 * What the engine's methods outside frames are called. `stop` ends the check of that number, or without one the repair. `after` is
 * answered with the state of the store as soon as that is another than the one it names; without one at once.
 */
export type CallMethod = 'stats' | 'compact' | 'check' | 'stop' | 'after';

/** How far a store is. Two states are equal only if nothing was written or taken back between them. */
export interface StoreState {
  /** The sequence of the last acknowledged write. */
  readonly sequence: number;
  /** Another one each time the engine opens the store: what was told before may not have been committed. */
  readonly opening: number;
}

/** What the worker is told when it opens a store: plain data only. */
export interface OpenMessageOptions extends EngineOptions {
  /** URL of the wasm file, or the module compiled already. */
  wasm?: string | WebAssembly.Module | undefined;
}

/** Who opens a store together with other tabs. */
export interface SharingOptions {
  /** The worker's name among those that would lead. */
  readonly member: string;
  /** The client's number. */
  readonly client: number;
  /** Whether the page can be seen. */
  readonly isVisible: boolean;
}

/** Page to worker. `id` comes back with the answer. */
export type Request =
  /** With `sharing` it is opened, or waited for until its leader is gone; without, by nobody else meanwhile. */
  | {
      readonly type: 'open';
      readonly id: number;
      readonly name: string;
      readonly options: OpenMessageOptions;
      readonly sharing?: SharingOptions | undefined;
    }
  /** The first message of a client to a leader: answered by `welcome` at once, and `opened` when the store is. */
  | {
      readonly type: 'join';
      readonly id: number;
      readonly client: number;
      readonly protocol: number;
      /** Rises with each attempt of the client: a late one does not replace a later one. */
      readonly attempt: number;
      /** What the client's `open` asked for. */
      readonly storage: StorageKind | undefined;
      readonly isLogged: boolean;
    }
  | { readonly type: 'call'; readonly id: number; readonly method: CallMethod; readonly args: readonly unknown[] }
  | { readonly type: 'close'; readonly id: number }
  /** Names of the stores of this origin: answered by a `result` with `string[]`. Needs no open store. */
  | { readonly type: 'list'; readonly id: number }
  /** Removes a store: answered by a `result` with whether it was there. Needs no open store. */
  | { readonly type: 'delete'; readonly id: number; readonly name: string; readonly wait: number }
  /** Salvages a store into a new one: tells progress, then a `result` with a `RepairReport`. Needs no open store. */
  | { readonly type: 'repair'; readonly id: number; readonly name: string; readonly request: RepairRequest }
  /** The page is hidden or goes away: flush at once. Not answered. */
  | { readonly type: 'hidden' }
  /** It can be seen again. Not answered. */
  | { readonly type: 'visible' }
  /** What the client had open is open again. Not answered. */
  | { readonly type: 'returned' }
  /** To its own worker: who leads has to be asked again. Not answered. */
  | { readonly type: 'seek' }
  /** Answered by `pong` at once, whatever is under way. */
  | { readonly type: 'ping' }
  /** Comes with a port to the broker, through which clients are handed over. Not answered. */
  | { readonly type: 'line' };

/** What `open` reports. */
export interface OpenReport {
  readonly storage: StorageReport;
  readonly recovery: RecoveryReport;
}

/** Worker to page. */
export type Response =
  | { readonly type: 'opened'; readonly id: number; readonly report: OpenReport }
  | { readonly type: 'result'; readonly id: number; readonly value: unknown }
  /** How far a call is that will be answered later. */
  | { readonly type: 'progress'; readonly id: number; readonly value: unknown }
  | { readonly type: 'failed'; readonly id: number; readonly error: WireError }
  /** The engine cannot go on (not the answer to one request): everything pending is rejected with it. */
  | { readonly type: 'dead'; readonly error: WireError }
  /** The leader has the client. */
  | { readonly type: 'welcome' }
  | { readonly type: 'pong' }
  /** To its own page: another worker leads, or has what its leader would need; this one waits for it to end. */
  | { readonly type: 'waits' }
  /** To its own page: it has the lock, and opens the store. */
  | { readonly type: 'opening' }
  /** To its own page: that one leads. `hasSyncHandles`: whether this one could open a store in OPFS as well. */
  | { readonly type: 'leader'; readonly member: string; readonly hasSyncHandles: boolean }
  /** To its own page: this worker leads. */
  | { readonly type: 'leads'; readonly report: OpenReport }
  /** To its own page: it does not any more. */
  | { readonly type: 'retired' }
  /** To its own page: get a `line`. */
  | { readonly type: 'broker' }
  /** To its own page: somebody deletes the store. */
  | { readonly type: 'deleted' };
