/**
 * The page's end of an engine: packs the operations of a turn into one request frame, and resolves them from the response
 * frame.
 *
 * Life cycle: connected (frames and requests pass) <-> waiting for a leader (calls wait) -> closing (earlier calls are still
 * answered) -> failed (everything pending was rejected). The last two are final.
 *
 * Invariant: messages leave in the order of the calls: a frame under way is sent before any request after it. Every
 * promise handed out is resolved or rejected: by its answer, its signal, or the failure of the client. When an engine goes away, the
 * unanswered frames and requests are sent to the next engine, in order. That engine knows by the numbers which it has done.
 *
 * An operation costs its promise and three slots in the arrays of its frame. It has no object of its own.
 */

import type { Formats } from '../codec/formats.ts';
import { closedError, notLoaded, toWire, VarveError } from '../errors.ts';
import type { PlainFootprint } from '../protocol/footprint.ts';
import { Status, transferOf } from '../protocol/frame.ts';
import { FrameReader, malformed } from '../protocol/frame-reader.ts';
import { FrameWriter, type Operation } from '../protocol/frame-writer.ts';
import { RequestFlag, ResponseFlag } from '../protocol/lease.ts';
import type { Request, Response } from '../protocol/messages.ts';
import type { ScanBatch, ScanRequest } from '../protocol/scan.ts';
import { soon } from '../runtime/turn.ts';
import type { SharingReport } from '../types.ts';
import { Numbers, randomClient } from './numbers.ts';
import { type Callback, PendingFrame } from './pending-frame.ts';

/** Loads the module that reads Blobs. A realm that may not import later on puts the loaded module here. */
export const loadBlobs = {
  now: (): Promise<typeof import('./blobs.ts')> => import('./blobs.ts').catch(notLoaded),
};

/** A frame of this size is sent before its turn ends. */
const FRAME_BYTES_MAX = 1024 * 1024;
/** A frame is sent again to at most this many leaders. If none of them survived it, the frame itself may be the reason. */
const LEADERS_MAX = 8;
/** How long a page that is being left waits for its worker: a set takes some 0.1 ms over OPFS, some 3 ms over IndexedDB. */
const LINGER_MS = 10;

/** A client talks through this: a worker, a message port, or a replacement in a test. */
export interface Port {
  postMessage(message: unknown, transfer: object[]): void;
  onmessage: ((event: MessageEvent) => void) | null;
  onmessageerror?: ((event: MessageEvent) => void) | null;
  /** A worker reports here that it died. */
  onerror?: ((event: ErrorEvent) => void) | null;
  terminate?(): void;
}

/** A way to the engine. */
export interface Link {
  /** The kind of link. */
  readonly via: SharingReport['via'];
  post(message: unknown, transfer: object[]): void;
}

type Distribute<R> = R extends { readonly id: number } ? Omit<R, 'id'> : never;
/** A request without its number. */
export type Ask = Distribute<Request>;

interface Asked {
  readonly request: Request;
  readonly resolve: Callback;
  readonly reject: Callback;
  readonly progress: Callback | undefined;
}

/** Keeps reads, and answers them again while its lease runs: see `protocol/lease.ts`. */
export interface ReadKeeper {
  /**
   * The last operation of the frame was called. Returns a function to be called when it has ended, if its value can be kept then: with
   * its answer, or without one if it failed.
   */
  called(code: number, writer: FrameWriter): ((answer?: FrameReader) => void) | undefined;
  /** An answer was granted whose request was sent at that time of `performance.now()`. */
  granted(sentAt: number, isNew: boolean): void;
  /** Other clients are about to write these. */
  revoked(footprint: PlainFootprint): void;
  /** There is no leader any more that grants anything. */
  lost(): void;
  /** The whole answer to a scan, if it is kept. */
  batch(request: ScanRequest): ScanBatch | undefined;
  /** The value of a key, if it is kept. */
  peek<K, V>(formats: Formats<K, V>, key: K): V | undefined;
}

