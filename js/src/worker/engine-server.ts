/**
 * Answers one client: frames with frames, messages with messages.
 *
 * Invariant: everything is answered in the order it came, but for `compact` and `check`, which may take minutes: they are
 * answered when they are done, and tell their progress meanwhile. While the engine is stalled (two memtables wait, or level 0
 * is full) frames queue here until a job has made room, so that no write is refused only because it came too fast; if
 * no job can make room (a full disk), the frame runs and its writes are told so.
 *
 * Over a storage that settles later, a frame has run when the next one does, and its answer leaves when all that it may have
 * seen is committed. Answers leave in order all the same. When the storage refuses a commit for want of room, the store goes back to
 * what was committed before anything else runs, and the answers that had to wait are given anew: see `refused-frames.ts`.
 */

import { toWire, VarveError } from '../errors.ts';
import type { Request, Response } from '../protocol/messages.ts';
import type { StorageAdapter } from '../storage/adapter.ts';
import { openIndexedDb } from '../storage/indexeddb/chunk-store.ts';
import { indexedDbStorage } from '../storage/indexeddb/storage.ts';
import { deleteStore, listStores } from '../storage/stores.ts';
import { type RepairWatch, repairStore } from '../tools/repair.ts';
import type { CheckOptions } from '../tools/types.ts';
import { controlError } from '../wasm/errors.ts';
import { onEngineFault } from '../wasm/fault.ts';
import type { SpawnCompactor } from './compactor-link.ts';
import { EngineHost } from './engine-host.ts';
import { answerAgain, type RefusedFrame } from './refused-frames.ts';
import { settlingFailure } from './settling-failure.ts';
import type { FrameProgress } from './settling-frames.ts';

/** Sends a message or a response frame to the client. */
export type Send = (message: Response | ArrayBuffer, transfer: Transferable[]) => void;

/** Between two answers to those who wait for writes, in milliseconds. */
const AFTER_MS = 5;

/** What is waiting to be answered. */
type Incoming = Request | ArrayBuffer;

/** Serves one client of one store. */
export class EngineServer {
  readonly #send: Send;
  readonly #compactor: SpawnCompactor | undefined;
  readonly #adapter: StorageAdapter | undefined;
  readonly #queue: Incoming[] = [];
  /** Checks that run, by the number that the client gave them, and a repair. */
  readonly #stoppables = new Map<unknown, AbortController>();
  /** Frames whose answers could not leave. */
  readonly #refused: RefusedFrame[] = [];
  /** Why; set until the store has gone back. */
  #refusal: VarveError | undefined;
  /** Why the last one did. */
  #lastRefusal: VarveError | undefined;
  #host: EngineHost | undefined;
  /** Who waits until the last acknowledged write is another one. */
  #afters: { readonly id: number; readonly since: number }[] = [];
  #afterTimer: ReturnType<typeof setTimeout> | undefined;
  /** Set while something asynchronous is being answered: later messages wait. */
  #busy = false;
  #is_dead = false;
  /** Ends an opening that is under way. */
  readonly #ended = new AbortController();
  readonly #unwatch: () => void;

  constructor(send: Send, compactor: SpawnCompactor | undefined, adapter?: StorageAdapter) {
    this.#send = send;
    this.#compactor = compactor;
    this.#adapter = adapter;
    this.#unwatch = onEngineFault((fault) => this.#die(fault));
  }

