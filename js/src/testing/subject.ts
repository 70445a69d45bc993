/**
 * The subject of the parts of the contract: the storage of one test, and the devices opened from it.
 *
 * Invariant: each test has a storage of its own. Everything that it left open is closed after it, also if it failed.
 */

import type { StorageAdapter } from '../storage/adapter.ts';
import { type DeferredDevice, isDeferred, type ManagedDevice } from '../storage/device.ts';
import type { WasmSource } from '../wasm/compile.ts';
import { ContractError, expectBytes } from './assert.ts';

/** Defines one test, like the `test` of vitest, `node:test` and `bun:test`, and like `Deno.test`. */
export type DefineTest = (name: string, run: () => Promise<void>) => unknown;

/** The storage to test, and the operations that the tests can use on it. */
export interface ContractOptions<S extends StorageAdapter = StorageAdapter> {
  /** Defines a test in the framework that runs it. */
  readonly test: DefineTest;
  /** Makes a storage without stores. Called once for each test. */
  create(): S | Promise<S>;
  /** Removes the storage that `create` made. */
  end?(storage: S): void | Promise<void>;
  /** The same stores as another user of them sees them, such as another worker or process. Default: the storage itself. */
  other?(storage: S): StorageAdapter | Promise<StorageAdapter>;
  /**
   * Simulates a power cut. Ends everything that has a store open, without a close, and removes any of the bytes that were written and
   * not flushed. With it, the tests of the surviving data are run.
   */
  losePower?(storage: S): void | Promise<void>;
  /** Limits the storage to this many more bytes; undefined: any number. With it, the tests of a full storage are run. */
  setRoom?(storage: S, bytes: number | undefined): void | Promise<void>;
  /**
   * True if its devices commit later: their writes are kept when `committed` resolves, and their reads may have to be fetched first.
   * The tests then wait for that, whole stores are used through `varve` alone, and the additional features of such a device are
   * tested.
   */
  readonly deferred?: boolean | undefined;
  /**
   * The offset at which the test of a large file writes; the storage may keep the gap before it as zeros. Default 16 MiB. Use
   * `2 ** 32` if that costs nothing.
   */
  readonly farBytes?: number | undefined;
  /** The location of the engine's wasm files, which the tests of whole stores load. Default: beside this module. */
  readonly wasm?: WasmSource | undefined;
  readonly tools?: WasmSource | undefined;
}

/** One part of the contract: a name and a test. */
export interface Clause {
  readonly name: string;
  run(subject: Subject): Promise<void>;
}

/** The storage of one test. */
export class Subject {
  readonly options: ContractOptions;
  readonly storage: StorageAdapter;
  readonly #devices: ManagedDevice[] = [];

  constructor(options: ContractOptions, storage: StorageAdapter) {
    this.options = options;
    this.storage = storage;
  }

  /** Opens a store, without waiting by default. */
  async open(name = 'store', storage = this.storage, lockTimeout = 0): Promise<ManagedDevice> {
    const device = await storage.open(name, { lockTimeout });
    this.#devices.push(device);
    return device;
  }

  /** Opens a store of a storage that commits later. */
  async openDeferred(name = 'store'): Promise<DeferredDevice> {
    const device = await this.open(name);
    if (!isDeferred(device)) throw new ContractError('The devices of this storage have no `committed`.');
    return device;
  }

  /** Closes a device, and opens its store again. */
  async reopen(device: ManagedDevice, name = 'store'): Promise<ManagedDevice> {
    await device.closeAll();
    return this.open(name);
  }

  /** The same stores as another user of them sees them. */
  async other(): Promise<StorageAdapter> {
    return (await this.options.other?.(this.storage)) ?? this.storage;
  }

  /** Waits until the device's calls have reached the storage, if the storage writes later. */
  async committed(device: ManagedDevice): Promise<void> {
    if (isDeferred(device)) await device.committed();
  }

  /** Returns the result of `call`. If the storage has to fetch the bytes first, it calls `call` again. */
  async read<T>(device: ManagedDevice, call: () => T): Promise<T> {
    return isDeferred(device) ? device.resident(call) : call();
  }

  /** Bytes of a slot from `at` on: at most `length`, fewer if the slot ends earlier. */
  async part(device: ManagedDevice, slot: number, at: number, length: number): Promise<Uint8Array> {
    const into = new Uint8Array(length);
    return into.subarray(0, await this.read(device, () => device.read(slot, into, at)));
  }

  /** All bytes of a slot. */
  contents(device: ManagedDevice, slot: number): Promise<Uint8Array> {
    return this.part(device, slot, 0, device.size(slot));
  }

  /** Throws unless a slot is like one of a new store: it may already have a length, but it contains only zeros. */
  async expectNew(device: ManagedDevice, slot: number): Promise<void> {
    const held = await this.contents(device, slot);
    expectBytes(held, new Uint8Array(held.length), `slot ${slot} of a new store`);
  }

  /** Simulates a power cut, and opens the store again. */
  async losePower(name = 'store'): Promise<ManagedDevice> {
    if (this.options.losePower === undefined) throw new ContractError('This storage cannot lose power.');
    await this.options.losePower(this.storage);
    this.#devices.length = 0;
    return this.open(name);
  }

  /** Limits the storage to this many more bytes; undefined: any number. */
  async setRoom(bytes: number | undefined): Promise<void> {
    if (this.options.setRoom === undefined) throw new ContractError('This storage cannot be full.');
    await this.options.setRoom(this.storage, bytes);
  }

  /** Closes all open devices. */
  async end(): Promise<void> {
    for (const device of this.#devices.splice(0)) await device.closeAll();
  }
}

/** Bytes that depend only on a seed, none of them 0. */
export function pattern(seed: number, length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  let state = (seed * 2654435761) >>> 0 || 1;
  for (let i = 0; i < length; i++) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    bytes[i] = (state >>> 24) | 1;
  }
  return bytes;
}

/** Writes all of `bytes`. */
export function put(device: ManagedDevice, slot: number, bytes: Uint8Array, at: number): void {
  const written = device.write(slot, bytes, at);
  if (written !== bytes.length) throw new ContractError(`write took ${written} of ${bytes.length} bytes, with room.`);
}
