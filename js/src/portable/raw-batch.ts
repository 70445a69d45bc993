/**
 * A batch of raw keys and values, in the layout of protocol/batch-writer.ts.
 *
 * Invariant: what is added is written as it is; nobody has checked it here.
 */

import { ByteSink } from '../codec/sink.ts';
import { BatchKind, ItemFlag } from '../protocol/frame.ts';

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
    this.#head(BatchKind.set | (flags << 8), key, value.length + (expires?.length ?? 0));
    if (expires !== undefined) this.#sink.append(expires);
    this.#sink.append(value);
    this.#sink.pad4();
  }

  /** Adds a deletion. */
  delete(key: Uint8Array): void {
    this.#head(BatchKind.delete, key, 0);
    this.#sink.pad4();
  }

  /** All of it. */
  bytes(): Uint8Array {
    this.#sink.setU32(0, this.#count);
    return this.#sink.bytes.subarray(0, this.#sink.at);
  }

  #head(kind: number, key: Uint8Array, value_bytes: number): void {
    this.#sink.u32(kind);
    this.#sink.u32(key.length);
    this.#sink.u32(value_bytes);
    this.#sink.append(key);
    this.#count++;
  }
}
