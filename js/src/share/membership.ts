/**
 * A page's part in a store that tabs share. The page has its own worker, which leads or stands in line. It also has a client, which
 * is connected to the worker that leads.
 *
 * Invariant: the client is connected to one leader or to none. The page's own worker reports which worker leads. A worker that was
 * ended is replaced, so there is always one in line for this page.
 */

import { Client, type Link, noWorker, type Port, workerDied } from '../client/client.ts';
import { deletedError, hasCode, VarveError } from '../errors.ts';
import type { EngineOptions, OpeningKeys, OpenReport, Request, Response } from '../protocol/messages.ts';
import { outOfReach } from '../storage/opfs-realm.ts';
import { LeaderLink, stalled } from './link.ts';
import { hold, type Release, whenFree } from './locks.ts';
import { type ChannelMessage, channelOf, clientLock, PROTOCOL, uniqueName, workerLock } from './names.ts';
import { isVisible, watchPage } from './page.ts';
import { unanswered } from './unanswered.ts';

/** How a store is opened together with other tabs. */
export interface MembershipOptions {
  readonly name: string;
  readonly engine: EngineOptions;
  /** How long to wait for a worker that has the store open and does not share it, in milliseconds. */
  readonly lockTimeout: number;
  readonly signal: AbortSignal | undefined;
  readonly spawn: () => Port;
  /** Compiles the engine here while the worker starts. Without it, or if it fails, the worker compiles the engine. */
  readonly compile?: (() => Promise<WebAssembly.Module>) | undefined;
}

/** How long a leader has to answer, however short `lockTimeout` is, in milliseconds. */
const ANSWER_MS = 1000;
/** How long calls wait for a leader, and for a leader that is opening the store, in seconds. */
const STALL_S = 5;
const OPENING_S = 30;
/** After a longer absence, the receipts of a page may be gone: see `RETURN_MS` of engine-server.ts. */
const AWAY_MS = 10 * 60_000;
/** How many workers in a row may be ended before they lead or find the leader. */
const WORKERS_MAX = 3;
/** How long until a worker that did not start is started again, at most, in seconds. It begins with one second, and doubles. */
const PAUSE_S_MAX = 30;

/** The leader, as this page's own worker reports it. */
type Leader = Extract<Response, { type: 'leader' }>;

/** A store that was joined. */
interface Joined {
  readonly client: Client;
  readonly report: OpenReport;
  /** To be called when the store has other keys, or may get them; its `EngineOptions` have them already. */
  readonly onKeys: (keys: OpeningKeys) => void;
}

/** One of the pages that have the store open. */
export class Membership {
  readonly client: Client;
  readonly #options: MembershipOptions;
  #port: Port | undefined;
  #member = '';
  #link: LeaderLink | undefined;
  /** The term of the leader, if it is not this page's own worker. */
  #term: string | undefined;
  #attempt = 0;
  #channel: BroadcastChannel | undefined;
  #broker: MessagePort | undefined;
  #hasNoBroker = typeof SharedWorker !== 'function';
  #clientHeld: Promise<Release> | undefined;
  #worker = new AbortController();
  /** The worker whose end it waits for. */
  #watched = '';
  #spawned = 0;
  /** Why the last worker did not start, how long to wait until the next one, and how much of that is left, in seconds. */
  #refusal: unknown;
  #pause = 0;
  #left = 0;
  /** The report of the first opening. */
  #first: OpenReport | undefined;
  #isOver = false;
  #isSuspended = false;
  #suspendedAt = 0;
  /** Whether this page's own worker leads, or is about to. */
  #isOwn = false;
  /** Seconds since a leader was reached. */
  #lost = 0;
  readonly #timer: ReturnType<typeof setInterval>;
  #answer: { resolve: (report: OpenReport) => void; reject: (error: unknown) => void } | undefined;
  readonly #unwatch: () => void;

