/**
 * Slots in the origin private file system, each a synchronous access handle that stays open as long as the store is open.
 *
 * Invariant: a slot is in one of three states: open here, released (another worker may have it), or closed for good.
 * Sizes are kept in memory, because asking for one costs Firefox as much as a read. After a write that fell short the size
 * is asked for again, because Firefox miscounts such writes.
 *
 * Closing a handle flushes nothing: only `flush` makes bytes durable.
 *
 * While a file is open, Chromium counts its greatest length since it was opened, rounded up to the next power of two and to at least
 * 1 MiB (its `FileSystemAccessCapacityTracker`). So once a file cannot grow, the files that were cut to their first page, and so are
 * empty, are closed and opened again. The two files for manifests, which stay short, are first made as long as a manifest.
 */

import { VarveError } from '../errors.ts';
import { type ManagedDevice, SLOT_DATA_OFFSET, SlotError } from './device.ts';
import { slotName } from './names.ts';
import { nameOf, OpfsUnavailable, openSlot, removeUnwritten, slotFiles, storeDirectory } from './opfs-directory.ts';
import { outrunTornNames } from './opfs-names.ts';
import { hasSyncHandles } from './opfs-realm.ts';

/** Slots of a new store: two manifests, a WAL segment and its reserve, and room for the first tables. */
const SLOTS_FIRST = 8;
/** Two of those, for manifests: as long as the engine expects a manifest to be (`MANIFEST_BYTES_HINT`), so that it chooses them. */
const MANIFEST_SLOTS = [SLOTS_FIRST - 2, SLOTS_FIRST - 1];
const MANIFEST_SLOT_BYTES = 64 << 10;
/** Safari allows 252 open handles for an origin; this leaves room for a second store. */
const SLOTS_MAX = 128;
/** How long to wait for handles, in milliseconds. A dead worker's are closed shortly after its lock is free; one that keeps them is stuck. */
export const HANDLES_WAIT_MS = 5000;

/** So long after a flush, the device looks whether its files are still there. */
const LOOK_MS = 1000;

/** How an `OpfsDevice` is opened. */
export interface OpfsDeviceOptions {
  /** Milliseconds to wait for handles that another worker is closing. */
  waitMs: number;
  /** Stops the waiting. */
  signal?: AbortSignal | undefined;
  /** The directory of the store, where it was found already. */
  directory?: FileSystemDirectoryHandle | undefined;
  /** Called once all handles are closed, if the opening succeeded. */
  onClosed?: (() => void | Promise<void>) | undefined;
}

/** A pool of slots in the directory of one store. */
export class OpfsDevice implements ManagedDevice {
  readonly kind = 'opfs';
  readonly lendable = true;
  readonly slotsMax = SLOTS_MAX;
  onLost: ManagedDevice['onLost'];
  readonly #directory: FileSystemDirectoryHandle;
  readonly #handles: (FileSystemSyncAccessHandle | undefined)[] = [];
  readonly #sizes: number[] = [];
  /** Slots that were cut since they were opened. */
  readonly #cut = new Set<number>();
  #givingBack: ReturnType<typeof setTimeout> | undefined;
  /** One options object for all reads and writes: allocating one per call shows in a profile. */
  readonly #at = { at: 0 };
  #growing: Promise<unknown> = Promise.resolve();
  /** Set once new names are safe to make. */
  #named: Promise<void> | undefined;
  #closed = false;
  #looking: ReturnType<typeof setTimeout> | undefined;
  #onClosed: OpfsDeviceOptions['onClosed'];

  private constructor(directory: FileSystemDirectoryHandle) {
    this.#directory = directory;
  }

