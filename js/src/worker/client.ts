/**
 * The page's end of an engine: packs the operations of a turn into one frame, and resolves them from the one that comes
 * back.
 *
 * Life cycle: connected (frames and requests pass) <-> waiting for a leader (what is called waits) -> closing (what was
 * called is still answered) -> failed (everything pending was rejected). The last two are final.
 *
 * Invariant: messages leave in the order of the calls: a frame under way is sent before any request after it. Every
 * promise handed out is settled: by its answer, its signal, or the failure of the whole. What was not answered when the
 * engine went away is sent to the next one, in order; the engine knows by the numbers what it has done already.
 *
 * For one operation there is its promise and three slots in arrays of its flight, no object of its own.
 */

import { abortError, toWire, VarveError } from '../errors.ts';
import { Status } from '../protocol/frame.ts';
import { FrameReader, malformed } from '../protocol/frame-reader.ts';
import { FrameWriter, type Operation } from '../protocol/frame-writer.ts';
import type { Request, Response } from '../protocol/messages.ts';
import type { SharingReport } from '../types.ts';
import { Flight, type Settle } from './flight.ts';
import { Numbers, randomClient } from './numbers.ts';

/** A frame of this size is sent before its turn ends. */
const FRAME_BYTES_MAX = 1024 * 1024;
/** A frame that so many leaders did not survive may be why. */
const LEADERS_MAX = 8;

/** What a client talks through: a worker, a message port, or a stand-in of a test. */
export interface Port {
  postMessage(message: unknown, transfer: object[]): void;
  onmessage: ((event: MessageEvent) => void) | null;
  onmessageerror?: ((event: MessageEvent) => void) | null;
  /** Workers tell here that they died. */
  onerror?: ((event: ErrorEvent) => void) | null;
  terminate?(): void;
}

/** A way to the engine. */
export interface Link {
  /** How it goes. */
  readonly via: SharingReport['via'];
  post(message: unknown, transfer: object[]): void;
}

type Distribute<R> = R extends { readonly id: number } ? Omit<R, 'id'> : never;
/** A request without its number. */
export type Ask = Distribute<Request>;

interface Asked {
  readonly request: Request;
  readonly resolve: Settle;
  readonly reject: Settle;
  readonly progress: Settle | undefined;
}

/** One engine's client, serving one store. */
export class Client {
  /** 0 where no other engine will be asked again: then the log need not say what is whose. */
  readonly id: number;
  /** The scans and snapshots that the engine has open for it. */
  readonly numbers = new Numbers();
  readonly #writer: FrameWriter;
  readonly #asked = new Map<number, Asked>();
  /** Frames packed and not answered wholly, oldest first. */
  #flights: Flight[] = [];
  /** The flight of the frame being packed. */
  #boarding = new Flight(0);
  #is_scheduled = false;
  #request = 0;
  #ask_id = 0;
  #link: Link | undefined;
  #was_connected = false;
  readonly #has_successors: boolean;
  readonly #end: () => void;
  /** Why nothing more is taken; set by closing and by failing. */
  #refusal: VarveError | undefined;
  #is_over = false;
  #closed: Promise<void> | undefined;
  readonly #send_scheduled = (): void => this.#send();

  /**
   * @param has_successors Whether another engine may take the place of the one it is connected to.
   * @param end Lets go of whatever it talked through; called once, when it is over.
   */
  constructor(has_successors: boolean, end: () => void) {
    this.id = has_successors ? randomClient() : 0;
    this.#writer = new FrameWriter(this.id);
    this.#has_successors = has_successors;
    this.#end = end;
  }

  /** The client of one engine, which is over when that is. */
  static of(port: Port): Client {
    const client = new Client(false, () => {
      port.onmessage = null;
      port.terminate?.();
    });
    port.onmessage = (event) => client.receive(event.data);
    port.onmessageerror = () => client.fail(malformed());
    port.onerror = (event) => client.fail(workerDied(event));
    client.connect({ via: 'worker', post: (message, transfer) => port.postMessage(message, transfer) });
    return client;
  }

  /** How it reaches the engine; undefined while nobody leads. */
  get via(): SharingReport['via'] | undefined {
    return this.#link?.via;
  }

  /** Whether something was called that is not answered. */
  get is_waiting(): boolean {
    // Who waits for the next write does not wait for an answer.
    const isAsked = [...this.#asked.values()].some(
      ({ request }) => (request as { method?: string }).method !== 'after',
    );
    return isAsked || this.#boarding.left > 0 || this.#flights.some(({ frame }) => frame !== undefined);
  }

