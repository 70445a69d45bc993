/**
 * Reads the chunks of a stream as pieces of any wanted length.
 *
 * Invariant: memory contains no more than the bytes that were asked for and one chunk. An abort ends the wait for a stream or a chunk
 * that does not come.
 */

import { joined } from '../codec/joined.ts';
import { VarveError } from '../errors.ts';
import type { ExportedBytes } from './types.ts';

interface Chunks {
  next(): Promise<{ readonly done?: boolean | undefined; readonly value?: unknown }>;
  /** Closes the stream, also while `next` waits. */
  end(): Promise<unknown>;
}

/** Reads a stream piece by piece. */
export class ByteSource {
  readonly #chunks: Promise<Chunks>;
  readonly #signal: AbortSignal | undefined;
  /** Rejects the waiting step. */
  #interrupt: ((error: unknown) => void) | undefined;
  #unwatch: (() => void) | undefined;
  #chunk: Uint8Array = new Uint8Array(0);

  constructor(bytes: ExportedBytes | PromiseLike<ExportedBytes>, signal: AbortSignal | undefined) {
    this.#chunks = Promise.resolve(bytes).then(chunksOf);
    this.#signal = signal;
    if (signal === undefined) return;
    const abort = (): void => this.#interrupt?.(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    this.#unwatch = () => signal.removeEventListener('abort', abort);
  }

  /** The next `length` bytes, after `room` bytes for the caller's own use; fewer if the stream ends earlier. */
  async take(length: number, room = 0): Promise<Uint8Array> {
    const parts = [new Uint8Array(room), this.#cut(Math.min(length, this.#chunk.length))];
    let have = parts[1]!.length;
    while (have < length) {
      const { done, value } = await this.#step();
      if (done) break;
      if (!ArrayBuffer.isView(value)) throw noBytes();
      this.#chunk = value as Uint8Array;
      const part = this.#cut(Math.min(this.#chunk.length, length - have));
      parts.push(part);
      have += part.length;
    }
    return joined(parts);
  }

  /** Puts bytes back, so that they are taken again. */
  back(bytes: Uint8Array): void {
    this.#chunk = joined([bytes, this.#chunk]);
  }

  /** Closes the stream. */
  close(): void {
    this.#unwatch?.();
    this.#chunks.then((chunks) => chunks.end()).catch(ignore);
  }

  /** One chunk. Not with `Promise.race`: its long-lived side would keep every earlier chunk in memory. */
  #step(): ReturnType<Chunks['next']> {
    return new Promise((resolve, reject) => {
      this.#signal?.throwIfAborted();
      this.#interrupt = reject;
      this.#chunks.then((chunks) => chunks.next()).then(resolve, reject);
    });
  }

  #cut(length: number): Uint8Array {
    const cut = this.#chunk.subarray(0, length);
    this.#chunk = this.#chunk.subarray(length);
    return cut;
  }
}

/** Reads a stream with its reader if it has one, because not every browser can iterate a stream. */
function chunksOf(bytes: ExportedBytes): Chunks {
  const { getReader, [Symbol.asyncIterator]: iterate } = Object(bytes) as ReadableStream<unknown>;
  if (getReader) {
    const reader = getReader.call(bytes) as ReadableStreamDefaultReader;
    return { next: () => reader.read(), end: () => reader.cancel() };
  }
  if (!iterate) throw noBytes();
  const chunks = iterate.call(bytes);
  return { next: () => chunks.next(), end: async () => chunks.return?.() };
}

function noBytes(): VarveError {
  return new VarveError(
    'VARVE_INVALID_ARGUMENT',
    'An export is read from a Blob, a stream or an async iterable of Uint8Arrays. Pass response.body for a Response.',
  );
}

function ignore(): void {}
