/**
 * Answers the clients of one store: frames with frames, messages with messages.
 *
 * Invariant: everything is answered in the order it came, except `compact` and `check`, which may take minutes. They are
 * answered when they are done, and report their progress meanwhile. Frames that cannot run at once queue here, in the same line, so that
 * no write is refused only because it came too fast: see `frame-runner.ts` and `deferred-runner.ts`.
 */

import { DeferredRunner } from '../engine/deferred-runner.ts';
import { EngineHost } from '../engine/engine-host.ts';
import { type FrameOwner, type FrameRunner, ImmediateRunner } from '../engine/frame-runner.ts';
import { closedError, toWire, VarveError } from '../errors.ts';
import { transferOf } from '../protocol/frame.ts';
import { readsOf, writesOf } from '../protocol/frame-footprint.ts';
import { markResponse, RequestFlag, takeFlags } from '../protocol/lease.ts';
import type { KeyChange, OpenReport, Request, StoreState } from '../protocol/messages.ts';
import { VERSION_KEY } from '../protocol/version.ts';
import { deleteShared } from '../share/delete-store.ts';
import type { StorageAdapter } from '../storage/adapter.ts';
import { commitFailure } from '../storage/commit-failure.ts';
import type { SpawnCompactor } from '../storage/compactor-port.ts';
import { indexedDbStorage } from '../storage/indexeddb/storage.ts';
import type { StoreLock } from '../storage/lock.ts';
import { listStores } from '../storage/stores.ts';
import type { RepairWatch } from '../tools/repair.ts';
import type { CheckOptions } from '../tools/types.ts';
import type { StoreStats } from '../types.ts';
import { Connection, type Send } from './connection.ts';
import type { LaterCode } from './later-code.ts';
import { Leases } from './leases.ts';
import { Versions } from './versions.ts';

/** A message or frame from a client. */
export type Incoming = Request | ArrayBuffer;
type OpenRequest = Extract<Request, { type: 'open' }>;

/** The time between two answers to clients that wait for a write (`after`), in milliseconds. */
const AFTER_MS = 5;

/** How long a client that left may return for its receipts: as long as browsers keep pages in their back/forward caches. */
const RETURN_MS = 15 * 60_000;

/** A message or frame that waits for its answer. */
interface Waiting {
  readonly data: Incoming;
  readonly from: Connection;
}

/** The lock and the clients of a leader, for opening a store that other tabs share. */
interface Leadership {
  /** The store's lock, already held. */
  readonly lock: StoreLock;
  /** Called when the store is open. Resolves when all clients of the previous leader have reopened their snapshots and scans. */
  readonly hold: (() => Promise<void>) | undefined;
}

