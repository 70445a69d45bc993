/**
 * Slots in files of a directory, each a file descriptor that stays open as long as the store is open.
 *
 *     <directory>/<store name, escaped>/slot-0000, slot-0001, ...
 *
 * Invariant: a slot's name is durable before the slot can be used, so that its bytes need only a flush of the file. An earlier process may
 * have been killed before the names that it made were durable, so they are made durable whenever the store is opened.
 * Sizes are kept in memory, because asking costs as much as a read; after a call that failed or fell short the size is asked
 * for again. A write is passed to the operating system before it returns: it survives the death of the process.
 *
 * Invariant: when a flush returned, the directory was still the claim's. Once it is not, the device no longer writes, makes or opens
 * anything, and it tells the host, so that the store ends. The files that it has open can be read.
 */

import { fstatSync, statfsSync } from 'node:fs';
import { dirname } from 'node:path';
import { VarveError } from '../../errors.ts';
import { type DeviceCompactor, type ManagedDevice, SlotError } from '../device.ts';
import { slotNumber } from '../names.ts';
import { type FileCalls, NODE_CALLS, namesIn, openDirectory, syncEntries, syncParent } from './calls.ts';
import type { Claim } from './claim.ts';
import { hasFileCompactor, spawnFileCompactor, toText } from './compactor.ts';
import { errnoOf, isTooMany, slotError } from './errno.ts';
import { isClaimed, lostPlace, openSlot, type Place } from './place.ts';
import { pulseOf } from './pulse.ts';
import { writeAll } from './slot-file.ts';

/** Slots of a new store: two manifests, a WAL segment and its reserve, and room for the first tables. */
const SLOTS_FIRST = 8;

/** How a `FileDevice` is opened. */
interface FileDeviceOptions {
  readonly calls: FileCalls;
  readonly slotsMax: number;
}

/** A pool of slots in the directory of one store. */
export class FileDevice implements ManagedDevice {
  readonly kind = 'files';
  readonly compactor: DeviceCompactor | undefined;
  readonly slotsMax: number;
  /** Set by the host. */
  onLost: (cause: VarveError) => void = () => undefined;
  readonly #place: Place;
  readonly #pulse: () => void;
  readonly #directory: string;
  /** The directory. It stays open, so that entries can be synced even when no more files may be opened. */
  #entries: number | undefined;
  readonly #calls: FileCalls;
  readonly #claim: Claim;
  readonly #files: (number | undefined)[] = [];
  readonly #sizes: number[] = [];
  #closed = false;
  /** Why nothing is written any more. */
  #lost: VarveError | undefined;

  get lendable(): boolean {
    return this.compactor !== undefined;
  }

