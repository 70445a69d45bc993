/**
 * The needs of the engine from a storage: a pool of slots, each a file with a fixed number.
 *
 * Invariant: the synchronous half (`SlotDevice`) is all that the engine ever calls, so that a read, a write and a flush
 * finish inside the call. The asynchronous half (`ManagedDevice`) is the host's: it opens, closes and creates slots
 * between turns. A slot is open or closed; a closed one refuses every call with a `SlotError` of kind `closed`.
 */

import type { VarveError } from '../errors.ts';
import type { SpawnCompactor } from './compactor-port.ts';

/**
 * Why a slot call failed: no room, the storage failed, the slot is not open here, or the bytes of a read still have to be fetched. In
 * the last case the whole call is made again when they are in memory.
 */
export type SlotErrorKind = 'full' | 'io' | 'closed' | 'pending';

/** A failed slot call. The WebAssembly side gets its kind as a negative number. */
export class SlotError extends Error {
  override readonly name = 'SlotError';
  readonly kind: SlotErrorKind;

  constructor(kind: SlotErrorKind, message: string, options?: ErrorOptions) {
    super(message, options);
    this.kind = kind;
  }

  /** One of another copy of this class is a `SlotError`, too: the script of IndexedDB has its own. */
  static override [Symbol.hasInstance](value: unknown): boolean {
    return (value as Error | undefined)?.name === 'SlotError';
  }
}

/** Thrown where bytes have to be fetched first: always this one, because the trace of a new error takes long. */
export const missingBytes = /* @__PURE__ */ new SlotError('pending', 'These bytes have to be fetched first.');

/** The synchronous half: what the engine calls through `varve_host`. Offsets and sizes in bytes. */
export interface SlotDevice {
  /** How many slots there are, open or not. */
  count(): number;
  /** Whether the slot can be read and written here and now. */
  isOpen(slot: number): boolean;
  /** Bytes in the slot. */
  size(slot: number): number;
  /** Reads bytes from `at` on into `into`; returns how many there were. */
  read(slot: number, into: Uint8Array, at: number): number;
  /** Writes `bytes` at `at`; returns how many were written. Fewer than given means that there is no room. */
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
  /** The place of the slots, as a text for the worker. */
  readonly place: string;
}

/**
 * Holds back everything that a turn sends until everything that it wrote is durable, as the platform of a Durable Object does. A gate
 * also flushes its device: no timer is needed, and writes that would be relaxed elsewhere count as strict.
 */
export interface OutputGate {
  /** Called before a write is staged: nothing that the turn sends from here on leaves before the turn's writes are durable. */
  hold(): void;
  /** Called when a staged write that nobody waits for is lost: nothing that is held back may leave. */
  fail(cause: unknown): void;
}

/** A device with the asynchronous half that its host drives between turns. */
export interface ManagedDevice extends SlotDevice {
  /** The kind of storage that keeps the bytes. */
  readonly kind: string;
  /** Whether another worker can open a released slot. */
  readonly lendable: boolean;
  /** Makes the worker that flushes and compacts into lent slots, where it is not the worker for OPFS. */
  readonly compactor?: DeviceCompactor | undefined;
  /** Set where the platform holds back what a turn sends until its writes are durable. */
  readonly gate?: OutputGate | undefined;
  /**
   * Set by the host. The device calls it when it finds that it has lost the store and can write nothing any more. From then on every
   * call on the store is refused with `cause`.
   */
  onLost?: ((cause: VarveError) => void) | undefined;
  /** Most slots the device will ever have. */
  readonly slotsMax: number;
  /** Creates and opens up to `slots` more slots; resolves with how many were added. */
  grow(slots: number): Promise<number>;
  /** Closes a slot so that another worker can open it. */
  release(slot: number): void;
  /** Opens a released slot again; waits until the other worker has closed it. */
  retake(slot: number): Promise<void>;
  /** How many more bytes the storage accepts, by its own report; undefined where it does not report this. */
  freeBytes?(): Promise<number | undefined>;
  /** Closes every slot, and waits for slots that are being created. */
  closeAll(): Promise<void>;
}

/**
 * A device over an asynchronous storage. It accepts writes at once and commits them later. A read of bytes that are not in memory
 * throws a `SlotError` of kind `pending`, and the whole call is made again once the bytes are in memory.
 *
 * @experimental A minor version may change this interface.
 */
export interface DeferredDevice extends ManagedDevice {
  /** Whether so much waits to be committed that writers should wait for the commit. */
  readonly isPressed: boolean;
  /** Whether slots cannot become longer for lack of room. */
  readonly isTight: boolean;
  /** Waits for room that may become free, at most until a time of `performance.now()`; resolves with whether slots can become longer. */
  moreRoom(untilMs: number): Promise<boolean>;
  /**
   * Writes to a slot that nobody reads yet, in a commit of its own, after the writes so far. A write that finds no room leaves the
   * rest of the device as it was. It is refused with an error of kind `full`, and the contents of the slot are undefined.
   * `mayUseReserve`: for writes that soon free as much room.
   */
  writeApart(slot: number, bytes: Uint8Array, at: number, mayUseReserve: boolean): Promise<void>;
  /** Frees the room of the bytes that `writeApart` wrote to a slot. The length of the slot stays. */
  discard(slot: number): Promise<void>;
  /** Sets how many bytes may stay in memory only because they were read. The device asks again after each fetch. */
  allowSpare?(bytes: () => number): void;
  /** Called at the first commit that fails: nothing that was not committed by then is kept, and nothing is written any more. */
  onFailure: (error: SlotError) => void;
  /** Whether the device can go back after a commit that was refused for lack of room. */
  readonly canGoBack: boolean;
  /** Whether the writes of the recovery after going back are in no commit yet. The next write commits them; nothing waits for that. */
  readonly isQuiet: boolean;
  /** Goes back to the committed state, after a failure of kind `full`, and accepts writes again. Call `recover` next. */
  goBack(): Promise<void>;
  /** Resolves when all writes so far are committed. Until then nothing that may have seen them is acknowledged. */
  committed(): Promise<void>;
  /** Runs a call until everything that it reads is in memory. An attempt whose reads failed must have changed nothing. */
  resident<T>(call: () => T): Promise<T>;
  /** Runs a call once; undefined when it needs bytes that are not in memory. */
  attempt<T>(call: () => T): { readonly value: T } | undefined;
  /** Fetches the bytes that the last attempt lacked, and adds them to `held`: they stay in memory until `unpin`. */
  fetch(held: PinnedBytes[]): Promise<void>;
  unpin(held: readonly PinnedBytes[]): void;
  /**
   * As `resident`, for a call that writes before it has read everything: the writes of a failed attempt are undone. The writes of the
   * last attempt are committed. After `goBack` they get no commit of their own, because there may still be no room.
   */
  recover<T>(call: () => T): Promise<T>;
}

/** Bytes of a deferred device that stay in memory. */
export interface PinnedBytes {
  readonly slot: number;
  readonly index: number;
}

/** Runs a call on a slot; `slotError` makes the error to throw if it fails. */
export function withSlotErrors<T>(call: () => T, slotError: (error: unknown) => SlotError): T {
  try {
    return call();
  } catch (error) {
    throw slotError(error);
  }
}

/** Whether the writes of a device are committed later. */
export function isDeferred(device: ManagedDevice): device is DeferredDevice {
  return 'committed' in device;
}

/** The first page of a slot is its header. The bytes of its file begin at this offset. */
export const SLOT_DATA_OFFSET = 4096;