  /** Takes a message or a frame. */
  receive(incoming: Incoming): void {
    if (this.#is_dead) return;
    // Nothing that it ends is waited for.
    if (!(incoming instanceof ArrayBuffer) && incoming.type === 'call' && incoming.method === 'stop') {
      this.#stop(incoming.id, incoming.args[0]);
      return;
    }
    // What is written already is flushed at once; what still waits here is flushed when its turn comes.
    if (!(incoming instanceof ArrayBuffer) && incoming.type === 'hidden') this.#host?.hidden();
    if (this.#busy || this.#host?.isSettling || this.#mustWait(incoming)) {
      this.#queue.push(incoming);
      if (!this.#busy) void this.#drain();
      return;
    }
    if (incoming instanceof ArrayBuffer) this.#frame(incoming);
    else if (incoming.type !== 'hidden') {
      this.#queue.push(incoming);
      void this.#drain();
    }
  }

  #mustWait(incoming: Incoming): boolean {
    return incoming instanceof ArrayBuffer && this.#host !== undefined && this.#host.isStalled();
  }

  async #drain(): Promise<void> {
    this.#busy = true;
    for (;;) {
      if (this.#refusal !== undefined) await this.#revive(this.#refusal);
      const refused = this.#refused.shift();
      if (refused !== undefined) {
        await this.#again(refused);
        continue;
      }
      const next = this.#queue.shift();
      if (next === undefined) break;
      if (next instanceof ArrayBuffer) {
        if (this.#host?.isSettling) await this.#frameLater(this.#host, next);
        else {
          while (this.#mustWait(next)) await this.#host?.progress();
          this.#frame(next);
        }
      } else if (next.type === 'hidden') this.#host?.hidden();
      else await this.#answer(next);
    }
    this.#busy = false;
  }

  #frame(request: ArrayBuffer): void {
    if (this.#is_dead) return;
    const host = this.#host;
    try {
      if (host === undefined) throw new VarveError('VARVE_CLOSED', 'The store is closed. Open it again.');
      const { buffer } = host.run(new Uint8Array(request));
      this.#send(buffer, [buffer]);
    } catch (error) {
      // A frame that cannot be answered as a whole is a broken engine or a broken client: all of its requests fail.
      this.#die(error instanceof VarveError ? error : controlError(error));
      return;
    }
    this.#maintain(host);
  }

  /** Runs a frame; its answer leaves when it may, whatever runs meanwhile. */
  async #frameLater(host: EngineHost, bytes: ArrayBuffer): Promise<void> {
    const request = new Uint8Array(bytes);
    const progress: FrameProgress = { answers: [], settled: 0 };
    try {
      this.#sendLater(host, { request, progress, response: await host.answer(request, progress) });
    } catch (error) {
      this.#refuse(host, error, { request, progress });
      return;
    }
    this.#maintain(host);
  }

  #sendLater(host: EngineHost, frame: Required<RefusedFrame>): void {
    const { isQuiet } = host;
    host.settle().then(
      () => {
        const { buffer } = frame.response;
        this.#send(buffer, [buffer]);
        // There is room again: what was put off for want of it.
        if (isQuiet && !host.isQuiet) this.#maintain(host);
      },
      (error: unknown) => this.#refuse(host, error, frame),
    );
  }

  /** What was not committed for want of room is taken back, and its writers are told; any other failure ends the store. */
  #refuse(host: EngineHost, cause: unknown, frame?: RefusedFrame): void {
    const known = settlingFailure(cause);
    const error = known instanceof VarveError ? known : controlError(known);
    if (error.code !== 'VARVE_STORAGE_FULL' || !host.canRevive) {
      this.#die(error);
      return;
    }
    if (host === this.#host) this.#refusal ??= error;
    this.#lastRefusal = error;
    if (frame !== undefined) this.#refused.push(frame);
    if (!this.#busy && !this.#is_dead) void this.#drain();
  }

  async #revive(refusal: VarveError): Promise<void> {
    try {
      const host = await this.#host?.revived(refusal);
      if (this.#is_dead) await host?.close();
      else if (host !== undefined) this.#use(host);
    } catch (error) {
      this.#die(settlingFailure(error));
    }
    this.#refusal = undefined;
  }

  /** Answers a frame whose answer could not leave. */
  async #again(frame: RefusedFrame): Promise<void> {
    const host = this.#host;
    if (host === undefined || this.#lastRefusal === undefined) return;
    try {
      this.#sendLater(host, await answerAgain(host, frame, this.#lastRefusal));
    } catch (error) {
      this.#refuse(host, error, frame);
    }
  }

  #use(host: EngineHost): void {
    this.#host = host;
    host.onFailure = (error) => this.#refuse(host, error);
  }

  /** Answers those who wait for a write, at once or, if that was just done, a little later. */
  #tellAfters(): void {
    const host = this.#host;
    if (host === undefined || this.#afters.length === 0 || this.#afterTimer !== undefined) return;
    const value = host.store.acknowledged();
    const told = this.#afters.filter(({ since }) => since !== value);
    if (told.length === 0) return;
    this.#afters = this.#afters.filter(({ since }) => since === value);
    for (const { id } of told) this.#send({ type: 'result', id, value }, []);
    this.#afterTimer = setTimeout(() => {
      this.#afterTimer = undefined;
      if (!this.#is_dead) this.#tellAfters();
    }, AFTER_MS);
  }

