/**
 * The page's end of an engine: packs the operations of a turn into one frame, and resolves them from the one that comes
 * back.
 *
 * Life cycle: open (frames and requests pass) -> closing (what was sent is still answered) -> failed (everything pending
 * was rejected, the worker is gone). It never goes back.
 *
 * Invariant: messages leave in the order of the calls: a frame under way is sent before any request after it. Every
 * promise handed out is settled: by its answer, its signal, or the failure of the whole.
 *
 * For one operation there is its promise and three slots in arrays of its flight, no object of its own.
 */

import { abortError, toWire, VarveError } from '../errors.ts';
import { Status } from '../protocol/frame.ts';
import { FrameReader, malformed } from '../protocol/frame-reader.ts';
import { FrameWriter, type Operation } from '../protocol/frame-writer.ts';
import type { Request, Response } from '../protocol/messages.ts';
import { Flight, type Settle } from './flight.ts';
import { Numbers, randomClient } from './numbers.ts';

/** A frame of this size is sent before its turn ends. */
const FRAME_BYTES_MAX = 1024 * 1024;

/** What a client talks through: a worker, a message port, or a stand-in of a test. */
export interface Port {
  postMessage(message: unknown, transfer: object[]): void;
  onmessage: ((event: MessageEvent) => void) | null;
  onmessageerror?: ((event: MessageEvent) => void) | null;
  /** Workers tell here that they died. */
  onerror?: ((event: ErrorEvent) => void) | null;
  terminate?(): void;
}

type Distribute<R> = R extends { readonly id: number } ? Omit<R, 'id'> : never;
/** A request without its number. */
export type Ask = Distribute<Request>;

/** One engine in a worker, serving one store. */
export class Client {
  readonly #port: Port;
  readonly #writer: FrameWriter;
  /** The numbers of its scans and snapshots. */
  readonly numbers = new Numbers();
  readonly #asked = new Map<number, { resolve: Settle; reject: Settle; progress: Settle | undefined }>();
  /** Frames sent and not answered wholly, oldest first. */
  #flights: Flight[] = [];
  /** The flight of the frame being packed. */
  #boarding = new Flight(0);
  #is_scheduled = false;
  #request = 0;
  #ask_id = 0;
  /** Why nothing more is taken; set by closing and by failing. */
  #refusal: VarveError | undefined;
  #closed: Promise<void> | undefined;
  readonly #send_scheduled = (): void => this.#send();

  constructor(port: Port, id = randomClient()) {
    this.#writer = new FrameWriter(id);
    this.#port = port;
    port.onmessage = (event) => this.#receive(event.data);
    port.onmessageerror = () => this.#fail(malformed());
    port.onerror = (event) => this.#fail(workerDied(event));
  }

