/**
 * Packs operations into one request frame (its layout is in frame.ts).
 *
 * Invariant: between calls the sink has whole operations only; an operation whose key or value was refused leaves no
 * trace. The sink is used again for every frame; the frame that is sent is an exact copy in a buffer of its own. While an
 * operation is being encoded, which may run code of the user, nothing else is added, taken or removed.
 */

import { ByteSink, takingBlobs } from '../codec/sink.ts';
import { checkLength } from '../codec/values.ts';
import { invalid, type VarveError } from '../errors.ts';
import { FRAME_HEADER_BYTES, FRAME_MAGIC, OP_HEADER_BYTES, Op, type OpCode } from './frame.ts';
import type { FrameReader } from './frame-reader.ts';

/** A sink that grew beyond this is not kept after its frame. */
const SINK_BYTES_KEPT = 4 * 1024 * 1024;

/** Writes one kind of thing into a sink. */
export interface Encoder<T> {
  write(value: T, sink: ByteSink): void;
}

/** One kind of operation: made once for a store, used for every call. */
export interface Operation<K, V, T> {
  readonly code: OpCode;
  readonly key: Encoder<K> | undefined;
  readonly value: Encoder<V> | undefined;
  /** The result of an answer that is not an error. */
  read(answer: FrameReader): T;
}

/** The error of a call that is made while another call is being encoded. */
export function reentered(): VarveError {
  return invalid('A codec or a getter called the store while a key or a value was being encoded.');
}

/** Writes bytes unchanged. */
export const rawBytes: Encoder<Uint8Array> = { write: (bytes, sink) => sink.append(bytes) };
/** Writes one u32. */
export const word: Encoder<number> = { write: (value, sink) => sink.u32(value) };

/** A Blob whose bytes have room in an operation, `offset` bytes after its start. */
export interface UnreadPart {
  readonly request: number;
  readonly offset: number;
  readonly blob: Blob;
}

/** Collects the operations of a frame. */
export class FrameWriter {
  #sink = takingBlobs(new ByteSink(4096));
  #unread: UnreadPart[] = [];
  /** Whether the value of the operation that was added last has Blobs, whose bytes are not there yet. */
  lastIsUnread = false;
  #count = 0;
  /** Where the operation begins that was added last. */
  #last = 0;
  #writing = false;
  readonly #client: number;

  /** `client` is the number of the client, below 2^53; 0 for a client that cannot send requests again. */
  constructor(client = 0) {
    this.#client = client;
    this.#begin();
  }

  /** Operations in the frame so far. */
  get count(): number {
    return this.#count;
  }

  /** Bytes of the frame so far. */
  get bytes(): number {
    return this.#sink.at;
  }

  /** The error if the store cannot be called now, because the call comes from a codec or a getter while an operation is encoded. */
  get reentrance(): VarveError | undefined {
    return this.#writing ? reentered() : undefined;
  }

  /** Appends one operation; an error of its encoders is passed on, and the frame is then unchanged. */
  add<K, V>(request: number, operation: Operation<K, V, unknown>, level: number, key: K, value: V): void {
    if (this.#writing) throw reentered();
    const sink = this.#sink;
    const start = sink.at;
    this.#writing = true;
    try {
      sink.reserve(OP_HEADER_BYTES);
      sink.setU32(start, request);
      sink.setU32(start + 4, operation.code | (level << 8));
      sink.at = start + OP_HEADER_BYTES;
      operation.key?.write(key, sink);
      const valueStart = sink.at;
      operation.value?.write(value, sink);
      const valueBytes = sink.at - valueStart;
      if (operation.code === Op.set) checkLength(valueBytes);
      sink.setU32(start + 8, valueStart - start - OP_HEADER_BYTES);
      sink.setU32(start + 12, valueBytes);
      sink.pad4();
      this.#count++;
      this.#last = start;
      this.lastIsUnread = sink.blobs !== undefined && sink.blobs.length > 0;
      if (this.lastIsUnread) this.#noteBlobs(request, start);
    } catch (error) {
      sink.rewind(start);
      throw error;
    } finally {
      this.#writing = false;
    }
  }

  /** The Blobs of the frame that are still to be read. */
  get unread(): readonly UnreadPart[] {
    return this.#unread;
  }

  /** Removes an operation again, before the frame is sent. Returns false if it is not in the frame. */
  remove(request: number): boolean {
    if (this.#writing) return false;
    const sink = this.#sink;
    const end = keep(sink.bytes, sink.at, (one) => one !== request);
    if (end === sink.at) return false;
    sink.at = end;
    this.#unread = this.#unread.filter((part) => part.request !== request);
    this.#count--;
    return true;
  }

  /** The key and the value of the operation that was added last: views that the next call makes stale. */
  get last(): { readonly key: Uint8Array; readonly value: Uint8Array } {
    const { bytes } = this.#sink;
    const keyAt = this.#last + OP_HEADER_BYTES;
    const view = new DataView(bytes.buffer, bytes.byteOffset);
    const valueAt = keyAt + view.getUint32(this.#last + 8, true);
    const end = valueAt + view.getUint32(this.#last + 12, true);
    return { key: bytes.subarray(keyAt, valueAt), value: bytes.subarray(valueAt, end) };
  }

  /**
   * Returns the frame as a buffer of its own. All requests before `answered` have their answers; `flags` are for the server. The writer
   * is empty afterwards.
   */
  take(answered = 0, flags = 0): ArrayBuffer {
    if (this.#writing) throw reentered();
    this.#sink.setU32(4, this.#count);
    this.#sink.setU32(16, answered);
    this.#sink.setU32(20, flags);
    const frame = this.#sink.copy().buffer as ArrayBuffer;
    if (this.#sink.bytes.length > SINK_BYTES_KEPT) this.#sink = takingBlobs(new ByteSink(4096));
    this.#begin();
    return frame;
  }

  #noteBlobs(request: number, start: number): void {
    for (const { at, blob } of this.#sink.blobs?.splice(0) ?? [])
      this.#unread.push({ request, offset: at - start, blob });
  }

  #begin(): void {
    this.#count = 0;
    this.#unread = [];
    this.#sink.at = 0;
    this.#sink.u32(FRAME_MAGIC);
    this.#sink.u32(0);
    this.#sink.u32(this.#client >>> 0);
    this.#sink.u32(Math.floor(this.#client / 0x1_0000_0000));
    this.#sink.u32(0);
    this.#sink.u32(0);
  }
}

/** A request frame with only the operations whose requests are wanted. */
export function filtered(frame: ArrayBuffer, isWanted: (request: number) => boolean): ArrayBuffer {
  const bytes = new Uint8Array(frame.slice(0));
  return bytes.buffer.slice(0, keep(bytes, bytes.length, isWanted));
}

/** Drops unwanted operations from a frame that ends at `end`, and returns its new end. */
function keep(bytes: Uint8Array, end: number, isWanted: (request: number) => boolean): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  let [to, count] = [FRAME_HEADER_BYTES, 0];
  for (let at = to; at < end; ) {
    const length = OP_HEADER_BYTES + view.getUint32(at + 8, true) + view.getUint32(at + 12, true);
    const next = at + ((length + 3) & ~3);
    if (isWanted(view.getUint32(at, true))) {
      bytes.copyWithin(to, at, next);
      to += next - at;
      count++;
    }
    at = next;
  }
  view.setUint32(4, count, true);
  return to;
}