  /**
   * Opens all slots of a store, creating the first eight of a new one.
   * @throws `OpfsUnavailable` where the browser has no synchronous handles; `VARVE_LOCKED` when another worker keeps one.
   */
  static async open(name: string, options: OpfsDeviceOptions): Promise<OpfsDevice> {
    if (!hasSyncHandles()) {
      throw new OpfsUnavailable(
        'DedicatedWorkerGlobalScope' in globalThis
          ? 'This browser has no synchronous file handles (FileSystemSyncAccessHandle).'
          : 'This context has no synchronous file handles: they exist in dedicated workers only.',
      );
    }
    let { directory } = options;
    let named: Promise<void> | undefined;
    try {
      directory ??= await storeDirectory(name, { create: false });
      if (directory === undefined) {
        named = outrunTornNames();
        await named;
        directory = await storeDirectory(name, { create: true });
      }
    } catch (error) {
      throw refusal(error);
    }
    if (directory === undefined) throw new OpfsUnavailable('The directory of the store could not be created.');
    const device = new OpfsDevice(directory);
    device.#named = named;
    try {
      await device.#openAll(options);
    } catch (error) {
      await device.closeAll();
      const reason = refusal(error);
      // Otherwise the next opening would take the remains for the store.
      if (reason instanceof OpfsUnavailable || isFull(error)) await removeUnwritten(name).catch(() => undefined);
      throw reason;
    }
    device.#onClosed = options.onClosed;
    return device;
  }

  count(): number {
    return this.#handles.length;
  }

  isOpen(slot: number): boolean {
    return this.#handles[slot] !== undefined;
  }

  size(slot: number): number {
    this.#handle(slot);
    return this.#sizes[slot] ?? 0;
  }

