/**
 * The interface of everything that the bench measures: Varve, a peer or a floor.
 *
 * Invariant: a session is of one kind. `sync` calls return with their result, `async` calls with a promise, and each is
 * driven by a loop of its own, so that no synchronous engine pays for an `await` it does not need. Values are delivered
 * to JavaScript as bytes in every engine; none may hand out less than the caller could keep.
 */

import type { StoreStats } from 'varve';
import type { Key } from './generator.ts';

/** How a store is reached: inside the worker, awaited from the page, or from the page with 100 calls in flight. */
export type Access = 'worker' | 'page' | 'inflight';

export const IN_FLIGHT = 100;

/** The level that the writes of a row reach. `memory` survives nothing. */
export type Durability = 'memory' | 'relaxed' | 'strict';

/**
 * The abilities of an engine; a suite runs on those that have all it needs. `miss`: says itself that a key is absent;
 * `mixed`: reads what it was just given; `tuple`: takes tuples as keys; `transaction`: has `transact`; `deleteRange`: has that.
 */
export const ABILITIES = [
  ...(['set', 'get', 'miss', 'mixed', 'delete', 'batch'] as const),
  ...(['range', 'deleteRange', 'open', 'tuple', 'transaction'] as const),
] as const;
export type Ability = (typeof ABILITIES)[number];

export type Role = 'varve' | 'peer' | 'floor';

/** Where the entries of a fixture lie: anywhere, in one memtable, or flushed and compacted. */
export type Place = 'anywhere' | 'memtable' | 'tables';

export interface Sink {
  take(key: Key, value: Uint8Array): void;
}

export interface BatchEntries {
  readonly keys: readonly Key[];
  readonly values: readonly Uint8Array[];
}

/** One call of a wave: a value makes it a set, `undefined` a get, `null` a delete. */
export interface PointCall {
  readonly key: Key;
  readonly value: Uint8Array | undefined | null;
}

export type StoreNumbers = Pick<
  StoreStats,
  'sharing' | 'writes' | 'memtable' | 'log' | 'flush' | 'levels' | 'compaction' | 'cache' | 'disk'
>;

type Kind = 'sync' | 'async';
type Given<K extends Kind, T> = K extends 'sync' ? T : Promise<T>;

/** The calls of a store. Writes of an `async` session resolve when the level of the row is reached. */
interface Calls<K extends Kind> {
  readonly kind: K;
  set(key: Key, value: Uint8Array): Given<K, unknown>;
  get(key: Key): Given<K, Uint8Array | undefined>;
  delete(key: Key): Given<K, unknown>;
  batch(entries: BatchEntries): Given<K, unknown>;
  /** Delivers `limit` entries (fewer at the end) from `from` on; from the first key when it is undefined. */
  range(from: Key | undefined, limit: number, sink: Sink): Given<K, void>;
  /** Deletes the keys from `from` up to `to`, without it, in one call. Of engines with `deleteRange`. */
  deleteRange?(from: Key, to: Key): Given<K, unknown>;
  /** Gets the values of the keys and sets all of them to new ones, as one; committed then. Of engines with `transaction`. */
  transact?(entries: BatchEntries): Given<K, readonly (Uint8Array | undefined)[]>;
  /**
   * Resolves when nothing goes on behind, with whether the newest `entries` writes are where the fixture wants them;
   * they are written once more if not. An engine without such places says true.
   */
  settle(where: Place, entries: number): Promise<boolean>;
  /** Numbers about the store, for the storage report; Varve's sessions have them. */
  report?(): Promise<StoreNumbers>;
  close(): Promise<void>;
}

export interface SyncSession extends Calls<'sync'> {
  /** Returns when all that was written has reached the level of the row. */
  commit(): void;
}

export interface AsyncSession extends Calls<'async'> {
  /** Many point calls at once, the best way the engine has. Resolves with their values (undefined for writes). */
  wave(calls: readonly PointCall[]): Promise<readonly (Uint8Array | undefined)[]>;
}

export type Session = SyncSession | AsyncSession;

export interface DiskUse {
  readonly files: number;
  readonly bytes: number;
}

export interface SessionOptions {
  readonly durability: Durability;
  readonly valueBytes: number;
  readonly memoryBytes?: number | undefined;
  readonly storage?: 'indexeddb' | 'memory' | undefined;
  /** Whether a page answers reads from its cache. Default: no, so that suites measure the engine. */
  readonly cache?: boolean | undefined;
}

export interface Engine {
  readonly name: string;
  readonly about: string;
  readonly role: Role;
  readonly accesses: readonly Access[];
  readonly abilities: readonly Ability[];
  readonly durabilities: readonly Durability[];
  /** Point calls that it joins into one group itself, in access `worker`; 1 when absent. */
  readonly grouped?: number;
  /** Its group is of calls that are under way together: where each is awaited, it is as its twin. */
  readonly groupsInFlight?: boolean;
  /** Differs from its twin in these calls alone, and runs only where there are any. */
  readonly only?: 'writes' | 'point writes' | 'opens';
  /** How often one process can open a store, where that has an end: a life of sessions is no longer. */
  readonly opensMax?: number;
  readonly fullOnly?: boolean;
  /** Not a store: what a get delivers is checked for its length only. */
  readonly echo?: boolean;
  /** Of the library, from its package.json when the bench was built. */
  readonly version?: string;
  readonly url?: string;
  /** The advice of its documentation that this file follows: one or two sentences with the page's address. */
  readonly recommended?: string;
  /** Opens the store `name`, new or as `close` left it. */
  open(name: string, options: SessionOptions): Promise<Session>;
  /** The size of the store `name` on disk, open or closed. Of engines whose files can be seen. */
  disk?(name: string): Promise<DiskUse>;
  remove(name: string): Promise<void>;
}

/** Calls made one after another, for an ability that an engine does not have: names the engine and the call. */
export function cannot(engine: string, ability: Ability): never {
  throw new Error(`The engine ${engine} has no ${ability}: the runner must not ask it for one.`);
}
