/**
 * What a store in files must do to stand in the comparison on Node.
 *
 * Invariant: a call has done its work at the store's durability when it returns, or when the promise that it returns resolves;
 * synchronous engines return no promise, and nobody waits a turn for them.
 */

import type { StoreNumbers } from '../../core/engine.ts';

/** What a call gives at once or later. */
export type Eventual<T> = T | Promise<T>;
/** A key and its value. */
export type Pair = readonly [key: string, value: Uint8Array];

/** `relaxed`: a write has been handed to the operating system. `strict`: it has been flushed to the disk. */
export type Level = 'relaxed' | 'strict';

/** An open store. */
export interface FileStore {
  set(key: string, value: Uint8Array): Eventual<void>;
  get(key: string): Eventual<Uint8Array | undefined>;
  delete(key: string): Eventual<void>;
  /** All or none. */
  batch(pairs: readonly Pair[]): Eventual<void>;
  /** The first `limit` entries from a key on. */
  range(gte: string, limit: number): Eventual<readonly Pair[]>;
  /** Deletes the keys from `gte` up to `lt`, without it, in one call. */
  deleteRange(gte: string, lt: string): Eventual<void>;
  /** Numbers about the store; Varve's stores have them. */
  report?(): Eventual<StoreNumbers | undefined>;
  /** Everything, in the order of keys. */
  all(): Iterable<Pair> | AsyncIterable<Pair>;
  /** Brings what was loaded into the form in which it is read best, as the engine's documentation has it. */
  settle(): Promise<void>;
  close(): Promise<void>;
}

/** An engine. */
export interface FileEngine {
  readonly name: string;
  /** What is run, with versions. */
  readonly version: string;
  /** How a write is made at each level, in words. */
  readonly writes: Readonly<Record<Level, string>>;
  /** How often one process can open a store, where that has an end: a life of sessions is no longer. */
  readonly opensMax?: number;
  /** Opens the store in a folder of its own, or makes it. */
  open(directory: string, level: Level): Promise<FileStore>;
}