  private constructor(options: MembershipOptions) {
    this.#options = options;
    this.client = new Client(() => this.#end(), options.name);
    this.#unwatch = watchPage(this);
    this.#timer = setInterval(() => this.#watch(), 1000);
  }

  /** Opens a store, or joins those that have it open. Rejects as `open` does. */
  static async join(options: MembershipOptions): Promise<Joined> {
    const { signal, lockTimeout, name } = options;
    const membership = new Membership(options);
    const { client } = membership;
    const abort = (): void => {
      if (signal !== undefined) membership.#fail(signal.reason);
    };
    signal?.addEventListener('abort', abort, { once: true });
    const timer = setTimeout(
      () => {
        if (membership.#isAnswered) return;
        unanswered(name).then((error) => membership.#isAnswered || membership.#fail(error));
      },
      Math.max(lockTimeout, ANSWER_MS),
    );
    try {
      const report = await new Promise<OpenReport>((resolve, reject) => {
        membership.#answer = { resolve, reject };
        membership.#start();
      });
      return { client, report, onKeys: (keys) => membership.#send({ type: 'key', keys }) };
    } catch (error) {
      client.fail(new VarveError('VARVE_CLOSED', 'The store did not open.'));
      throw error;
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', abort);
    }
  }

  /** The page became visible or hidden. */
  see(isVisible: boolean): void {
    if (!isVisible) this.client.hide();
    this.#send({ type: isVisible ? 'visible' : 'hidden' });
  }

  /** The page is being left. */
  leave(): void {
    this.see(false);
    this.client.linger();
  }

  /**
   * The page may soon be frozen, or goes into the back/forward cache and may never come back: nobody must wait for it. Its worker
   * is ended before that, because it may be frozen before it has closed the store. The operating system has the acknowledged writes,
   * and the next leader flushes them. Unanswered calls are sent again.
   */
  suspend(): void {
    if (this.#isSuspended) return;
    this.#isSuspended = true;
    this.#suspendedAt = Date.now();
    this.client.linger();
    this.client.endHandles(
      new VarveError('VARVE_RETRY', 'The page was frozen, or in the back/forward cache. Begin again.'),
    );
    this.#dismiss();
    this.#leaveAll();
    // Browsers treat the lock of a suspended page differently (WebKit releases it). A leader that gets it keeps the receipts for a while.
    this.#release();
  }

  /** The page came back. */
  resume(): void {
    if (!this.#isSuspended || this.#isOver) return;
    this.#isSuspended = false;
    // Nobody knows any more which of the pending calls were done. They must not be done again.
    if (Date.now() - this.#suspendedAt > AWAY_MS) this.client.abortCalls(stalled());
    this.#start();
  }

  /** The network is back. */
  retry(): void {
    if (this.#left > 0) this.#start();
  }

  /** Whether this page's own worker has the lock, so that it need not wait for another one. */
  #isOpening = false;

  /** Whether it is known which worker opens the store, or has it open. */
  get #isAnswered(): boolean {
    return this.#isOpening || this.#link?.isWelcome === true;
  }

  #start(): void {
    this.#dismiss();
    const { name, engine, spawn, compile } = this.#options;
    const member = uniqueName();
    if (this.#clientHeld === undefined) {
      this.#clientHeld = hold(clientLock(name, this.client.id));
      // Refused where the page may store nothing. There the opening fails for the same reason.
      this.#clientHeld.catch(() => undefined);
    }
    this.#member = member;
    const refused = (cause: unknown): void => this.#refused(noWorker(cause));
    try {
      const port = spawn();
      this.#port = port;
      port.onmessage = ({ data }) => this.#receive(data as Response | ArrayBuffer);
      port.onerror = (event) => {
        if (this.#port === port) this.#refused(workerDied(event));
      };
      const open = (wasm = engine.wasm): void => {
        const mustExist = this.#first !== undefined && this.#first.storage.kind !== 'memory';
        const sharing = { member, client: this.client.id, isVisible: isVisible(), mustExist };
        if (this.#port === port) this.#send({ type: 'open', id: 0, name, options: { ...engine, wasm }, sharing });
      };
      if (compile === undefined) open();
      else
        compile()
          .then(open, () => open())
          .catch(refused);
    } catch (cause) {
      refused(cause);
    }
  }

  /**
   * The worker did not start, or could not open the store. Once the store was open, the reason may be that there is no network at the
   * moment. So it is started again: later, and when the network is back. Meanwhile calls wait as for a missing leader.
   */
  #refused(error: VarveError): void {
    if (this.#answer !== undefined || !hasCode(error, 'VARVE_UNSUPPORTED', 'VARVE_UNAVAILABLE')) {
      return this.#fail(error);
    }
    this.#dismiss();
    this.#refusal = error;
    this.#left = this.#pause = Math.min(this.#pause * 2 || 1, PAUSE_S_MAX);
  }

  /** Handles a message of its own worker. */
  #receive(data: Response | ArrayBuffer): void {
    if (this.#isSuspended) return;
    if (data instanceof ArrayBuffer) {
      if (this.client.via === 'worker') this.client.receive(data);
      return;
    }
    switch (data.type) {
      case 'opening':
        this.#isOpening = true;
        // The previous leader is gone: nothing more comes from it.
        this.#disconnect();
        this.#isOwn = true;
        this.client.disconnect();
        this.#watchWorker();
        return;
      case 'waits':
        this.#watchWorker();
        return;
      case 'leads':
        this.#disconnect();
        if (this.#isAnother(data.report)) return;
        this.#connect({ via: 'worker', post: (message, transfer) => this.#send(message as Request, transfer) });
        this.#opened(data.report);
        return;
      case 'leader':
        this.#found();
        // The same worker may lead again: its new term has new connections.
        if (data.term !== this.#term) this.#follow(data);
        return;
      case 'retired':
        this.#isOwn = false;
        this.client.disconnect();
        return;
      case 'broker':
        this.#giveLine();
        return;
      case 'deleted':
        this.#closeForGood(new VarveError('VARVE_CLOSED', `The store "${this.#options.name}" is being deleted.`));
        return;
      case 'versionchange':
        this.client.receive(data);
        return;
      case 'dead':
        this.#refused(VarveError.fromWire(data.error));
        return;
      default:
        if (this.client.via === 'worker') this.client.receive(data);
    }
  }

  /** Joins the worker of another tab; `hasSyncHandles`: whether this page's own worker could take its place. */
  #follow({ member: leader, term, hasSyncHandles }: Leader): void {
    const { name, engine } = this.#options;
    this.#disconnect();
    this.#term = term;
    this.client.disconnect();
    const attempt = ++this.#attempt;
    const join = {
      type: 'join',
      id: 0,
      client: this.client.id,
      protocol: PROTOCOL,
      attempt,
      storage: engine.storage,
      isLogged: engine.durability !== 'memory',
      version: engine.version,
      key: engine.key,
      nextKeys: engine.nextKeys,
    } as const;
    this.#clientHeld?.then(
      () => {
        if (attempt !== this.#attempt || this.#isOver) return;
        const around = {
          store: name,
          client: this.client,
          broker: this.#reachBroker(),
          connect: (to: string, link: string) => this.#say({ type: 'connect', to, link }),
          onNoBroker: () => {
            this.#broker = undefined;
          },
          seek: () => this.#send({ type: 'seek' }),
        };
        this.#link = LeaderLink.start(
          leader,
          join,
          around,
          (link, report) => {
            if (report.storage.kind === 'opfs' && !hasSyncHandles) return this.#fail(outOfReach(name));
            if (this.#isAnother(report)) return;
            this.#connect(link);
            this.#opened(report);
          },
          (error) => this.#fail(error),
        );
      },
      () => undefined,
    );
  }

  /**
   * Whether the store that this page had open is gone, and this one was made in its place while the page was frozen. Then the client is
   * over: its pending calls must not reach the new store.
   */
  #isAnother(report: OpenReport): boolean {
    this.#first ??= report;
    const isAnother = this.#first.id !== report.id && this.#first.storage.kind !== 'memory';
    if (isAnother) this.#fail(deletedError(this.#options.name));
    return isAnother;
  }

  #connect(link: Link): void {
    if (!this.#isOver) this.client.connect(link);
  }

  #opened(report: OpenReport): void {
    this.#isOpening = true;
    this.#found();
    this.#answer?.resolve(report);
    this.#answer = undefined;
  }

  /** The page's own worker leads, or knows the leader. */
  #found(): void {
    this.#spawned = 0;
    this.#refusal = undefined;
    this.#pause = 0;
  }

  /** Ends the link to another leader: its messages are ignored from now on. */
  #disconnect(): void {
    this.#attempt++;
    this.#link?.end();
    this.#link = undefined;
    this.#term = undefined;
  }

  /** The page's own worker may be ended at any time, without a message. The page notices when it gets the worker's lock. */
  #watchWorker(): void {
    // It may lead many times: without this, each time would leave one more request for its lock.
    if (this.#watched === this.#member) return;
    this.#watched = this.#member;
    const { signal } = this.#worker;
    whenFree(workerLock(this.#member), signal, () => {
      if (this.client.via === 'worker') this.client.disconnect();
      if (++this.#spawned > WORKERS_MAX) {
        this.#fail(new VarveError('VARVE_INTERNAL', 'The engine worker is ended again and again. Reload the page.'));
        return;
      }
      this.#start();
    });
  }

  /**
   * Starts a worker again that did not start. While no leader is reached: looks again for the leader, and rejects calls that waited
   * too long.
   */
  #watch(): void {
    if (this.#left > 0 && --this.#left === 0) this.#start();
    if (this.client.via !== undefined || !this.client.isWaiting) {
      this.#lost = 0;
      return;
    }
    this.#lost++;
    // A known leader may have much to recover, or a remainder of the previous leader may still hold its storage.
    const isOpening = this.#isOwn || this.#link?.isWelcome === true;
    if (this.#lost > (isOpening ? OPENING_S : STALL_S)) this.client.abortCalls(stalled(this.#refusal));
    // It usually takes less than a second until a worker leads.
    if (isOpening || this.#lost < 2) return;
    this.#term = undefined;
    this.#send({ type: 'seek' });
  }

  /** A port to the broker of this origin's tabs, if there is one. */
  #reachBroker(): MessagePort | undefined {
    if (this.#hasNoBroker) return undefined;
    this.#broker ??= this.#newLine();
    return this.#broker;
  }

  #newLine(): MessagePort | undefined {
    try {
      // This is the only form that every bundler finds.
      const broker = new SharedWorker(new URL('./broker-worker.js', import.meta.url), {
        type: 'module',
        name: 'varve',
      });
      broker.onerror = () => {
        this.#hasNoBroker = true;
      };
      broker.port.start();
      return broker.port;
    } catch {
      this.#hasNoBroker = true;
      return undefined;
    }
  }

  /** Gives this page's own worker a port to the broker. */
  #giveLine(): void {
    const line = this.#hasNoBroker ? undefined : this.#newLine();
    if (line !== undefined) this.#send({ type: 'line' }, [line]);
  }

  #say(word: { type: 'connect'; to: string; link: string }): void {
    this.#channel ??= new BroadcastChannel(channelOf(this.#options.name));
    this.#channel.postMessage({ ...word, from: this.#member, protocol: PROTOCOL } satisfies ChannelMessage);
  }

  #send(message: unknown, transfer: object[] = []): void {
    this.#port?.postMessage(message, transfer);
  }

  /** Ends this page's own worker. */
  #dismiss(): void {
    this.#worker.abort();
    this.#worker = new AbortController();
    const port = this.#port;
    this.#port = undefined;
    this.#isOwn = false;
    this.#left = 0;
    if (port === undefined) return;
    port.onmessage = null;
    port.terminate?.();
  }

  /** Ends all connections, also those to other tabs. */
  #leaveAll(): void {
    this.#disconnect();
    this.client.disconnect();
    this.#channel?.close();
    this.#channel = undefined;
    this.#broker?.close();
    this.#broker = undefined;
  }

  #closeForGood(error: VarveError): void {
    this.client.close().then(
      () => undefined,
      () => this.client.fail(error),
    );
  }

  #fail(error: unknown): void {
    this.#answer?.reject(error);
    this.client.fail(error);
  }

  /** The client is over. */
  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearInterval(this.#timer);
    this.#unwatch();
    this.#dismiss();
    this.#leaveAll();
    this.#release();
  }

  /** Releases the client's lock: from now on a leader may regard the client as gone. */
  #release(): void {
    this.#clientHeld?.then(
      (release) => release(),
      () => undefined,
    );
    this.#clientHeld = undefined;
  }
}