/** One engine's client, serving one store. */
export class Client {
  /** 0 if no other engine can take over. Then the log need not record which client made a write. */
  readonly id: number;
  /** The scans and snapshots that the engine has open for this client. */
  readonly numbers = new Numbers();
  keeper: ReadKeeper | undefined;
  /** End the open transaction handles, and what else must not outlast the store. */
  readonly handles = new Set<Callback>();
  /** How often all pending calls were rejected, although later ones may succeed. */
  aborts = 0;
  /** The name of the store, if tabs share it: then another engine may take the place of the one that it is connected to. */
  readonly shared: string | undefined;
  readonly #writer: FrameWriter;
  readonly #asked = new Map<number, Asked>();
  /** Frames that are packed but not completely answered, oldest first. */
  #pending: PendingFrame[] = [];
  /** The frame being packed. */
  #packing = new PendingFrame(0);
  #isScheduled = false;
  #request = 0;
  #askId = 0;
  #link: Link | undefined;
  #wasConnected = false;
  /** The highest version of another tab, if it is higher than this one's; else 0. */
  #newer = 0;
  #onNewer: (version: number) => void = () => undefined;
  readonly #end: () => void;
  /** The reason why new calls are rejected. Set by closing and by failing. */
  #refusal: unknown;
  #isOver = false;
  #closed: Promise<void> | undefined;
  /** How many frames wait until their Blobs are read. Everything later waits with them. */
  #reading = 0;
  /** The requests that wait with them. */
  #delayed: Request[] = [];
  readonly #sendScheduled = (): void => this.#send();

  /**
   * @param end Releases the port or links that the client used. Called once, when the client has failed or closed.
   * @param shared The name of the store, if tabs share it.
   */
  constructor(end: () => void, shared?: string) {
    this.id = shared === undefined ? 0 : randomClient();
    this.#writer = new FrameWriter(this.id);
    this.shared = shared;
    this.#end = end;
  }

  /** A client of one engine. It fails when the engine ends. */
  static of(port: Port): Client {
    const client = new Client(() => {
      port.onmessage = null;
      port.terminate?.();
    });
    port.onmessage = (event) => client.receive(event.data);
    port.onmessageerror = () => client.fail(malformed());
    port.onerror = (event) => client.fail(workerDied(event));
    client.connect({ via: 'worker', post: (message, transfer) => port.postMessage(message, transfer) });
    return client;
  }

  /** How the client reaches the engine; undefined while there is no leader. */
  get via(): SharingReport['via'] | undefined {
    return this.#link?.via;
  }

