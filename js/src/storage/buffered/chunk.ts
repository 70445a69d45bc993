/**
 * How the bytes of a slot are cut into chunks, and one chunk in memory.
 *
 *     slot   [ header page | 64 KiB | 64 KiB | ... ]
 *     chunk        0            1        2
 *
 * The header page is a chunk of its own, because opening a store reads the first page of every slot. Tables and logs begin behind it
 * and fill whole chunks.
 *
 * Invariant: bytes of a chunk behind the end of its slot are zeros.
 */

import { SLOT_DATA_OFFSET, SlotError } from '../device.ts';
import type { FoundChunk } from './chunk-store.ts';
import { Spans } from './spans.ts';

/** Bytes of every chunk but the first of a slot. Deno KV takes no longer value, and Chromium stores one this long in its own file. */
export const CHUNK_BYTES = 64 * 1024;

/** Which chunk the byte at an offset of a slot is in. */
export function chunkAt(offset: number): number {
  return offset < SLOT_DATA_OFFSET ? 0 : 1 + Math.floor((offset - SLOT_DATA_OFFSET) / CHUNK_BYTES);
}

/** Where a chunk begins in its slot. */
export function chunkStart(index: number): number {
  return index === 0 ? 0 : SLOT_DATA_OFFSET + (index - 1) * CHUNK_BYTES;
}

/** How long a chunk is. */
export function chunkBytes(index: number): number {
  return index === 0 ? SLOT_DATA_OFFSET : CHUNK_BYTES;
}

/** The bytes of a chunk without the zeros at their end. */
export function trimmed(bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  let end = bytes.length;
  while (end > 0 && bytes[end - 1] === 0) end--;
  return bytes.subarray(0, end);
}

/** A chunk in memory. */
export class Chunk {
  readonly slot: number;
  readonly index: number;
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Which of its bytes are known; undefined when all are. */
  known: Spans | undefined;
  /** Which bytes were written and are in no commit yet. */
  readonly dirty = new Spans();
  /** The store's copy of it is older than the journal. */
  isJournaled = false;
  /** Why the store's bytes could not be read; set until nobody needs the chunk, and so until the next read of it. */
  failure: SlotError | undefined;
  /** How many commits under way and readers need it in memory. */
  holders = 0;
  /** Whether it was read since the last eviction pass. */
  isUsed = true;

  /** A chunk of zeros, or one of which nothing is known. */
  constructor(slot: number, index: number, isKnown: boolean) {
    this.slot = slot;
    this.index = index;
    this.bytes = new Uint8Array(chunkBytes(index));
    this.known = isKnown ? undefined : new Spans();
  }

  /** Whether `[from, to)` can be read. */
  knows(from: number, to: number): boolean {
    return this.known === undefined || this.known.cover(from, to);
  }

  /** Puts bytes in, which are known from then on. */
  fill(bytes: Uint8Array, from: number): void {
    this.bytes.set(bytes, from);
    this.#learn(from, from + bytes.length);
  }

  /** Puts zeros in. */
  clear(from: number, to: number): void {
    this.bytes.fill(0, from, to);
    this.#learn(from, to);
  }

  /** Fills in the store's bytes (`base`) wherever bytes are not known yet. */
  complete(base: FoundChunk): void {
    const { known } = this;
    if (known === undefined) return;
    if (base instanceof SlotError) {
      this.failure = base;
      return;
    }
    const mine: [number, Uint8Array][] = [];
    known.each((from, to) => mine.push([from, this.bytes.slice(from, to)]));
    // A chunk without any known bytes is all zeros already.
    if (mine.length > 0) this.bytes.fill(0);
    if (base !== undefined) this.bytes.set(base.subarray(0, this.bytes.length));
    for (const [from, bytes] of mine) this.bytes.set(bytes, from);
    this.known = undefined;
  }

  /** Whether it can be dropped from memory: the store has the same bytes, and nobody needs it. */
  get isSpare(): boolean {
    return this.holders === 0 && !this.isJournaled && this.dirty.bytes === 0;
  }

  #learn(from: number, to: number): void {
    if (this.known === undefined) return;
    this.known.add(from, to);
    if (this.known.cover(0, this.bytes.length)) this.known = undefined;
  }
}