  /** Talks through this link from now on. What was not answered through the one before is sent again. */
  connect(link: Link): void {
    if (this.#is_over) return;
    this.#link = undefined;
    this.#send();
    const waiting = this.#flights.filter(({ frame }) => frame !== undefined);
    const asked = [...this.#asked.values()];
    for (const flight of waiting) {
      flight.divert();
      if (++flight.sent > LEADERS_MAX) flight.crash(unlucky());
    }
    this.#flights = waiting.filter(({ frame }) => frame !== undefined);
    const { length } = this.#flights;
    if (this.#was_connected) this.numbers.restore();
    this.#send();
    this.#was_connected = true;
    this.#link = link;
    // What it had open first, which was packed last: frames under way may name it.
    for (const flight of this.#flights.slice(length)) this.#post_frame(flight);
    for (const flight of this.#flights.slice(0, length)) this.#post_frame(flight);
    // Behind what is sent again: its reads see moments that a merge may forget.
    if (this.#has_successors) link.post({ type: 'returned' } satisfies Request, []);
    for (const { request } of asked) link.post(request, []);
  }

  /** Nobody leads: what is called from now on waits for `connect`. */
  disconnect(): void {
    this.#link = undefined;
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
    if (this.#refusal !== undefined || this.#writer.reentrance !== undefined) return;
    this.#send();
    this.#link?.post({ type: 'hidden' } satisfies Request, []);
  }

  /** Waits for what was sent, closes the store and ends the worker. Closing twice is closing once. */
  close(): Promise<void> {
    const refusal = this.#writer.reentrance;
    if (refusal !== undefined) return Promise.reject(refusal);
    this.#closed ??= this.#close();
    return this.#closed;
  }

  /** Ends it at once; everything pending is rejected with `error`. */
  fail(error: VarveError): void {
    if (this.#is_over) return;
    this.#is_over = true;
    this.#refusal ??= error;
    this.#link = undefined;
    this.give_up(error);
    this.#end();
  }

  /** Rejects all that is pending. It may have been done, or be done yet; it is not sent again. */
  give_up(error: VarveError): void {
    this.#send();
    const asked = [...this.#asked.values()];
    this.#asked.clear();
    for (const flight of this.#flights) flight.crash(error);
    if (this.#link === undefined) this.#flights = [];
    for (const { reject } of asked) reject(error);
  }

  /** Takes what came through the link. */
  receive(data: unknown): void {
    try {
      if (data instanceof ArrayBuffer) this.#answers(new FrameReader(data));
      else this.#response(data as Response);
    } catch (error) {
      this.fail(error instanceof VarveError ? error : VarveError.fromWire(toWire(error)));
    }
  }

  async #close(): Promise<void> {
    const closed = new VarveError('VARVE_CLOSED', 'The store is closed. Open it again.');
    if (this.#refusal !== undefined) return;
    const answer = this.#post({ type: 'close' });
    this.#refusal = closed;
    try {
      await answer;
    } finally {
      this.fail(closed);
    }
  }

  #post(ask: Ask, progress?: Settle): Promise<unknown> {
    this.#send();
    const id = ++this.#ask_id;
    return new Promise<unknown>((resolve, reject) => {
      const request = { ...ask, id } as Request;
      this.#asked.set(id, { request, resolve, reject, progress });
      try {
        this.#link?.post(request, []);
      } catch (error) {
        this.#asked.delete(id);
        reject(VarveError.fromWire(toWire(error)));
      }
    });
  }

  #send(): void {
    this.#is_scheduled = false;
    if (this.#writer.count === 0) return;
    const flight = this.#boarding;
    flight.frame = this.#writer.take((this.#flights[0] ?? flight).first);
    this.#flights.push(flight);
    this.#boarding = new Flight(this.#request);
    if (this.#link !== undefined) this.#post_frame(flight);
  }

  #post_frame(flight: Flight): void {
    const { frame } = flight;
    if (frame === undefined || this.#link === undefined) return;
    // It is sent again if its answer does not come: what is transferred is a copy then.
    const sent = this.#has_successors ? frame.slice(0) : frame;
    try {
      this.#link.post(sent, [sent]);
    } catch (error) {
      this.fail(VarveError.fromWire(toWire(error)));
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
    this.#flights = this.#flights.filter((one) => one.left > 0);
  }

  #response(response: Response): void {
    if (response.type === 'dead') return this.fail(VarveError.fromWire(response.error));
    if (!('id' in response)) return;
    const asked = this.#asked.get(response.id);
    // Who asked gave up.
    if (asked === undefined && response.id <= this.#ask_id) return;
    if (asked === undefined) throw malformed();
    if (response.type === 'progress') return asked.progress?.(response.value);
    this.#asked.delete(response.id);
    if (response.type === 'failed') asked.reject(VarveError.fromWire(response.error));
    else if (response.type === 'opened') asked.resolve(response.report);
    else if (response.type === 'result') asked.resolve(response.value);
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
}

function unlucky(): VarveError {
  return new VarveError('VARVE_INTERNAL', 'Too many tabs ended over this. It may be done yet.');
}

/** A worker that did not start: its script was not found, or is none (an event without a message), or may not be one. */
export function noWorker(cause?: unknown): VarveError {
  const message = 'The engine worker did not start. Serve engine-worker.js, or pass the option worker.';
  return new VarveError('VARVE_UNSUPPORTED', message, { cause });
}

/** The error for a worker that told that it died. */
export function workerDied(event: ErrorEvent): VarveError {
  const { message } = event;
  if (message === undefined) return noWorker();
  return new VarveError(
    'VARVE_INTERNAL',
    `The engine worker stopped: ${message}. Open the store again: unacknowledged writes may be lost.`,
  );
}
