/**
 * Answers the clients of one store: frames with frames, messages with messages.
 *
 * Invariant: everything is answered in the order it came, except `compact` and `check`, which may take minutes. They are
 * answered when they are done, and report their progress meanwhile. While the engine is stalled (two memtables wait, or level 0
 * is full), frames queue here until a job has made room, so that no write is refused only because it came too fast. If
 * no job can make room (a full disk), the frame runs and its writes get the error.
 *
 * With a storage that commits later, frames run one after another, without waiting for commits between them. The answer of a frame
 * is sent when everything that the frame may have seen is committed. Answers are still sent in order. When the storage refuses a
 * commit for lack of room, the store goes back to the committed state before anything else runs. Then the waiting answers are
 * computed again: see `refused-frames.ts`.
 */

import { EngineHost } from '../engine/engine-host.ts';
import { answerAgain } from '../engine/refused-frames.ts';
import { FrameProgress, runSettling } from '../engine/settling-frames.ts';
import { toWire, VarveError } from '../errors.ts';
import { answersOf } from '../protocol/frame-bytes.ts';
import type { OpenReport, Request, StoreState } from '../protocol/messages.ts';
import { deleteShared } from '../share/delete-store.ts';
import type { StorageAdapter } from '../storage/adapter.ts';
import type { SpawnCompactor } from '../storage/compactor-port.ts';
import type { SettlingDevice } from '../storage/device.ts';
import { openIndexedDb } from '../storage/indexeddb/chunk-store.ts';
import { indexedDbStorage } from '../storage/indexeddb/storage.ts';
import type { StoreLock } from '../storage/lock.ts';
import { settlingFailure } from '../storage/settling-failure.ts';
import { listStores } from '../storage/stores.ts';
import { type RepairWatch, repairStore } from '../tools/repair.ts';
import type { CheckOptions } from '../tools/types.ts';
import type { StoreStats } from '../types.ts';
import { Connection, type Send } from './connection.ts';

/** A message or frame from a client. */
export type Incoming = Request | ArrayBuffer;
type OpenRequest = Extract<Request, { type: 'open' }>;

/** The time between two answers to clients that wait for a write (`after`), in milliseconds. */
const AFTER_MS = 5;

/** How long a client that left may come back for its receipts: as long as browsers keep pages in their back/forward caches. */
const RETURN_MS = 15 * 60_000;

/** A message or frame that waits for its answer. */
interface Waiting {
  readonly data: Incoming;
  readonly from: Connection;
}

/** A frame whose answer waits for a commit. */
interface LateFrame {
  readonly from: Connection;
  readonly progress: FrameProgress;
}

/** The lock and the clients of a leader, for opening a store that other tabs share. */
export interface Leadership {
  /** The store's lock, already held. */
  readonly lock: StoreLock;
  /** Called when the store is open. Resolves when all clients of the previous leader have reopened their snapshots and scans. */
  readonly hold: (() => Promise<void>) | undefined;
}

/** Serves the clients of one store. */
export class EngineServer {
  /** The client that created this server. The server ends with it. */
  readonly own: Connection;
  readonly #compactor: SpawnCompactor | undefined;
  readonly #adapter: StorageAdapter | undefined;
  readonly #clients = new Set<Connection>();
  /** The timers that forget clients that left. */
  readonly #away = new Map<number, ReturnType<typeof setTimeout>>();
  readonly #queue: Waiting[] = [];
  /** Frames whose answers could not be sent, because the commit was refused. */
  readonly #refused: LateFrame[] = [];
  /** The reason of the refusal; set until the store has gone back. */
  #refusal: VarveError | undefined;
  /** The reason of the last refusal; stays set. */
  #lastRefusal: VarveError | undefined;
  #host: EngineHost | undefined;
  /** The requests that wait until the store is no longer in the given state. */
  #afters: { readonly id: number; readonly from: Connection; readonly state: StoreState | undefined }[] = [];
  /** A random number that identifies this opening of the store. */
  #opening = 0;
  #afterTimer: ReturnType<typeof setTimeout> | undefined;
  /** Set while something asynchronous is being answered: later messages wait. */
  #busy = false;
  #isDead = false;
  /** If set, new messages are ignored: the next leader answers them. */
  #isRetiring = false;
  /** Resolves when the queue is empty. */
  #drained: Promise<void> = Promise.resolve();
  /** Ends an opening that is under way. */
  readonly #ended = new AbortController();
  /** Called when a client has reopened its snapshots and scans. */
  onReturned: (client: number) => void = () => undefined;

