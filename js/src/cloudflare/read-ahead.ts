/**
 * Reads stored chunks. Where reads follow each other, it reads a little more than was asked for, because a statement costs more
 * than the bytes that it returns.
 *
 * Invariant: it never keeps bytes of a chunk that was written since (`drop`).
 */

import type { Chunk } from './chunk.ts';

/** Bytes that are read at once when a read continues the one before it. */
const WINDOW_BYTES = 64 * 1024;
/** Windows in memory: one for each of a few tables that a scan or a merge reads in turn. */
const WINDOWS_MAX = 8;

interface Window {
  /** Where the next read is expected. */
  next: number;
  start: number;
  bytes: Uint8Array;
}

/** The last reads of a few chunks. */
export class ReadAhead {
  readonly #windows = new Map<Chunk, Window>();

  /** Fills `into` from the bytes of a chunk. */
  read(chunk: Chunk, from: number, into: Uint8Array): void {
    if (chunk.bytesInMemory > 0) {
      chunk.read(from, into);
      return;
    }
    const window = this.#window(chunk);
    const isSequential = window.next === from;
    window.next = from + into.length;
    const start = from - window.start;
    if (start >= 0 && start + into.length <= window.bytes.length) {
      into.set(window.bytes.subarray(start, start + into.length));
    } else if (isSequential && into.length < WINDOW_BYTES) {
      window.start = from;
      window.bytes = new Uint8Array(Math.max(into.length, Math.min(WINDOW_BYTES, chunk.length - from)));
      chunk.read(from, window.bytes);
      into.set(window.bytes.subarray(0, into.length));
    } else {
      window.bytes = NOTHING;
      chunk.read(from, into);
    }
  }

  /** The chunk is being written. */
  drop(chunk: Chunk): void {
    this.#windows.delete(chunk);
  }

  #window(chunk: Chunk): Window {
    const known = this.#windows.get(chunk);
    const window = known ?? { next: -1, start: 0, bytes: NOTHING };
    // The window used last is at the end of the map, so the first one is removed.
    this.#windows.delete(chunk);
    this.#windows.set(chunk, window);
    for (const [oldest] of this.#windows) {
      if (this.#windows.size <= WINDOWS_MAX) break;
      this.#windows.delete(oldest);
    }
    return window;
  }
}

const NOTHING = new Uint8Array(0);