  /** Whether a call is not answered yet. */
  get isWaiting(): boolean {
    const isAsked = [...this.#asked.values()].some((asked) => !isAfter(asked));
    return isAsked || this.#packing.left > 0 || this.#pending.some(({ frame }) => frame !== undefined);
  }

  /** Uses this link from now on. Frames and requests that were not answered through the previous link are sent again. */
  connect(link: Link): void {
    if (this.#isOver) return;
    this.keeper?.lost();
    this.#link = undefined;
    this.#send();
    const waiting = this.#pending.filter(({ frame }) => frame !== undefined);
    const asked = [...this.#asked.values()];
    for (const pending of waiting) {
      pending.dropAnswered();
      if (++pending.sent > LEADERS_MAX) pending.abortAll(unlucky());
    }
    this.#pending = waiting.filter(({ frame }) => frame !== undefined);
    for (const pending of this.#pending) pending.isSent = false;
    const { length } = this.#pending;
    if (this.#wasConnected) this.numbers.restore();
    this.#send();
    this.#wasConnected = true;
    this.#link = link;
    // First the frames that open its snapshots and scans again, which were packed last: older frames may use them.
    for (const pending of this.#pending.slice(length)) this.#postFrame(pending);
    this.#delayed = [];
    this.#postReady();
    // After the frames that are sent again: they read at old read points, which a merge may drop.
    if (this.shared !== undefined) link.post({ type: 'returned' } satisfies Request, []);
    for (const { request } of asked) this.#postRequest(request);
  }

  /** There is no leader: calls from now on wait for `connect`. */
  disconnect(): void {
    this.#link = undefined;
    this.keeper?.lost();
  }

  /** Rolls back the open transaction handles, so that nobody waits for them. */
  endHandles(reason: unknown): void {
    for (const end of this.handles) end(reason);
    this.handles.clear();
  }

  /** Calls back when a tab has opened the store with a higher version than this one; at once, if one has. */
  onNewer(callback: (version: number) => void): void {
    this.#onNewer = callback;
    if (this.#newer > 0) callback(this.#newer);
  }

  /** Throws when the store was closed or its worker died. */
  ensureOpen(): void {
    if (this.#refusal !== undefined) throw this.#refusal;
  }

  /**
   * Queues one operation; it is sent with the turn's frame. `level` is 0 for reads. If the signal aborts before the frame
   * is sent, the operation is removed from it. If it aborts later, only the waiting ends.
   */
  submit<K, V, T>(operation: Operation<K, V, T>, key: K, value: V, level: number, signal?: AbortSignal): Promise<T> {
    if (this.#refusal !== undefined) return Promise.reject(this.#refusal);
    if (signal?.aborted) return Promise.reject(signal.reason);
    const request = this.#request;
    try {
      this.#writer.add(request, operation, level, key, value);
    } catch (error) {
      return Promise.reject(error);
    }
    this.#request = (request + 1) >>> 0;
    const pending = this.#packing;
    const ended = this.keeper?.called(operation.code, this.#writer);
    const promise = new Promise<T>((resolve, reject) => {
      pending.add(resolve as Callback, reject, ended === undefined ? operation.read : readThen(operation, ended));
    });
    if (ended !== undefined) promise.catch(() => ended());
    if (signal !== undefined) this.#watch(promise, pending, request, signal);
    if (this.#writer.bytes >= FRAME_BYTES_MAX) this.#send();
    else if (!this.#isScheduled) {
      this.#isScheduled = true;
      soon(this.#sendScheduled);
    }
    return promise;
  }

  /** Sends a request beside the frames and resolves with its result. `progress` is called with how far it is. */
  ask(ask: Ask, progress?: Callback): Promise<unknown> {
    if (this.#refusal !== undefined) return Promise.reject(this.#refusal);
    return this.#post(ask, progress);
  }

  /** Informs the engine that the page is about to go away. Queued operations are sent now and flushed. */
  hide(): void {
    if (this.#refusal !== undefined || this.#writer.reentrance !== undefined) return;
    this.#send();
    this.#link?.post({ type: 'hidden' } satisfies Request, []);
  }

  /**
   * The page is being left, and its worker ends with it: the worker gets a moment for what was sent last. Nobody sees the page meanwhile.
   * Without this, a draft that a page saves in `pagehide` is often lost.
   */
  linger(): void {
    this.hide();
    const until = this.isWaiting ? (this.#pending.at(-1)?.sentAt ?? 0) + LINGER_MS : 0;
    while (performance.now() < until);
  }

  /** Waits for what was sent, closes the store and ends the worker. A second call returns the same promise. */
  close(): Promise<void> {
    const refusal = this.#writer.reentrance;
    if (refusal !== undefined) return Promise.reject(refusal);
    this.#closed ??= this.#close();
    return this.#closed;
  }

  /** Ends it at once; everything pending is rejected with `error`. */
  fail(error: unknown): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.keeper?.lost();
    this.#refusal ??= error;
    this.endHandles(this.#refusal);
    this.#link = undefined;
    this.abortCalls(error);
    this.#end();
  }

  /**
   * Rejects all pending calls. The engine may have done them, or may still do them. They are not sent again. While the client is not
   * over, requests `after` stay: another engine can answer them, too.
   */
  abortCalls(error: unknown): void {
    this.#send();
    if (!this.#isOver) this.aborts++;
    for (const pending of this.#pending) pending.abortAll(error);
    if (this.#link === undefined) this.#pending = [];
    for (const [id, asked] of this.#asked) {
      if (!this.#isOver && isAfter(asked)) continue;
      this.#asked.delete(id);
      asked.reject(error);
    }
  }

  /** Handles a message or a response frame that came through the link. */
  receive(data: unknown): void {
    try {
      if (data instanceof ArrayBuffer) this.#answers(new FrameReader(data));
      else this.#response(data as Response);
    } catch (error) {
      this.fail(error instanceof VarveError ? error : VarveError.fromWire(toWire(error)));
    }
  }

  async #close(): Promise<void> {
    const closed = closedError();
    if (this.#refusal !== undefined) return;
    const answer = this.#post({ type: 'close' });
    this.#refusal = closed;
    this.endHandles(closed);
    if (this.#reading > 0)
      loadBlobs.now().then(
        ({ limit }) => limit(this.#pending, answer),
        () => undefined,
      );
    try {
      await answer;
    } finally {
      this.fail(closed);
    }
  }

  #post(ask: Ask, progress?: Callback): Promise<unknown> {
    this.#send();
    const id = ++this.#askId;
    return new Promise<unknown>((resolve, reject) => {
      const request = { ...ask, id } as Request;
      this.#asked.set(id, { request, resolve, reject, progress });
      try {
        this.#postRequest(request);
      } catch (error) {
        this.#asked.delete(id);
        reject(VarveError.fromWire(toWire(error)));
      }
    });
  }

  #send(): void {
    this.#isScheduled = false;
    if (this.#writer.count === 0) return;
    const pending = this.#packing;
    const flags = this.keeper !== undefined && this.shared !== undefined ? RequestFlag.lease : 0;
    pending.unread = this.#writer.unread;
    pending.frame = this.#writer.take((this.#pending[0] ?? pending).first, flags);
    this.#pending.push(pending);
    this.#packing = new PendingFrame(this.#request);
    if (pending.unread.length > 0) void this.#readBlobs(pending);
    else if (this.#reading === 0) this.#postFrame(pending);
  }

  /** Reads the Blobs of a frame into it. */
  async #readBlobs(pending: PendingFrame): Promise<void> {
    this.#reading++;
    try {
      await (await loadBlobs.now()).readInto(pending);
    } catch (error) {
      // The module did not load.
      for (const { request } of pending.unread) pending.drop(request, error);
    }
    pending.unread = [];
    this.#reading--;
    this.#postReady();
  }

  /** Sends what no longer waits for Blobs, in order. */
  #postReady(): void {
    // Without the frames that were given up before they were sent.
    this.#pending = this.#pending.filter(({ left, isSent, frame }) => left > 0 && (isSent || frame !== undefined));
    for (const pending of this.#pending) {
      if (pending.unread.length > 0) break;
      if (!pending.isSent) this.#postFrame(pending);
    }
    if (this.#reading > 0) return;
    for (const request of this.#delayed.splice(0)) this.#postRequest(request);
  }

  /** Sends a request after all frames that were called before it, unless its caller was rejected. */
  #postRequest(request: Request): void {
    if (this.#reading > 0) this.#delayed.push(request);
    else if ('id' in request && this.#asked.has(request.id)) this.#link?.post(request, []);
  }

  #postFrame(pending: PendingFrame): void {
    const { frame } = pending;
    if (frame === undefined || this.#link === undefined) return;
    // A frame is sent again if its answer does not come. So it is kept, and a copy is transferred.
    const isKept = this.shared !== undefined && transferOf(frame).length > 0;
    const sent = isKept ? frame.slice(0) : frame;
    pending.isSent = true;
    pending.sentAt = performance.now();
    try {
      this.#link.post(sent, transferOf(sent));
    } catch (error) {
      this.fail(VarveError.fromWire(toWire(error)));
    }
  }

  #answers(answer: FrameReader): void {
    let pending: PendingFrame | undefined = this.#pending[0];
    // All answers of a response are those of one frame.
    let { isGranted } = answer;
    while (answer.next()) {
      const { request } = answer;
      if (pending?.has(request) !== true) pending = this.#pending.find((one) => one.has(request));
      if (pending === undefined) throw malformed();
      if (isGranted) {
        this.keeper?.granted(pending.sentAt, (answer.flags & ResponseFlag.isNew) !== 0);
        isGranted = false;
      }
      pending.respond(request, answer.status === Status.error ? answer.error() : undefined, answer);
    }
    this.#pending = this.#pending.filter((one) => one.left > 0);
  }

  #response(response: Response): void {
    if (response.type === 'dead') return this.fail(VarveError.fromWire(response.error));
    // Each leader reports it, and each time that a tab comes or goes.
    if (response.type === 'versionchange' && response.version !== this.#newer) {
      this.#newer = response.version;
      this.onNewer(this.#onNewer);
    }
    if (response.type === 'revoke') {
      this.keeper?.revoked(response.footprint);
      this.#link?.post({ type: 'revoked', revocation: response.revocation } satisfies Request, []);
    }
    if (!('id' in response)) return;
    const asked = this.#asked.get(response.id);
    // The caller was already rejected by `abortCalls`.
    if (asked === undefined && response.id <= this.#askId) return;
    if (asked === undefined) throw malformed();
    if (response.type === 'progress') return asked.progress?.(response.value);
    this.#asked.delete(response.id);
    if (response.type === 'failed') asked.reject(VarveError.fromWire(response.error));
    else if (response.type === 'opened') asked.resolve(response.report);
    else if (response.type === 'result') asked.resolve(response.value);
  }

  #watch(promise: Promise<unknown>, pending: PendingFrame, request: number, signal: AbortSignal): void {
    const abort = (): void => {
      // A frame may also wait for a Blob or a leader. Its aborted writes were done later, although they had not been sent.
      const isTaken = pending === this.#packing ? this.#writer.remove(request) : !pending.isSent;
      if (isTaken) pending.drop(request, signal.reason);
      else pending.abort(request, signal.reason);
    };
    const ended = (): void => signal.removeEventListener('abort', abort);
    signal.addEventListener('abort', abort, { once: true });
    promise.then(ended, ended);
  }
}

/** Reads an answer, after the keeper was informed that the operation has ended. */
function readThen<T>({ read }: Pick<Operation<never, never, T>, 'read'>, ended: (answer: FrameReader) => void) {
  return (answer: FrameReader): T => {
    ended(answer);
    return read(answer);
  };
}

/** Whether it waits for the next write. It does not expect an answer soon. */
function isAfter({ request }: Asked): boolean {
  return (request as { method?: string }).method === 'after';
}

function unlucky(): VarveError {
  return new VarveError('VARVE_INTERNAL', 'Too many tabs ended during this call. It may still be done.');
}

/** The error for a worker that did not start: its script was not found, is no script (an event without a message), or is forbidden. */
export function noWorker(cause?: unknown): VarveError {
  const message = 'The engine worker did not start. Serve engine-worker.js, or pass the option worker.';
  // An event has no cause. Then the script was not loaded, and may be later.
  return new VarveError(cause === undefined ? 'VARVE_UNAVAILABLE' : 'VARVE_UNSUPPORTED', message, { cause });
}

/** The error for a worker that reported its death. */
export function workerDied(event: ErrorEvent): VarveError {
  const { message } = event;
  if (message === undefined) return noWorker();
  return new VarveError(
    'VARVE_INTERNAL',
    `The engine worker stopped: ${message}. Open the store again: unacknowledged writes may be lost.`,
  );
}
