/**
 * The promises of one frame's operations, from its packing until every answer came.
 *
 * Invariant: operation `i` of the frame has request number `first + i` (modulo 2^32) and slot `i` of each array. A slot is
 * emptied when its answer comes, even if the caller no longer waits for it. `left` counts the answers that are still to come.
 */

import type { VarveError } from '../errors.ts';
import type { FrameReader } from '../protocol/frame-reader.ts';
import { filtered, type UnreadPart } from '../protocol/frame-writer.ts';

/** Either side of a promise. */
export type Callback = (value: unknown) => void;
type Read = (answer: FrameReader) => unknown;

/** A frame that is being packed, or is not completely answered. */
export class PendingFrame {
  /** Request number of its first operation. */
  readonly first: number;
  left = 0;
  /** The frame, while it may have to be sent again. */
  frame: ArrayBuffer | undefined;
  /** When it was sent to the engine that answers it: a time of `performance.now()`. */
  sentAt = 0;
  /** Its Blobs that are still to be read: until then it is not sent. */
  unread: readonly UnreadPart[] = [];
  /** Whether it was sent to that engine. */
  isSent = false;
  /** How many engines it was sent to again. */
  sent = 0;
  readonly #resolve: (Callback | undefined)[] = [];
  readonly #reject: Callback[] = [];
  readonly #read: Read[] = [];
  /** The request whose Blob is being read, and the call that ends the wait for it. */
  #reading: readonly [request: number, end: Callback] | undefined;

  constructor(first: number) {
    this.first = first;
  }

  /** Adds the next operation. */
  add(resolve: Callback, reject: Callback, read: Read): void {
    this.#resolve.push(resolve);
    this.#reject.push(reject);
    this.#read.push(read);
    this.left++;
  }

  /** True when the request is one of this frame's. */
  has(request: number): boolean {
    return (request - this.first) >>> 0 < this.#resolve.length;
  }

  /** Ends the request with its answer, unless it has ended before. */
  respond(request: number, error: VarveError | undefined, answer: FrameReader): void {
    const i = (request - this.first) >>> 0;
    const resolve = this.#resolve[i];
    if (resolve === undefined) return;
    this.left--;
    this.#resolve[i] = undefined;
    if (resolve === ignored) return;
    const reject = this.#reject[i] as Callback;
    if (error !== undefined) return reject(error);
    let value: unknown;
    try {
      value = (this.#read[i] as Read)(answer);
    } catch (thrown) {
      return reject(thrown);
    }
    resolve(value);
  }

  /**
   * Prepares the frame for another engine. Answers come in parts, so some operations may have their answers already. They are not
   * sent again: a second snapshot or scan would replace the existing one, at another read point.
   */
  dropAnswered(): void {
    if (this.frame === undefined || this.left === this.#resolve.length) return;
    this.frame = filtered(this.frame, (request) => this.#resolve[(request - this.first) >>> 0] !== undefined);
  }

  /** Rejects one request; its answer may still come. */
  abort(request: number, error: unknown): void {
    const i = (request - this.first) >>> 0;
    if (this.#resolve[i] === undefined) return;
    this.#resolve[i] = ignored;
    (this.#reject[i] as Callback)(error);
    if (this.#reading?.[0] === request) this.#reading[1](error);
  }

  /** Rejects when a request is aborted, at once if it was before. It watches one request at a time. */
  aborted(request: number): Promise<never> {
    const resolve = this.#resolve[(request - this.first) >>> 0];
    return new Promise((_, reject) => {
      this.#reading = [request, reject];
      if (resolve === undefined || resolve === ignored) reject();
    });
  }

  /** Takes a request out of the frame, which was never sent, and rejects it. */
  drop(request: number, error: unknown): void {
    this.abort(request, error);
    const i = (request - this.first) >>> 0;
    if (this.#resolve[i] === undefined) return;
    this.#resolve[i] = undefined;
    // Nothing waits for a frame of which nothing is left.
    if (--this.left === 0) this.frame = undefined;
    if (this.frame !== undefined) this.frame = filtered(this.frame, (one) => one !== request);
  }

  /** Rejects every request without an answer. Answers may still come, but the frame is not sent again. */
  abortAll(error: unknown): void {
    for (let i = 0; i < this.#resolve.length; i++) this.abort(this.first + i, error);
    this.frame = undefined;
  }
}

/** Takes the place of a caller that no longer waits for its answer. */
function ignored(): void {}
