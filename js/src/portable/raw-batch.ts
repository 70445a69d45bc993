/**
 * A batch of raw keys and values, in the layout of protocol/batch-writer.ts.
 *
 * Invariant: items are written as they are added; nothing is checked here.
 */

import { ByteSink } from '../codec/sink.ts';
import { BatchKind, ItemFlag } from '../protocol/frame.ts';
import { putU64 } from './block.ts';
import type { RawEntry } from './raw-store.ts';

/** Collects items. */
export class RawBatch {
  readonly #sink = new ByteSink(64 * 1024);
  #count = 0;

  constructor() {
    this.#sink.u32(0);
  }

  /** Adds a set; `expires` is a u64 of milliseconds since 1970. */
  set(key: Uint8Array, value: Uint8Array, expires?: Uint8Array): void {
    const flags = expires === undefined ? 0 : ItemFlag.expiresIn | ItemFlag.expiresAt;
    this.#item(BatchKind.set | (flags << 8), key, expires, value);
  }

  /** Adds a deletion. */
  delete(key: Uint8Array): void {
    this.#item(BatchKind.delete, key);
  }

  /** Makes the batch depend on the entry of a key: writes the same entry again, on the condition that nobody wrote it since. */
  expect(key: Uint8Array, entry: RawEntry | undefined): void {
    const sequence = new ByteSink(8);
    putU64(sequence, entry?.sequence ?? 0);
    const kind = entry === undefined ? BatchKind.delete : BatchKind.set;
    this.#item(kind | (ItemFlag.ifSequence << 8), key, sequence.copy(), entry?.value);
  }

  /** The bytes of the whole batch. */
  bytes(): Uint8Array {
    this.#sink.setU32(0, this.#count);
    return this.#sink.bytes.subarray(0, this.#sink.at);
  }

  /** Adds an item. Its value begins with the fields that its flags announce. */
  #item(kind: number, key: Uint8Array, before: Uint8Array = NOTHING, value: Uint8Array = NOTHING): void {
    const sink = this.#sink;
    sink.u32(kind);
    sink.u32(key.length);
    sink.u32(before.length + value.length);
    for (const part of [key, before, value]) sink.append(part);
    sink.pad4();
    this.#count++;
  }
}

const NOTHING = new Uint8Array(0);