  #maintain(host: EngineHost): void {
    this.#tellAfters();
    try {
      host.afterTurn();
    } catch (error) {
      this.#die(error);
    }
  }

  /** Everything that is pending or to come fails with `error`; files and lock are let go, should the worker live on. */
  #die(error: unknown): void {
    if (this.#is_dead) return;
    this.#send({ type: 'dead', error: toWire(error) }, []);
    this.end();
  }

  /** Nobody listens any more: nothing else is answered, and what is open, or opening, is let go of. */
  end(): void {
    this.#is_dead = true;
    this.#queue.length = 0;
    this.#refused.length = 0;
    this.#unwatch();
    this.#ended.abort();
    for (const running of this.#stoppables.values()) running.abort();
    this.#host?.close().catch(() => undefined);
  }

  async #answer(request: Exclude<Request, { type: 'hidden' }>): Promise<void> {
    const { id } = request;
    try {
      switch (request.type) {
        case 'open': {
          if (this.#host !== undefined) throw new VarveError('VARVE_INTERNAL', 'This worker has a store open already.');
          const host = await EngineHost.open(request.name, {
            ...request.options,
            // As much as suits the store: its clients can follow changes.
            history: request.options.history ?? -1,
            signal: this.#ended.signal,
            adapter: this.#adapter,
            compactor: this.#compactor,
            indexedDb: openIndexedDb,
          });
          if (this.#is_dead) return await host.close();
          this.#use(host);
          const { storage, recovery } = host;
          this.#send({ type: 'opened', id, report: { storage, recovery } }, []);
          return;
        }
        case 'call':
          if (request.method === 'compact') void this.#progressing(id, (tell) => this.#opened().compact(tell));
          else if (request.method === 'after') {
            this.#opened();
            this.#afters.push({ id, since: request.args[0] as number });
            this.#tellAfters();
          } else if (request.method === 'check') {
            const options = request.args[0] as CheckOptions & { readonly number: number };
            void this.#stoppable(id, options.number, (watch) => this.#opened().check({ ...options, ...watch }));
          } else this.#send({ type: 'result', id, value: await this.#opened().statsNow() }, []);
          return;
        case 'list':
          this.#send({ type: 'result', id, value: await listStores(this.#adapter) }, []);
          return;
        case 'repair':
          await this.#stoppable(id, undefined, (watch) =>
            repairStore(request.name, request.request, watch, this.#adapter, indexedDbStorage),
          );
          return;
        case 'delete':
          this.#send({ type: 'result', id, value: await deleteStore(request.name, request.wait, this.#adapter) }, []);
          return;
        case 'close': {
          const host = this.#host;
          this.#host = undefined;
          await host?.close();
          this.#send({ type: 'result', id, value: undefined }, []);
          return;
        }
      }
    } catch (error) {
      this.#send({ type: 'failed', id, error: toWire(error) }, []);
    }
  }

  /** Answers when something is done that takes long, and tells how far it is meanwhile. */
  async #progressing(id: number, work: (tell: (progress: object) => void) => Promise<unknown>): Promise<void> {
    try {
      const value = await work((progress) => this.#send({ type: 'progress', id, value: progress }, []));
      this.#send({ type: 'result', id, value }, []);
    } catch (error) {
      this.#send({ type: 'failed', id, error: toWire(error) }, []);
    }
  }

  /** The same for what `stop` ends. */
  async #stoppable(id: number, number: unknown, work: (watch: RepairWatch) => Promise<unknown>): Promise<void> {
    const controller = new AbortController();
    this.#stoppables.set(number, controller);
    await this.#progressing(id, (onProgress) => work({ onProgress, signal: controller.signal }));
    this.#stoppables.delete(number);
  }

  #stop(id: number, number: unknown): void {
    this.#stoppables.get(number)?.abort();
    this.#send({ type: 'result', id, value: undefined }, []);
  }

  #opened(): EngineHost {
    if (this.#host === undefined) throw new VarveError('VARVE_CLOSED', 'The store is closed. Open it again.');
    return this.#host;
  }
}
