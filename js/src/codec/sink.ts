/**
 * A growing buffer into which keys, values and frames are written.
 *
 * Invariant: `at` is the end of the written bytes; a writer calls `reserve` before it writes and reads `bytes` again
 * afterwards, because growing replaces it.
 */

import { VarveError } from '../errors.ts';

/** More than may be stored at once: so a value or batch that is too long gets its own error before memory is exhausted. */
const SINK_BYTES_MAX = 2 ** 29;

/** A Blob that has room, from `at` on: see blobs.ts. */
interface UnreadBlob {
  readonly at: number;
  readonly blob: Blob;
}

/** Returns a larger buffer that begins with the first `used` bytes of the old one. */
type Grow = (bytesMin: number, used: number, old: Uint8Array) => Uint8Array;

const doubled: Grow = (bytesMin, used, old) => {
  if (bytesMin > SINK_BYTES_MAX) {
    throw new VarveError(
      'VARVE_INVALID_VALUE',
      'A value takes at most 128 MiB, a batch 256 MiB; this is longer. Split it.',
    );
  }
  const bytes = new Uint8Array(Math.max(bytesMin, old.length * 2));
  bytes.set(used === old.length ? old : old.subarray(0, used));
  return bytes;
};

/** Bytes with an end that moves forward. */
export class ByteSink {
  bytes: Uint8Array;
  at = 0;
  /** The Blobs whose bytes are still to be read into their room. Undefined if values with Blobs are refused here. */
  blobs: UnreadBlob[] | undefined;
  readonly #grow: Grow;

  /** A sink over `bytes`, or over a new buffer of that length; `grow` makes a larger buffer, by default one twice as long. */
  constructor(bytes: Uint8Array | number = 256, grow: Grow = doubled) {
    this.bytes = typeof bytes === 'number' ? new Uint8Array(bytes) : bytes;
    this.#grow = grow;
  }

  /** Makes room for `count` more bytes. */
  reserve(count: number): void {
    if (this.at + count > this.bytes.length) this.bytes = this.#grow(this.at + count, this.at, this.bytes);
  }

  /** Drops what was written from `start`. */
  rewind(start: number): void {
    this.at = start;
    if (this.blobs !== undefined && this.blobs.length > 0) this.blobs = this.blobs.filter(({ at }) => at < start);
  }

  /** Appends one byte. */
  byte(value: number): void {
    this.reserve(1);
    this.bytes[this.at++] = value;
  }

  /** Appends a little-endian u32. */
  u32(value: number): void {
    this.reserve(4);
    this.setU32(this.at, value);
    this.at += 4;
  }

  /** Overwrites four bytes with a little-endian u32. */
  setU32(at: number, value: number): void {
    const bytes = this.bytes;
    bytes[at] = value;
    bytes[at + 1] = value >>> 8;
    bytes[at + 2] = value >>> 16;
    bytes[at + 3] = value >>> 24;
  }

  /** Leaves room for the bytes of a Blob, and notes it. */
  blob(blob: Blob, size: number): void {
    this.reserve(size);
    this.blobs?.push({ at: this.at, blob });
    this.at += size;
  }

  /** Appends bytes. */
  append(bytes: Uint8Array): void {
    this.reserve(bytes.length);
    this.bytes.set(bytes, this.at);
    this.at += bytes.length;
  }

  /** Appends zeros up to a multiple of four from `origin`. */
  pad4(origin = 0): void {
    const end = this.at + (-(this.at - origin) & 3);
    this.reserve(3);
    while (this.at < end) this.bytes[this.at++] = 0;
  }

  /** A copy of the bytes written from `start`. */
  copy(start = 0): Uint8Array {
    return this.bytes.slice(start, this.at);
  }
}

/** Lets a sink take values with Blobs: its owner promises to read them. */
export function takingBlobs(sink: ByteSink): ByteSink {
  sink.blobs = [];
  return sink;
}