  read(slot: number, into: Uint8Array, at: number): number {
    const handle = this.#handle(slot);
    this.#at.at = at;
    try {
      return handle.read(into, this.#at);
    } catch (error) {
      throw slotError(error);
    }
  }

  write(slot: number, bytes: Uint8Array, at: number): number {
    const handle = this.#handle(slot);
    this.#at.at = at;
    let written: number;
    try {
      written = handle.write(bytes, this.#at);
    } catch (error) {
      this.#sizes[slot] = sizeOf(handle);
      this.#releaseSoon();
      throw slotError(error);
    }
    if (written !== bytes.length) {
      this.#sizes[slot] = sizeOf(handle);
      this.#releaseSoon();
    } else if (at + written > (this.#sizes[slot] ?? 0)) this.#sizes[slot] = at + written;
    return written;
  }

  flush(slot: number): void {
    try {
      this.#handle(slot).flush();
    } catch (error) {
      throw slotError(error);
    }
    this.#looking ??= setTimeout(() => this.#look(), LOOK_MS);
  }

  truncate(slot: number, bytes: number): void {
    const handle = this.#handle(slot);
    try {
      handle.truncate(bytes);
      this.#sizes[slot] = bytes;
      this.#cut.add(slot);
    } catch (error) {
      this.#sizes[slot] = sizeOf(handle);
      throw slotError(error);
    }
  }

  /** Creates slots one batch after another, so that two calls never create the same one. */
  grow(slots: number): Promise<number> {
    const grown = this.#growing.then(() => this.#grow(slots));
    this.#growing = grown.catch(() => undefined);
    return grown;
  }

  release(slot: number): void {
    this.#handles[slot]?.close();
    this.#handles[slot] = undefined;
  }

  async retake(slot: number): Promise<void> {
    if (this.#closed || this.#handles[slot] !== undefined) return;
    this.#keep(slot, await openSlot(this.#directory, slot, { create: false, waitMs: HANDLES_WAIT_MS }));
  }

  async freeBytes(): Promise<number | undefined> {
    const { quota, usage } = await navigator.storage.estimate();
    return quota === undefined || usage === undefined ? undefined : Math.max(0, quota - usage);
  }

  async closeAll(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#givingBack);
    clearTimeout(this.#looking);
    await this.#growing;
    for (let slot = 0; slot < this.#handles.length; slot++) this.release(slot);
    const onClosed = this.#onClosed;
    this.#onClosed = undefined;
    await onClosed?.();
  }

  async #openAll(options: OpfsDeviceOptions): Promise<void> {
    const files = await slotFiles(this.#directory);
    await this.#openRange(0, Math.max(files.length, SLOTS_FIRST), options, files);
    if (files.length > 0) return;
    for (const slot of MANIFEST_SLOTS) {
      this.truncate(slot, MANIFEST_SLOT_BYTES);
      this.release(slot);
    }
    await Promise.all(MANIFEST_SLOTS.map((slot) => this.retake(slot)));
  }

  async #grow(slots: number): Promise<number> {
    const first = this.#handles.length;
    const end = Math.min(SLOTS_MAX, first + slots);
    if (this.#closed || end <= first) return 0;
    try {
      await this.#openRange(first, end, { waitMs: 0 });
    } catch (error) {
      if (this.#handles.length === first) throw slotError(error);
    }
    return this.#handles.length - first;
  }

  /**
   * Looks whether the files still have their names. In Chromium, somebody who deletes the data of a site leaves its open files behind:
   * they take writes until they are closed, and nobody ever reads them again.
   */
  #look(): void {
    this.#looking = undefined;
    this.#directory.getFileHandle(slotName(0)).catch((cause: unknown) => {
      if (this.#closed || nameOf(cause) !== 'NotFoundError') return;
      const message =
        'The files of the store were deleted, perhaps with all data of the site. Reload the page, and open it again.';
      this.onLost?.(new VarveError('VARVE_POISONED', message, { cause }));
    });
  }

  #releaseSoon(): void {
    this.#givingBack ??= setTimeout(() => {
      this.#givingBack = undefined;
      const isEmpty = (slot: number): boolean => this.isOpen(slot) && this.size(slot) <= SLOT_DATA_OFFSET;
      const empty = [...this.#cut].filter(isEmpty);
      for (const slot of empty) this.release(slot);
      this.#growing = Promise.allSettled([this.#growing, ...empty.map((slot) => this.retake(slot))]);
    });
  }

  /** Opens slots in parallel. If one fails to open, keeps only the slots before it, and throws. */
  async #openRange(
    first: number,
    end: number,
    { waitMs, signal }: OpfsDeviceOptions,
    files: readonly (FileSystemFileHandle | undefined)[] = [],
  ): Promise<void> {
    const slots = Array.from({ length: end - first }, (_, index) => first + index);
    if (slots.some((slot) => files[slot] === undefined)) {
      this.#named ??= outrunTornNames();
      await this.#named;
    }
    const opening: Promise<FileSystemSyncAccessHandle>[] = [];
    for (const slot of slots) {
      opening.push(openSlot(this.#directory, slot, { create: true, waitMs, signal, file: files[slot] }));
    }
    const opened = await Promise.allSettled(opening);
    let failed: PromiseRejectedResult | undefined;
    opened.forEach((result, index) => {
      if (result.status === 'rejected') failed ??= result;
      else if (failed !== undefined || (this.#closed && first > 0)) result.value.close();
      else this.#keep(first + index, result.value);
    });
    if (failed !== undefined) throw failed.reason;
  }

  #keep(slot: number, handle: FileSystemSyncAccessHandle): void {
    if (this.#closed) {
      handle.close();
      return;
    }
    this.#handles[slot] = handle;
    this.#sizes[slot] = sizeOf(handle);
    this.#cut.delete(slot);
  }

  #handle(slot: number): FileSystemSyncAccessHandle {
    const handle = this.#handles[slot];
    if (handle === undefined) throw new SlotError('closed', `Slot ${slot} is not open here.`);
    return handle;
  }
}

/** The `SlotError` for a failed handle call. */
export function slotError(error: unknown): SlotError {
  if (error instanceof SlotError) return error;
  const name = nameOf(error);
  const message = error instanceof Error ? error.message : String(error);
  if (name === 'QuotaExceededError' || name === 'NS_ERROR_FILE_NO_DEVICE_SPACE') {
    return new SlotError('full', message, { cause: error });
  }
  return new SlotError(name === 'InvalidStateError' ? 'closed' : 'io', message, { cause: error });
}

function isFull(error: unknown): boolean {
  return slotError(error).kind === 'full';
}

function sizeOf(handle: FileSystemSyncAccessHandle): number {
  try {
    return handle.getSize();
  } catch (error) {
    throw slotError(error);
  }
}

/** Maps an error of opening: Varve's own errors stay, a full disk is reported, any other error means that there is no OPFS here. */
function refusal(error: unknown): unknown {
  const name = nameOf(error instanceof SlotError ? error.cause : error);
  if (error instanceof VarveError || error instanceof OpfsUnavailable || name === 'AbortError') return error;
  if (name === 'TimeoutError') return error;
  if (isFull(error)) {
    return new VarveError('VARVE_STORAGE_FULL', 'There is no room to create the store. Free space and open it again.', {
      cause: error,
    });
  }
  return new OpfsUnavailable(`The browser refused to open a file of the store (${name}).`, { cause: error });
}