  constructor(own: Connection | Send, compactor: SpawnCompactor | undefined, adapter?: StorageAdapter) {
    this.own = own instanceof Connection ? own : new Connection(0, own);
    this.#clients.add(this.own);
    this.#compactor = compactor;
    this.#adapter = adapter;
  }

  /** How many clients it has. */
  get clients(): number {
    return this.#clients.size;
  }

  /** Handles a message or a frame. */
  receive(data: Incoming, from: Connection = this.own): void {
    if (this.#isDead || this.#isRetiring || from.isGone) return;
    if (!this.#clients.has(from)) {
      this.#clients.add(from);
      clearTimeout(this.#away.get(from.client));
      this.#away.delete(from.client);
    }
    // A `stop` is answered at once. It does not wait for the work that it ends.
    if (!(data instanceof ArrayBuffer) && data.type === 'call' && data.method === 'stop') {
      from.stoppables.get(data.args[0])?.abort();
      from.send({ type: 'result', id: data.id, value: undefined });
      return;
    }
    // Finished writes are flushed at once. Writes that still wait in the queue are flushed when their turn comes.
    if (!(data instanceof ArrayBuffer) && data.type === 'hidden') this.#host?.hidden();
    if (this.#busy || this.#host?.settling || this.#mustWait(data)) {
      this.#queue.push({ data, from });
      if (!this.#busy) this.#drained = this.#drain();
      return;
    }
    if (data instanceof ArrayBuffer) this.#frame(data, from);
    else if (data.type !== 'hidden') {
      this.#queue.push({ data, from });
      this.#drained = this.#drain();
    }
  }

  /** Opens a store whose lock is held; clients that come meanwhile wait. Rejects as `EngineHost.open` does. */
  async open(request: OpenRequest, leadership: Leadership): Promise<OpenReport> {
    this.#busy = true;
    const opening = this.#open(request, leadership);
    this.#drained = opening.then(
      () => this.#drain(),
      () => {
        // The next leader announces itself to the clients that came meanwhile.
        this.#queue.length = 0;
        this.#busy = false;
      },
    );
    return opening;
  }

  /**
   * A client is gone: its snapshots and scans are closed. A client that may return (its page may be in the back/forward cache) can
   * still ask for the answers that it did not get, for a while.
   */
  leave(connection: Connection, mayReturn: boolean): void {
    if (!this.#clients.delete(connection)) return;
    connection.leave();
    const { client } = connection;
    this.#host?.forget(client, mayReturn);
    if (!mayReturn) return;
    clearTimeout(this.#away.get(client));
    const forget = (): void => {
      this.#away.delete(client);
      this.#host?.forget(client, false);
    };
    this.#away.set(client, setTimeout(forget, RETURN_MS));
  }

  /** Another connection of the same client takes the place of this one: what it has open stays. */
  replace(connection: Connection): void {
    this.#clients.delete(connection);
    connection.leave();
  }

  /** Answers what came so far, closes the store, and ignores later messages: another worker is to lead. */
  async retire(): Promise<void> {
    this.#isRetiring = true;
    await this.#drained;
    const host = this.#host;
    await host?.settle().catch(() => undefined);
    // Clients repeat their running requests with the next leader. So they must not get an error because the work ends here.
    for (const client of this.#clients) client.leave();
    this.#isDead = true;
    for (const timer of this.#away.values()) clearTimeout(timer);
    this.#host = undefined;
    await host?.close();
  }

  #mustWait(data: Incoming): boolean {
    return data instanceof ArrayBuffer && this.#host !== undefined && this.#host.isStalled();
  }

  async #drain(): Promise<void> {
    this.#busy = true;
    for (;;) {
      await this.#answerRefused();
      const next = this.#queue.shift();
      if (next === undefined) break;
      const { data, from } = next;
      if (from.isGone) continue;
      if (data instanceof ArrayBuffer) {
        if (this.#host?.settling) {
          await this.#frameLater(this.#host, { from, progress: new FrameProgress(new Uint8Array(data)) });
        } else {
          while (this.#mustWait(data)) await this.#host?.progress();
          this.#frame(data, from);
        }
      } else if (data.type === 'hidden') this.#host?.hidden();
      else if (data.type === 'returned') this.onReturned(from.client);
      else await this.#answer(data, from);
    }
    this.#busy = false;
  }

  /** After a refused commit: goes back, and answers the frames whose answers could not be sent. */
  async #answerRefused(): Promise<void> {
    for (;;) {
      if (this.#refusal !== undefined) await this.#revive(this.#refusal);
      const frame = this.#refused.shift();
      if (frame === undefined) return;
      if (this.#host !== undefined) await this.#frameLater(this.#host, frame, this.#lastRefusal);
    }
  }

  /** Resolves when every frame that ran has its answer. */
  async #answerAll(): Promise<void> {
    do {
      await this.#answerRefused();
      await this.#host?.settle().catch(() => undefined);
    } while (this.#refusal !== undefined || this.#refused.length > 0);
  }

  #frame(request: ArrayBuffer, from: Connection): void {
    if (this.#isDead) return;
    const host = this.#host;
    try {
      if (host === undefined) throw new VarveError('VARVE_CLOSED', 'The store is closed. Open it again.');
      host.respond(new Uint8Array(request), ({ buffer }) => from.send(buffer, [buffer]));
    } catch (error) {
      // If a frame cannot be answered at all, the engine or the client is broken: all requests fail.
      this.#die(error);
      return;
    }
    this.#maintain(host);
  }

  /** Runs a frame, or answers a refused frame again. The answer is sent when its commit is done; other frames may run meanwhile. */
  async #frameLater(host: EngineHost, frame: LateFrame, refusal?: VarveError): Promise<void> {
    const { progress, from } = frame;
    try {
      const device = host.settling as SettlingDevice;
      // A frame that is answered again writes little, and must not wait for a job that fails.
      if (refusal === undefined) await host.ready();
      const response = await (refusal === undefined
        ? runSettling(host, device, progress)
        : answerAgain(host, device, progress, refusal));
      const { isQuiet } = host;
      host.settle().then(
        () => {
          const { buffer } = response;
          from.send(buffer, [buffer]);
          // There is room again: do the maintenance that was delayed for lack of room.
          if (isQuiet && !host.isQuiet) this.#maintain(host);
        },
        (error: unknown) => {
          progress.answers = answersOf(response);
          this.#refuse(host, error, frame);
        },
      );
    } catch (error) {
      this.#refuse(host, error, frame);
      return;
    }
    if (refusal === undefined) this.#maintain(host);
  }

  /** Writes that were not committed for lack of room are taken back, and their writers get the error. Any other failure ends the store. */
  #refuse(host: EngineHost, cause: unknown, frame?: LateFrame): void {
    const known = settlingFailure(cause);
    const error = known instanceof VarveError ? known : VarveError.fromWire(toWire(known));
    if (error.code !== 'VARVE_STORAGE_FULL' || !host.canRevive) {
      this.#die(error);
      return;
    }
    if (host === this.#host) this.#refusal ??= error;
    this.#lastRefusal = error;
    if (frame !== undefined) this.#refused.push(frame);
    if (!this.#busy && !this.#isDead) this.#drained = this.#drain();
  }

  async #revive(refusal: VarveError): Promise<void> {
    try {
      const host = await this.#host?.revived(refusal);
      if (host?.hasLost) for (const { progress } of this.#refused) progress.isLost = true;
      if (this.#isDead) await host?.close();
      else if (host !== undefined) this.#use(host);
    } catch (error) {
      this.#die(settlingFailure(error));
    }
    this.#refusal = undefined;
  }

  #use(host: EngineHost): void {
    this.#host = host;
    host.onFailure = (error) => this.#refuse(host, error);
    host.onEnd((cause) => this.#die(cause));
    // The state that was reported before may have been taken back. So this is another state, even with the same sequence.
    this.#opening = Math.random();
    this.#tellAfters();
  }

  /** Answers the requests that wait for a write: at once or, after a very recent answer, a little later. */
  #tellAfters(): void {
    const host = this.#host;
    if (host === undefined || this.#afters.length === 0 || this.#afterTimer !== undefined) return;
    const value: StoreState = { sequence: host.store.acknowledged(), opening: this.#opening };
    const isOld = (state: StoreState | undefined): boolean =>
      state?.sequence !== value.sequence || state.opening !== value.opening;
    const told = this.#afters.filter(({ state }) => isOld(state));
    if (told.length === 0) return;
    this.#afters = this.#afters.filter(({ state, from }) => !isOld(state) && !from.isGone);
    for (const { id, from } of told) from.send({ type: 'result', id, value });
    this.#afterTimer = setTimeout(() => {
      this.#afterTimer = undefined;
      if (!this.#isDead) this.#tellAfters();
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

  /** All pending and later calls fail with `error`. Files and lock are released, in case the worker lives on. */
  #die(error: unknown): void {
    if (this.#isDead) return;
    for (const client of this.#clients) client.send({ type: 'dead', error: toWire(error) });
    this.end();
  }

  /** No client listens any more: nothing else is answered, and an open store, or one that is opening, is closed. */
  end(): void {
    this.#isDead = true;
    this.#queue.length = 0;
    this.#refused.length = 0;
    this.#ended.abort();
    for (const timer of this.#away.values()) clearTimeout(timer);
    for (const client of this.#clients) client.leave();
    this.#host?.close().catch(() => undefined);
  }

  async #answer(request: Request, from: Connection): Promise<void> {
    if (!('id' in request)) return;
    const { id } = request;
    try {
      switch (request.type) {
        case 'open':
          if (this.#host !== undefined) throw new VarveError('VARVE_INTERNAL', 'This worker has a store open already.');
          from.send({ type: 'opened', id, report: await this.#open(request) });
          return;
        case 'join': {
          const host = this.#opened();
          const { storage, recovery } = host;
          if (request.storage !== undefined && request.storage !== storage.kind) {
            throw new VarveError('VARVE_LOCKED', `Another tab has this store open in the storage '${storage.kind}'.`);
          }
          if (request.isLogged && !host.hasLog) {
            throw new VarveError('VARVE_LOCKED', "Another tab has this store open with durability: 'memory'.");
          }
          from.send({ type: 'opened', id, report: { storage, recovery } });
          return;
        }
        case 'call':
          if (request.method === 'compact') void this.#progressing(id, from, (tell) => this.#opened().compact(tell));
          else if (request.method === 'after') {
            this.#opened();
            this.#afters.push({ id, from, state: request.args[0] as StoreState | undefined });
            this.#tellAfters();
          } else if (request.method === 'check') {
            const options = request.args[0] as CheckOptions & { readonly number: number };
            void this.#stoppable(id, from, options.number, (watch) => this.#opened().check({ ...options, ...watch }));
          } else from.send({ type: 'result', id, value: await this.#stats() });
          return;
        case 'list':
          from.send({ type: 'result', id, value: await listStores(this.#adapter) });
          return;
        case 'repair':
          await this.#stoppable(id, from, undefined, (watch) =>
            repairStore(request.name, request.request, watch, this.#adapter, indexedDbStorage),
          );
          return;
        case 'delete':
          from.send({
            type: 'result',
            id,
            value: await deleteShared(request.name, request.lockTimeout, this.#adapter),
          });
          return;
        case 'close': {
          if (from !== this.own) {
            // After the answers that wait for their commit.
            await this.#answerAll();
            from.send({ type: 'result', id, value: undefined });
            this.leave(from, false);
            return;
          }
          this.#isRetiring = true;
          await this.#answerAll();
          const host = this.#host;
          // The next leader answers them.
          for (const client of this.#clients) if (client !== from) client.leave();
          this.#host = undefined;
          await host?.close();
          from.send({ type: 'result', id, value: undefined });
          return;
        }
      }
    } catch (error) {
      from.send({ type: 'failed', id, error: toWire(error) });
    }
  }

  async #open({ name, options }: OpenRequest, leadership?: Leadership): Promise<OpenReport> {
    const host = await EngineHost.open(name, {
      ...options,
      // -1: as much history as suits the store, so that its clients can follow changes.
      historyBytes: options.historyBytes ?? -1,
      ...leadership,
      signal: this.#ended.signal,
      adapter: this.#adapter,
      compactor: this.#compactor,
      indexedDb: openIndexedDb,
    });
    if (this.#isDead) {
      await host.close();
      throw new VarveError('VARVE_CLOSED', 'The store was closed while it opened.');
    }
    this.#use(host);
    return { storage: host.storage, recovery: host.recovery };
  }

  async #stats(): Promise<StoreStats> {
    const stats = await this.#opened().statsNow();
    const sharing = { leads: true, via: 'worker', clients: this.#clients.size } as const;
    return this.own.client === 0 ? stats : { ...stats, sharing };
  }

  /** Answers when a long task is done, and reports its progress meanwhile. */
  async #progressing(
    id: number,
    from: Connection,
    work: (tell: (progress: object) => void) => Promise<unknown>,
  ): Promise<void> {
    try {
      const value = await work((progress) => from.send({ type: 'progress', id, value: progress }));
      from.send({ type: 'result', id, value });
    } catch (error) {
      from.send({ type: 'failed', id, error: toWire(error) });
    }
  }

  /** The same for a task that `stop` can end. */
  async #stoppable(
    id: number,
    from: Connection,
    number: unknown,
    work: (watch: RepairWatch) => Promise<unknown>,
  ): Promise<void> {
    const controller = new AbortController();
    from.stoppables.set(number, controller);
    await this.#progressing(id, from, (onProgress) => work({ onProgress, signal: controller.signal }));
    from.stoppables.delete(number);
  }

  #opened(): EngineHost {
    if (this.#host === undefined) throw new VarveError('VARVE_CLOSED', 'The store is closed. Open it again.');
    return this.#host;
  }
}