  /**
   * Opens all slots of a store, creating the first eight of a new one. The claim is released once all files are closed.
   * @throws the error of a file call; nothing is left open then, but the claim was not released.
   */
  constructor(claim: Claim, { calls, slotsMax }: FileDeviceOptions) {
    const { place } = claim;
    this.#claim = claim;
    claim.onLost = (cause) => void this.#refused(cause);
    this.#place = place;
    this.#pulse = pulseOf(place);
    const directory = dirname(place.claim);
    this.#directory = directory;
    this.#calls = calls;
    // A worker knows only the file calls of the runtime.
    const isReal = calls === NODE_CALLS && hasFileCompactor();
    this.compactor = isReal ? { spawn: spawnFileCompactor, place: toText(place) } : undefined;
    let count = 0;
    for (const name of namesIn(directory)) count = Math.max(count, (slotNumber(name) ?? -1) + 1);
    this.slotsMax = Math.max(slotsMax, count);
    try {
      this.#entries = openDirectory(calls, directory);
      syncParent(calls, directory);
      // All of them: with one or two files, the first writes would be refused as if the disk were full.
      while (this.#files.length < Math.max(count, SLOTS_FIRST)) this.#open();
      syncEntries(calls, this.#entries);
    } catch (error) {
      this.#closeFiles();
      throw error;
    }
  }

  count(): number {
    return this.#files.length;
  }

  isOpen(slot: number): boolean {
    return this.#files[slot] !== undefined;
  }

  size(slot: number): number {
    this.#file(slot);
    return this.#sizes[slot] ?? 0;
  }

  read(slot: number, into: Uint8Array, at: number): number {
    const file = this.#file(slot);
    try {
      let read = this.#calls.readSync(file, into, 0, into.length, at);
      // A read may stop before the end of the file; only 0 means that the file ends there.
      const end = Math.min(into.length, (this.#sizes[slot] ?? 0) - at);
      while (read < end) {
        const more = this.#calls.readSync(file, into, read, into.length - read, at + read);
        if (more === 0) break;
        read += more;
      }
      return read;
    } catch (error) {
      throw slotError(error);
    }
  }

  write(slot: number, bytes: Uint8Array, at: number): number {
    const file = this.#writable(slot);
    let written: number;
    try {
      written = writeAll(this.#calls, file, bytes, at);
    } catch (error) {
      this.#sizes[slot] = sizeOf(file);
      throw slotError(error);
    }
    if (at + written > (this.#sizes[slot] ?? 0)) this.#sizes[slot] = at + written;
    return written;
  }

  flush(slot: number): void {
    const file = this.#writable(slot);
    try {
      // Syncs the data, and the part of the inode that reading the data back needs: the size.
      this.#calls.fdatasyncSync(file);
      // The slot itself is not checked. On Linux from 6.13 a file whose times were read writes them with its next flush, so a strict
      // write would take half as long again.
      if (!isClaimed(this.#place)) throw lostPlace(this.#place);
    } catch (error) {
      throw this.#refused(error);
    }
  }

  truncate(slot: number, bytes: number): void {
    const file = this.#writable(slot);
    try {
      this.#calls.ftruncateSync(file, bytes);
      this.#sizes[slot] = bytes;
    } catch (error) {
      this.#sizes[slot] = sizeOf(file);
      throw slotError(error);
    }
  }

  async grow(slots: number): Promise<number> {
    if (this.#closed) return 0;
    try {
      return this.#add(slots);
    } catch (error) {
      throw this.#refused(error);
    }
  }

  release(slot: number): void {
    const file = this.#files[slot];
    this.#files[slot] = undefined;
    if (file !== undefined) this.#calls.closeSync(file);
  }

  async retake(slot: number): Promise<void> {
    if (this.#closed || this.#files[slot] !== undefined) return;
    if (slot >= this.#files.length) throw new SlotError('closed', `There is no slot ${slot}.`);
    try {
      this.#take(slot, false);
    } catch (error) {
      throw this.#refused(error);
    }
  }

  async freeBytes(): Promise<number | undefined> {
    try {
      const { bavail, bsize } = statfsSync(this.#directory);
      return bavail * bsize;
    } catch {
      // Deno allows it with --allow-sys=statfs only.
      return undefined;
    }
  }

  async closeAll(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    try {
      this.#closeFiles();
    } finally {
      this.#claim.release();
    }
  }

  #closeFiles(): void {
    for (let slot = 0; slot < this.#files.length; slot++) this.release(slot);
    if (this.#entries !== undefined) this.#calls.closeSync(this.#entries);
    this.#entries = undefined;
  }

  /** Creates slots, and makes their names durable before anybody can use them. Creates fewer where no more files may be open. */
  #add(slots: number): number {
    const first = this.#files.length;
    const end = Math.min(this.slotsMax, first + slots);
    if (end <= first) return 0;
    try {
      while (this.#files.length < end) this.#open();
      syncEntries(this.#calls, this.#entries);
    } catch (error) {
      const made = isTooMany(error) ? this.#files.length : first;
      while (this.#files.length > made) {
        this.release(this.#files.length - 1);
        this.#files.pop();
      }
      if (!isTooMany(error)) throw error;
      if (made > first) syncEntries(this.#calls, this.#entries);
    }
    return this.#files.length - first;
  }

  #open(): void {
    this.#take(this.#files.length, true);
  }

  #take(slot: number, create: boolean): void {
    const file = openSlot(this.#calls, this.#place, slot, create);
    this.#files[slot] = file;
    this.#sizes[slot] = fstatSync(file).size;
  }

  #file(slot: number): number {
    const file = this.#files[slot];
    if (file === undefined) throw new SlotError('closed', `Slot ${slot} is not open here.`);
    return file;
  }

  #writable(slot: number): number {
    if (this.#lost !== undefined) throw slotError(this.#lost);
    const file = this.#file(slot);
    try {
      this.#pulse();
    } catch (error) {
      throw this.#refused(error);
    }
    return file;
  }

  /** The `SlotError` for what failed. The first time that the directory was found gone, it also tells the host. */
  #refused(error: unknown): SlotError {
    if (this.#lost === undefined && error instanceof VarveError && error.code === 'VARVE_POISONED') {
      this.#lost = error;
      this.onLost(error);
    }
    return slotError(error);
  }
}

function sizeOf(file: number): number {
  try {
    return fstatSync(file).size;
  } catch (error) {
    if (errnoOf(error) === 'EBADF') return 0;
    throw slotError(error);
  }
}
