/**
 * What a `BufferedDevice` asks of an asynchronous storage: chunks by number, a journal, and commits that are all or nothing.
 *
 * Invariant: commits take effect in the order of the calls, each as a whole. After a `takeOver` by somebody else, every
 * commit of the earlier holder fails and leaves no trace.
 */

/** Names a chunk. */
export interface ChunkName {
  readonly slot: number;
  readonly index: number;
}

/** A chunk to be kept as it is here. */
export interface ChunkPut extends ChunkName {
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** One group of changes. */
export interface Commit {
  /** The journal's next row. */
  readonly row: Uint8Array<ArrayBuffer>;
  /** Chunks that go before any is put: all of `slot` from `index` on. */
  readonly drops: readonly ChunkName[];
  readonly puts: readonly ChunkPut[];
  /** The rows before this one are needed no more. */
  readonly folds: boolean;
  /** Survives a power cut when it resolves; else a crash of the program at least. */
  readonly isStrict: boolean;
}

/**
 * Who needs room from a reserve: any commit; one of a store that is full already and has only deletes and merges; a small one.
 * Each may have what those before it may, and a piece of its own.
 */
export type Need = 'any' | 'full' | 'small';

/**
 * Room that is set aside in the storage, in pieces: for deletes, and for what makes room, when the rest is used up.
 */
export interface ChunkReserve {
  /** So long after a commit the room of what it replaced or dropped may come back, in milliseconds. */
  readonly patienceMs: number;
  /** Whether a piece was given, in this session or an earlier one, and the reserve not completed since; known once the store was taken over. */
  wasGiven(): boolean;
  /** Sets aside what is missing of it; resolves with whether it is whole, which it is not where there is no room. */
  complete(): Promise<boolean>;
  /** Gives a piece back to the storage, which takes no room; resolves with false when none is left of what there is for such a commit. */
  give(need: Need): Promise<boolean>;
}

/** An asynchronous storage of one store. Its errors are `SlotError`: `full`, `io`, or `closed` once somebody took it over. */
export interface ChunkStore {
  readonly kind: string;
  /** Most bytes of a journal's row. */
  readonly rowBytesMax: number;
  /** Makes the caller the only one whose commits count; resolves with the rows of the journal, oldest first. */
  takeOver(): Promise<Uint8Array[]>;
  /** Reads chunks at one moment, in order; undefined for one that is not there. */
  read(names: readonly ChunkName[]): Promise<(Uint8Array | undefined)[]>;
  commit(commit: Commit): Promise<void>;
  /**
   * The rows of the journal as the last commit left it, oldest first, read by who holds the store. With it a store goes on after
   * a commit that was refused for want of room; without it that commit ends the store.
   */
  rows?(): Promise<Uint8Array[]>;
  /** What commits may use that the storage refused for want of room. */
  readonly reserve?: ChunkReserve;
  close(): Promise<void>;
  /** Bytes that the storage still has room for; undefined where nobody knows. */
  freeBytes?(): Promise<number | undefined>;
}
