/**
 * What the engine asks of a storage: a pool of slots, each a file with a fixed number.
 *
 * Invariant: the synchronous half (`SlotDevice`) is all that the engine ever calls, so that a read, a write and a flush
 * finish inside the call. The asynchronous half (`ManagedDevice`) is the host's: it opens, closes and creates slots
 * between turns. A slot is open or closed; a closed one refuses every call with a `SlotError` of kind `closed`.
 */

import type { VarveError } from '../errors.ts';
import type { SpawnCompactor } from '../worker/compactor-link.ts';

/**
 * Why a slot call failed: no room, the storage failed, the slot is not open here, or (a read) the bytes have yet to be
 * fetched: the whole call is made again when they are here.
 */
export type SlotErrorKind = 'full' | 'io' | 'closed' | 'pending';

/** A slot call that could not be done. The WebAssembly side sees its kind as a negative number. */
export class SlotError extends Error {
  readonly kind: SlotErrorKind;

  constructor(kind: SlotErrorKind, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'SlotError';
    this.kind = kind;
  }
}

/** The synchronous half: what the engine calls through `varve_host`. Offsets and sizes in bytes. */
export interface SlotDevice {
  /** How many slots there are, open or not. */
  count(): number;
  /** Whether the slot can be read and written here and now. */
  isOpen(slot: number): boolean;
  /** Bytes in the slot. */
  size(slot: number): number;
  /** Fills `into` from `at`; returns how many bytes there were. */
  read(slot: number, into: Uint8Array, at: number): number;
  /** Writes `bytes` at `at`; returns how many landed. Fewer than asked means that there is no room. */
  write(slot: number, bytes: Uint8Array, at: number): number;
  /** Returns once everything written to the slot would survive a power cut. */
  flush(slot: number): void;
  /** Cuts or extends the slot to `bytes`. */
  truncate(slot: number, bytes: number): void;
}

/** A compactor that knows the slots of a device. */
export interface DeviceCompactor {
  /** Starts the worker. */
  readonly spawn: SpawnCompactor;
  /** What the worker is told of where the slots are. */
  readonly place: string;
}

/**
 * What holds back all that a turn sends until everything it wrote is durable, as the platform of a Durable Object does. A device
 * that has one is flushed by it: no timer has to, and a write counts as strict where elsewhere it would be relaxed.
 */
export interface OutputGate {
  /** A write is about to be staged: nothing that the turn sends from here on leaves before what the turn writes is durable. */
  hold(): void;
  /** A staged write that nobody waits for is lost: nothing that is held back may leave. */
  fail(cause: unknown): void;
}

/** A device with the asynchronous half that its host drives between turns. */
export interface ManagedDevice extends SlotDevice {
  /** What keeps the bytes. */
  readonly kind: string;
  /** Whether another worker can open a released slot. */
  readonly lendable: boolean;
  /** Makes the worker that flushes and compacts into lent slots, where it is not the one of OPFS. */
  readonly compactor?: DeviceCompactor | undefined;
  /** Set where the platform holds back what is sent until it is durable. */
  readonly gate?: OutputGate | undefined;
  /**
   * Set by the host. To be called once the device finds that the store was taken away from it and it writes nothing any more: all
   * who use the store are refused with `cause` from then on.
   */
  onLost?: ((cause: VarveError) => void) | undefined;
  /** Most slots the device will ever have. */
  readonly slotsMax: number;
  /** Creates and opens up to `slots` more slots; resolves with how many were added. */
  grow(slots: number): Promise<number>;
  /** Closes a slot so that another worker can open it. */
  release(slot: number): void;
  /** Opens a released slot again, waiting for the other worker to let go of it. */
  retake(slot: number): Promise<void>;
  /** How many more bytes the storage takes, as far as it says; undefined where it does not. */
  freeBytes?(): Promise<number | undefined>;
  /** Closes every slot, and waits for slots that are being created. */
  closeAll(): Promise<void>;
}

/**
 * A device over an asynchronous storage. Its writes are taken at once and committed later; a read of what is not in memory
 * throws a `SlotError` of kind `pending`, and the whole call is made again once the bytes are here.
 */
export interface SettlingDevice extends ManagedDevice {
  /** Whether so much waits to be committed that writers should wait for it. */
  readonly isPressed: boolean;
  /** Whether slots cannot become longer for want of room. */
  readonly isTight: boolean;
  /** Waits for room that may come back, until a moment of `performance` at most; resolves with whether slots can become longer. */
  moreRoom(untilMs: number): Promise<boolean>;
  /**
   * Writes to a slot that nobody reads yet, in commits of their own, behind the writes so far. One that finds no room leaves the rest of
   * the device as it was: it is refused by an error of kind `full`, and what the slot holds is undefined. `mayUseReserve`: for what
   * lets go of as much room soon.
   */
  writeApart(slot: number, bytes: Uint8Array, at: number, mayUseReserve: boolean): Promise<void>;
  /** Gives back the room of what was written apart to a slot, whose length stays. */
  discard(slot: number): Promise<void>;
  /** Tells how many bytes may stay in memory only because they were read: a share of the store's memory. */
  allowSpare?(bytes: number): void;
  /** Called at the first commit that fails: nothing that was not settled by then is kept, and nothing is written any more. */
  onFailure: (error: SlotError) => void;
  /** Whether a commit that was refused for want of room can be taken back. */
  readonly canGoBack: boolean;
  /** What was recovered after going back is in no commit yet: it is in that of the next write, and nothing waits for it. */
  readonly isQuiet: boolean;
  /** Goes back to what is settled, after a failure of kind `full`, and takes writes again. To be followed by `recover`. */
  goBack(): Promise<void>;
  /** Resolves when all that was written so far is committed: until then nothing that may have seen it is acknowledged. */
  settle(): Promise<void>;
  /** Runs a call until all that it reads is here. An attempt whose reads failed must have changed nothing. */
  resident<T>(call: () => T): Promise<T>;
  /** Runs a call once; undefined when it came upon bytes that are not here. */
  attempt<T>(call: () => T): { readonly value: T } | undefined;
  /** Fetches what the last attempt was missing; what is fetched stays while `held` has it. */
  fetch(held: HeldBytes[]): Promise<void>;
  letGo(held: readonly HeldBytes[]): void;
  /**
   * As `resident`, for a call that writes before it has read everything: what an attempt wrote is taken back. What the last one
   * wrote is committed; after `goBack` it is not for its own sake, since there may still be no room.
   */
  recover<T>(call: () => T): Promise<T>;
}

/** Bytes of a settling device that stay in memory. */
export interface HeldBytes {
  readonly slot: number;
  readonly index: number;
}

/** Whether the writes of a device settle later. */
export function isSettling(device: ManagedDevice): device is SettlingDevice {
  return 'settle' in device;
}

/** The first page of a slot is its header; the bytes of its file begin here. */
export const SLOT_DATA_OFFSET = 4096;