  /** Throws when the store was closed or its worker died. */
  ensureOpen(): void {
    if (this.#refusal !== undefined) throw this.#refusal;
  }

  /**
   * Queues one operation; it leaves with the turn's frame. `level` is 0 for reads. A signal that aborts before the frame
   * left takes the operation out of it; later, only the waiting ends.
   */
  submit<K, V, T>(operation: Operation<K, V, T>, key: K, value: V, level: number, signal?: AbortSignal): Promise<T> {
    if (this.#refusal !== undefined) return Promise.reject(this.#refusal);
    if (signal?.aborted) return Promise.reject(abortError(signal));
    const request = this.#request;
    try {
      this.#writer.add(request, operation, level, key, value);
    } catch (error) {
      return Promise.reject(error);
    }
    this.#request = (request + 1) >>> 0;
    const flight = this.#boarding;
    const promise = new Promise<T>((resolve, reject) => {
      flight.board(resolve as Settle, reject, operation.read);
    });
    if (signal !== undefined) this.#watch(promise, flight, request, signal);
    if (this.#writer.bytes >= FRAME_BYTES_MAX) this.#send();
    else if (!this.#is_scheduled) {
      this.#is_scheduled = true;
      queueMicrotask(this.#send_scheduled);
    }
    return promise;
  }

  /** Sends a request beside the frames and resolves with its result; `progress` hears how far it is. */
  ask(ask: Ask, progress?: Settle): Promise<unknown> {
    if (this.#refusal !== undefined) return Promise.reject(this.#refusal);
    return this.#post(ask, progress);
  }

  /** Tells the engine that the page is about to go: what is queued leaves now, and is flushed. */
  hide(): void {
    if (this.#refusal !== undefined) return;
    this.#send();
    this.#port.postMessage({ type: 'hidden' } satisfies Request, []);
  }

  /** Waits for what was sent, closes the store and ends the worker. Closing twice is closing once. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  /** Ends the worker at once; everything pending is rejected with `error`. */
  abandon(error: VarveError): void {
    this.#fail(error);
  }

  async #close(): Promise<void> {
    const closed = new VarveError('VARVE_CLOSED', 'The store is closed. Open it again.');
    if (this.#refusal !== undefined) return;
    const answer = this.#post({ type: 'close' });
    this.#refusal = closed;
    try {
      await answer;
    } finally {
      this.#fail(closed);
    }
  }

  #post(ask: Ask, progress?: Settle): Promise<unknown> {
    this.#send();
    const id = ++this.#ask_id;
    return new Promise<unknown>((resolve, reject) => {
      this.#asked.set(id, { resolve, reject, progress });
      try {
        this.#port.postMessage({ ...ask, id } as Request, []);
      } catch (error) {
        this.#asked.delete(id);
        reject(VarveError.fromWire(toWire(error)));
      }
    });
  }

  #send(): void {
    this.#is_scheduled = false;
    if (this.#writer.count === 0) return;
    const frame = this.#writer.take((this.#flights[0] ?? this.#boarding).first);
    this.#flights.push(this.#boarding);
    this.#boarding = new Flight(this.#request);
    try {
      this.#port.postMessage(frame, [frame]);
    } catch (error) {
      this.#fail(VarveError.fromWire(toWire(error)));
    }
  }

  #receive(data: unknown): void {
    try {
      if (data instanceof ArrayBuffer) this.#answers(new FrameReader(data));
      else this.#response(data as Response);
    } catch (error) {
      this.#fail(error instanceof VarveError ? error : VarveError.fromWire(toWire(error)));
    }
  }

  #answers(answer: FrameReader): void {
    let flight: Flight | undefined = this.#flights[0];
    while (answer.next()) {
      const { request } = answer;
      if (flight?.has(request) !== true) flight = this.#flights.find((one) => one.has(request));
      if (flight === undefined) throw malformed();
      flight.land(request, answer.status === Status.error ? answer.error() : undefined, answer);
    }
    this.#flights = this.#flights.filter((flight) => flight.left > 0);
  }

  #response(response: Response): void {
    if (response.type === 'dead') return this.#fail(VarveError.fromWire(response.error));
    const asked = this.#asked.get(response.id);
    if (asked === undefined) throw malformed();
    if (response.type === 'progress') return asked.progress?.(response.value);
    this.#asked.delete(response.id);
    if (response.type === 'failed') asked.reject(VarveError.fromWire(response.error));
    else asked.resolve(response.type === 'opened' ? response.report : response.value);
  }

  #watch(promise: Promise<unknown>, flight: Flight, request: number, signal: AbortSignal): void {
    const abort = (): void => {
      if (flight === this.#boarding && this.#writer.remove(request)) flight.left--;
      flight.leave(request, abortError(signal));
    };
    const settled = (): void => signal.removeEventListener('abort', abort);
    signal.addEventListener('abort', abort, { once: true });
    promise.then(settled, settled);
  }

  #fail(error: VarveError): void {
    this.#refusal ??= error;
    const flights = [...this.#flights, this.#boarding];
    this.#flights = [];
    this.#boarding = new Flight(this.#request);
    if (this.#writer.count > 0) this.#writer.take();
    for (const flight of flights) flight.crash(error);
    for (const { reject } of this.#asked.values()) reject(error);
    this.#asked.clear();
    this.#port.onmessage = null;
    this.#port.terminate?.();
  }
}

/** A worker that did not start: its script was not found, or is none (an event without a message), or may not be one. */
export function noWorker(cause?: unknown): VarveError {
  const message = 'The engine worker did not start. Serve engine-worker.js, or pass its place as the option worker.';
  return new VarveError('VARVE_UNSUPPORTED', message, { cause });
}

function workerDied({ message }: ErrorEvent): VarveError {
  if (message === undefined) return noWorker();
  return new VarveError(
    'VARVE_INTERNAL',
    `The engine worker stopped: ${message}. Unacknowledged writes may be lost. Open the store again; it recovers.`,
  );
}