/** Serves the clients of one store. */
export class EngineServer implements FrameOwner {
  /** The client that created this server. The server ends with it. */
  readonly own: Connection;
  readonly #compactor: SpawnCompactor | undefined;
  readonly #adapter: StorageAdapter | undefined;
  readonly #later: LaterCode;
  /** The clients that have joined. */
  readonly #clients = new Set<Connection>();
  /** The leases of its clients; undefined if it can have one client only. */
  readonly #leases: Leases<Connection, Waiting> | undefined;
  readonly #versions = new Versions(
    this.#clients,
    async () => this.#opened().get(VERSION_KEY),
    (client, request) => this.#opened().store.isDone(client, request),
  );
  #leaseTimer: ReturnType<typeof setTimeout> | undefined;
  /** The timers that release the requests of clients that left. */
  readonly #away = new Map<number, ReturnType<typeof setTimeout>>();
  readonly #queue: Waiting[] = [];
  #host: EngineHost | undefined;
  /** Runs frames while a store is open. */
  #frames: FrameRunner | undefined;
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

  constructor(
    own: Connection | Send,
    compactor: SpawnCompactor | undefined,
    adapter: StorageAdapter | undefined,
    later: LaterCode,
  ) {
    this.own = own instanceof Connection ? own : new Connection(0, own);
    this.#clients.add(this.own);
    this.#compactor = compactor;
    this.#adapter = adapter;
    this.#later = later;
    if (this.own.client === 0) return;
    this.#leases = new Leases({
      now: () => performance.now(),
      wakeAt: (time) => this.#wakeLeasesAt(time),
      isAlone: () => this.#clients.size === 1,
      onFree: (_, waiting) => this.#admitAgain(waiting),
    });
  }

  /** Called when it is known which clients live. They may have leases of the former leader. */
  know(clients: readonly number[]): void {
    this.#leases?.know(clients);
  }

  /** A client keeps nothing of the former leader's time: it has joined this leader, or is gone. */
  clientClosed(client: number): void {
    this.#leases?.clientClosed(client);
  }

  /** Handles a message or a frame. */
  receive(data: Incoming, from: Connection = this.own): void {
    if (this.#isDead || this.#isRetiring || from.isGone) return;
    if (!(data instanceof ArrayBuffer)) {
      if (data.type === 'revoked') return this.#leases?.confirm(from, data.revocation);
      if (data.type === 'join' || data.type === 'returned') this.clientClosed(from.client);
    }
    // A `stop` is answered at once. It does not wait for the work that it ends, which may not have begun.
    if (!(data instanceof ArrayBuffer) && data.type === 'call' && data.method === 'stop') {
      from.stoppable(data.args[0]).abort();
      from.send({ type: 'result', id: data.id, value: undefined });
      return;
    }
    // Finished writes are flushed at once. Writes that still wait in the queue are flushed when their turn comes.
    const isHidden = !(data instanceof ArrayBuffer) && data.type === 'hidden';
    if (isHidden) this.#host?.upkeep.hidden();
    if (this.#busy) this.#queue.push({ data, from });
    else if (data instanceof ArrayBuffer) {
      const running = this.#frame(data, from);
      if (running !== undefined) this.#drained = this.#drain(running);
    } else if (!isHidden) {
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
   * still ask for the answers that it did not get, for a while. Resolves when the version of its code no longer counts.
   */
  async leave(connection: Connection, mayReturn: boolean): Promise<void> {
    connection.leave();
    if (!this.#clients.delete(connection)) return;
    this.#leases?.leave(connection);
    const { client } = connection;
    this.#host?.releaseClient(client, mayReturn);
    if (mayReturn) {
      clearTimeout(this.#away.get(client));
      const release = (): void => {
        this.#away.delete(client);
        this.#host?.releaseClient(client, false);
      };
      this.#away.set(client, setTimeout(release, RETURN_MS));
    }
    await this.#versions.changed(connection);
  }

  /** Another connection of the same client takes the place of this one: what it has open stays. */
  replace(connection: Connection): void {
    this.#clients.delete(connection);
    connection.leave();
    this.#leases?.leave(connection);
  }

  /** Answers what came so far, closes the store, and ignores later messages: another worker is to lead. */
  async retire(): Promise<void> {
    this.#isRetiring = true;
    await this.#drained;
    const host = this.#host;
    await host?.committed().catch(() => undefined);
    // Clients repeat their running requests with the next leader. So they must not get an error because the work ends here.
    for (const client of this.#clients) client.leave();
    this.#isDead = true;
    for (const timer of [this.#leaseTimer, ...this.#away.values()]) clearTimeout(timer);
    await this.#closeHost();
  }

  /** Answers the messages in the queue, after the frame that runs. */
  async #drain(running?: Promise<void>): Promise<void> {
    this.#busy = true;
    await running;
    for (;;) {
      await this.#frames?.answerRefused();
      // A commit may have been refused before this continued.
      if (this.#frames?.isRefused) continue;
      const next = this.#queue.shift();
      if (next === undefined) break;
      const { data, from } = next;
      if (from.isGone) continue;
      if (data instanceof ArrayBuffer) {
        const running = this.#frame(data, from);
        if (running !== undefined) await running;
      } else if (this.#leases?.admit(from, next) === false) continue;
      else if (data.type === 'hidden') this.#host?.upkeep.hidden();
      else if (data.type === 'returned') this.onReturned(from.client);
      else await this.#answer(data, from);
    }
    this.#busy = false;
  }

  /** Runs a frame; when the promise resolves, the next may run. Without a promise it has run. */
  #frame(request: ArrayBuffer, from: Connection): Promise<void> | undefined {
    if (this.#isDead) return undefined;
    if (this.#frames === undefined) {
      this.onFailure(closedError());
      return undefined;
    }
    const bytes = this.#versions.admit(new Uint8Array(request), from);
    if (bytes === undefined) return undefined;
    const leases = this.#leases;
    if (leases?.admit(from, { data: bytes.buffer, from }, () => writesOf(bytes)) === false) return undefined;
    const wantsLease = (takeFlags(bytes) & RequestFlag.lease) !== 0;
    const grant = wantsLease ? leases?.begin(from, () => readsOf(bytes)) : undefined;
    return this.#frames.run(bytes, (response) => {
      if (grant !== undefined) markResponse(response, leases?.grant(from, grant) ?? 0);
      from.send(response.buffer, transferOf(response.buffer));
    });
  }

  /** Handles messages that were held, before the later ones of their client. */
  #admitAgain(waiting: readonly Waiting[]): void {
    this.#queue.unshift(...waiting);
    if (!this.#busy && !this.#isDead) this.#drained = this.#drain();
  }

  #wakeLeasesAt(time: number): void {
    clearTimeout(this.#leaseTimer);
    if (this.#isDead) return;
    this.#leaseTimer = setTimeout(() => this.#leases?.wake(), Math.max(0, time - performance.now()));
  }

  /** The frames of the store need an answer again. */
  onRefused(): void {
    if (!this.#busy && !this.#isDead) this.#drained = this.#drain();
  }

  /** A frame ran. */
  onRun(): void {
    if (this.#isDead) return;
    this.#answerAfters();
    try {
      this.#host?.upkeep.afterTurn();
    } catch (error) {
      this.onFailure(error);
    }
  }

  /** Uses a host from now on. */
  onReplaced(host: EngineHost): void {
    this.#host = host;
    host.onEnd((cause) => this.onFailure(cause));
    // The state that was reported before may have been taken back. So this is another state, even with the same sequence.
    this.#opening = Math.random();
    this.#answerAfters();
  }

  /** All pending and later calls fail with `error`. Files and lock are released, in case the worker goes on running. */
  onFailure(error: unknown): void {
    if (this.#isDead) return;
    for (const client of this.#clients) client.send({ type: 'dead', error: toWire(error) });
    this.end();
  }

  /** Answers the requests that wait for a write: at once or, after a very recent answer, a little later. */
  #answerAfters(): void {
    const host = this.#host;
    if (host === undefined || this.#afters.length === 0 || this.#afterTimer !== undefined) return;
    const value: StoreState = { sequence: host.store.acknowledged(), opening: this.#opening };
    const isOld = (state: StoreState | undefined): boolean =>
      state?.sequence !== value.sequence || state.opening !== value.opening;
    const due = this.#afters.filter(({ state }) => isOld(state));
    if (due.length === 0) return;
    this.#afters = this.#afters.filter(({ state, from }) => !isOld(state) && !from.isGone);
    for (const { id, from } of due) from.send({ type: 'result', id, value });
    this.#afterTimer = setTimeout(() => {
      this.#afterTimer = undefined;
      if (!this.#isDead) this.#answerAfters();
    }, AFTER_MS);
  }

  /** No client listens any more: nothing else is answered, and an open store, or one that is opening, is closed. */
  end(): void {
    this.#isDead = true;
    this.#queue.length = 0;
    this.#frames?.abort();
    this.#ended.abort();
    for (const timer of [this.#leaseTimer, ...this.#away.values()]) clearTimeout(timer);
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
          const verifying = host.verifyKey(request.key);
          // That takes time for a passphrase. Others are answered meanwhile; this client sends nothing before it is answered.
          if (verifying === undefined) await this.#admit(request, from);
          else
            void verifying
              .catch((error) => {
                const next = (request.nextKeys ?? []).map((key) => host.verifyKey(key));
                return Promise.any(next).catch(() => Promise.reject(error));
              })
              .then(() => this.#admit(request, from))
              .catch((error) => this.#refuse(request, from, error));
          return;
        }
        case 'call':
          if (request.method === 'compact')
            void this.#progressing(id, from, (report) => this.#opened().compact(report));
          else if (request.method === 'after') {
            this.#opened();
            this.#afters.push({ id, from, state: request.args[0] as StoreState | undefined });
            this.#answerAfters();
          } else if (request.method === 'keys') {
            void this.#progressing(id, from, () => this.#opened().changeKeys(request.args[0] as KeyChange));
          } else if (request.method === 'check') {
            const options = request.args[0] as CheckOptions & { readonly number: number };
            void this.#stoppable(id, from, options.number, (watch) => this.#opened().check({ ...options, ...watch }));
          } else {
            const value = request.method === 'renew' ? this.#leases?.renew(from) : await this.#stats();
            from.send({ type: 'result', id, value });
          }
          return;
        case 'list':
          from.send({ type: 'result', id, value: await listStores(this.#adapter) });
          return;
        case 'repair':
          await this.#stoppable(id, from, undefined, (watch) => {
            const { repair, indexedDb } = this.#later;
            return repair(request.name, request.request, watch, this.#adapter, indexedDbStorage(indexedDb.open));
          });
          return;
        case 'delete':
          from.send({
            type: 'result',
            id,
            value: await deleteShared(request.name, { lockTimeout: request.lockTimeout }, this.#adapter),
          });
          return;
        case 'close': {
          if (from !== this.own) {
            // After the answers that wait for their commit.
            await this.#frames?.answered();
            from.send({ type: 'result', id, value: undefined });
            await this.leave(from, false);
            return;
          }
          this.#isRetiring = true;
          await this.#frames?.answered();
          // The next leader answers them.
          for (const client of this.#clients) if (client !== from) client.leave();
          await this.#closeHost();
          from.send({ type: 'result', id, value: undefined });
          return;
        }
      }
    } catch (error) {
      this.#refuse(request, from, error);
    }
  }

  /** Whether a join gets no answer any more: the next leader announces itself to that client. */
  get #isClosing(): boolean {
    return this.#isRetiring || this.#isDead;
  }

  #refuse({ type, id }: Extract<Request, { id: number }>, from: Connection, error: unknown): void {
    if (type === 'join' && this.#isClosing) return;
    from.send({ type: 'failed', id, error: toWire(error) });
  }

  /** Lets a client in. */
  async #admit(request: Extract<Request, { type: 'join' }>, from: Connection): Promise<void> {
    // The client may have gone while its key was verified. It would count for ever then, and so would the version of its code.
    if (this.#isClosing || from.isGone) return;
    const host = this.#opened();
    const { storage } = host;
    if (request.storage !== undefined && request.storage !== storage.kind) {
      throw new VarveError('VARVE_LOCKED', `Another tab has this store open in the storage '${storage.kind}'.`);
    }
    if (request.isLogged && !host.hasLog) {
      throw new VarveError('VARVE_LOCKED', "Another tab has this store open with durability: 'memory'.");
    }
    this.#clients.add(from);
    clearTimeout(this.#away.get(from.client));
    this.#away.delete(from.client);
    from.send({ type: 'opened', id: request.id, report: reportOf(host) });
    await this.#versions.changed(from);
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
      indexedDb: this.#later.indexedDb.open,
      keySlots: this.#later.keySlots,
    });
    if (this.#isDead) {
      await host.close();
      throw new VarveError('VARVE_CLOSED', 'The store was closed while it opened.');
    }
    this.#frames =
      host.deferred === undefined ? new ImmediateRunner(host, this) : new DeferredRunner(host, host.deferred, this);
    this.onReplaced(host);
    await this.#versions.changed(this.own);
    return reportOf(host);
  }

  /** Closes the store; frames that run from now on get no answer. */
  async #closeHost(): Promise<void> {
    const host = this.#host;
    this.#host = undefined;
    this.#frames?.abort();
    this.#frames = undefined;
    await host?.close();
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
    work: (report: (progress: object) => void) => Promise<unknown>,
  ): Promise<void> {
    try {
      const value = await work((progress) => from.send({ type: 'progress', id, value: progress }));
      from.send({ type: 'result', id, value });
    } catch (error) {
      // The device's own error would look like a fault of the engine.
      from.send({ type: 'failed', id, error: toWire(commitFailure(error)) });
    }
  }

  /** The same for a task that `stop` can end. */
  async #stoppable(
    id: number,
    from: Connection,
    number: unknown,
    work: (watch: RepairWatch) => Promise<unknown>,
  ): Promise<void> {
    const { signal } = from.stoppable(number);
    await this.#progressing(id, from, (onProgress) => work({ onProgress, signal }));
    from.stoppables.delete(number);
  }

  #opened(): EngineHost {
    if (this.#host === undefined) throw closedError();
    return this.#host;
  }
}

function reportOf({ store, storage, recovery }: EngineHost): OpenReport {
  return { id: store.id, storage, recovery };
}
