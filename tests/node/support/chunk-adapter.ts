/**
 * An adapter over chunks in memory: its stores commit later, and can crash.
 *
 * Invariant: no caller is locked out: a caller that opens a store takes it over.
 */

import type { StorageAdapter } from '../../../js/src/storage/adapter.ts';
import { BufferedDevice } from '../../../js/src/storage/buffered/device.ts';
import type { DeferredDevice } from '../../../js/src/storage/device.ts';
import { ChunkState, FakeChunks } from './fake-chunks.ts';

/** Stores of one test. */
export class ChunkAdapter implements StorageAdapter {
  readonly kind = 'fake';
  readonly states = new Map<string, ChunkState>();
  /** The chunks of the last opening. */
  chunks = new FakeChunks();

  async open(name: string): Promise<DeferredDevice> {
    const state = this.states.get(name) ?? new ChunkState();
    this.states.set(name, state);
    this.chunks = new FakeChunks(state);
    return BufferedDevice.open(this.chunks);
  }

  /** Lets the existing stores take this many more bytes each; undefined: any number. */
  setRoom(bytes: number | undefined): void {
    for (const state of this.states.values()) state.room = bytes;
  }

  async list(): Promise<string[]> {
    return [...this.states.keys()];
  }

  async delete(name: string): Promise<boolean> {
    return this.states.delete(name);
  }
}
