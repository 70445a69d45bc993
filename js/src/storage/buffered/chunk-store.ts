/**
 * The needs of a `BufferedDevice` from an asynchronous storage: chunks by number, a journal, and commits that are all or nothing.
 *
 * Invariant: commits take effect in the order of the calls, each as a whole. After a `takeOver` by another holder, every
 * commit of the earlier holder fails and leaves no trace.
 */

import type { SlotError } from '../device.ts';

/** Names a chunk. */
export interface ChunkName {
  readonly slot: number;
  readonly index: number;
}

/** A chunk to store with exactly these bytes. */
export interface ChunkPut extends ChunkName {
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** One group of changes. */
export interface Commit {
  /** The journal's next row. */
  readonly row: Uint8Array<ArrayBuffer>;
  /** Chunks that are removed before any is put: all of `slot` from `index` on. */
  readonly drops: readonly ChunkName[];
  readonly puts: readonly ChunkPut[];
  /** The rows before this one are no longer needed. */
  readonly folds: boolean;
  /** Whether the commit survives a power cut once it resolves. Otherwise it survives at least a crash of the program. */
  readonly isStrict: boolean;
}

/**
 * Which commit needs room from a reserve: any commit; a commit of a store that is already full and takes only deletes and merges; a
 * small commit. Each kind may use the pieces of the kinds before it, and further ones of its own.
 */
export type Need = 'any' | 'full' | 'small';

/**
 * Room that is set aside in the storage, in pieces. Deletes, and the work that frees room, use it when the rest is used up.
 */
export interface ChunkReserve {
  /** How long after a commit the room of the data that it replaced or dropped may still become free, in milliseconds. */
  readonly patienceMs: number;
  /**
   * Whether a piece was given, in this session or an earlier one, and the reserve was not completed since. Known once the store was
   * taken over.
   */
  wasGiven(): boolean;
  /** Sets aside the missing pieces; resolves with whether the reserve is whole. It is not whole where there is no room. */
  complete(): Promise<boolean>;
  /** Returns a piece to the storage, which takes no room; resolves with false when no piece for such a commit is left. */
  give(need: Need): Promise<boolean>;
}

/** The bytes of a chunk; undefined if it does not exist; an error of kind `io` if the storage can read others, and not this one. */
export type FoundChunk = Uint8Array | SlotError | undefined;

/** Reads chunks that are needed soon after a takeover. */
export type ReadAhead = (read: (name: ChunkName) => Promise<FoundChunk>) => void;

/** An asynchronous storage of one store. Its errors are `SlotError`: `full`, `io`, or `closed` after a takeover. */
export interface ChunkStore {
  readonly kind: string;
  /** Most bytes of a row of the journal. */
  readonly rowBytesMax: number;
  /**
   * Makes the caller the only one whose commits count. Calls `wanted` with the rows of the journal, oldest first, and resolves with the
   * chunks that it names, as `read` does. Then it may call `ahead` with a function that reads a chunk as of the same point in time,
   * without making the caller wait.
   */
  takeOver(wanted: (rows: Uint8Array[]) => readonly ChunkName[], ahead?: ReadAhead): Promise<FoundChunk[]>;
  /** Reads chunks as of one point in time, in order. Rejects if the storage fails as a whole: that ends the store. */
  read(names: readonly ChunkName[]): Promise<FoundChunk[]>;
  commit(commit: Commit): Promise<void>;
  /**
   * The rows of the journal as the last commit left it, oldest first, read by the holder of the store. A storage that has this
   * method lets a store go on after a commit that was refused for lack of room. Without it that commit ends the store.
   */
  rows?(): Promise<Uint8Array[]>;
  /** The room for commits that the storage refused for lack of room. */
  readonly reserve?: ChunkReserve;
  close(): Promise<void>;
  /** Bytes that the storage still has room for; undefined where this is unknown. */
  freeBytes?(): Promise<number | undefined>;
}
