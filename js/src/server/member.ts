/**
 * One of the workers that have a store open: it leads, or stands in line to lead.
 *
 *     standing in line --lock granted--> leading --hand over--> standing in line
 *
 * Invariant: a worker has the store open only while it holds the leader's lock. It releases the lock only when the store is closed,
 * and everything that was answered is in its files. The next leader opens the store as if this one had died.
 *
 * Only the lock decides which worker leads. Messages on the channel only help to find the leader: a message that is late or lost
 * costs time, not data.
 */

import { deletedError, toWire, VarveError } from '../errors.ts';
import type { Request, SharingOptions } from '../protocol/messages.ts';
import { hold, holdIfFree, type Release } from '../share/locks.ts';
import { type ChannelMessage, channelOf, leaderLock, PROTOCOL, uniqueName, workerLock } from '../share/names.ts';
import type { StorageAdapter } from '../storage/adapter.ts';
import type { SpawnCompactor } from '../storage/compactor-port.ts';
import { isInOrigin } from '../storage/find.ts';
import { openLock } from '../storage/lock.ts';
import { hasSyncHandles } from '../storage/opfs-realm.ts';
import { loadEngine } from '../wasm/compile.ts';
import { Clients } from './clients.ts';
import { Connection, type Send } from './connection.ts';
import { EngineServer, type Incoming } from './engine-server.ts';
import type { LaterCode } from './later-code.ts';

type OpenRequest = Extract<Request, { type: 'open' }>;
type Shared = OpenRequest & { readonly sharing: SharingOptions };
type Word = ChannelMessage extends infer M ? (M extends ChannelMessage ? Omit<M, 'from' | 'protocol'> : never) : never;

/** How long a page is hidden before its worker looks for a visible page: users switch between tabs back and forth. */
const HIDDEN_MS = 1000;
/** How long a page has to get a port to the broker. */
const LINE_MS = 1000;
/** How long the chosen worker has to take the lock, before any other worker may. */
const YIELD_MS = 2000;

/** The worker's side of the connection to its page. */
export class Member {
  readonly #send: Send;
  readonly #compactor: SpawnCompactor | undefined;
  readonly #adapter: StorageAdapter | undefined;
  readonly #later: LaterCode;
  /** The server that answers: as a leader; for a store that is not shared; for requests that need no store. */
  #server: EngineServer;
  #request: Shared | undefined;
  #channel: BroadcastChannel | undefined;
  #clients: Clients | undefined;
  #line: MessagePort | undefined;
  #askedAt = 0;
  #isLeading = false;
  /** Its present or last term as the leader. A term ends with the store, and so do the connections of its clients. */
  #term = '';
  #isVisible = true;
  #chosen: { readonly member: string; readonly at: number } | undefined;
  /** The locks that show that this worker lives and has the store open. */
  readonly #held: Release[] = [];
  readonly #ended = new AbortController();

  constructor(
    send: Send,
    compactor: SpawnCompactor | undefined,
    adapter: StorageAdapter | undefined,
    later: LaterCode,
  ) {
    this.#send = send;
    this.#compactor = compactor;
    this.#adapter = adapter;
    this.#later = later;
    this.#server = new EngineServer(send, compactor, adapter, later);
  }

  /** Handles a message or a frame of its page. Browsers take time to list `ports`, so they are read only where there is one. */
  receive(message: Pick<MessageEvent<Incoming>, 'data' | 'ports'>): void {
    const { data } = message;
    if (data instanceof ArrayBuffer) return this.#server.receive(data);
    switch (data.type) {
      case 'open':
        if (data.sharing === undefined) return this.#server.receive(data);
        this.#request = data as Shared;
        void this.#open(data as Shared);
        return;
      case 'hidden':
        this.#server.receive(data);
        this.#see(false);
        return;
      case 'visible':
        this.#see(true);
        return;
      case 'line':
        this.#line = message.ports[0];
        this.#clients?.listen(this.#line);
        return;
      case 'seek':
        this.#say({ type: 'seek' });
        return;
      case 'key':
        if (this.#request === undefined) return;
        Object.assign(this.#request.options, data.keys);
        this.#loadForKey(this.#request);
        return;
      default:
        // From here on this worker must not announce that it leads.
        if (data.type === 'close') this.#isLeading = false;
        this.#server.receive(data);
    }
  }

  /** The page is gone. */
  end(): void {
    this.#stop();
    for (const release of this.#held.splice(0)) void release();
  }

  /** Loads the code for the key of a store now: an opening in the place of the leader must not need the network. */
  #loadForKey({ options }: Shared): void {
    if (options.key !== undefined || options.nextKeys?.length) this.#later.keySlots().catch(() => undefined);
  }

  async #open(request: Shared): Promise<void> {
    const { name, sharing } = request;
    const { signal } = this.#ended;
    this.#isVisible = sharing.isVisible;
    // Also a worker that waits needs it: the next leader must not need the network to start.
    loadEngine(request.options.wasm).catch(() => undefined);
    const leading = holdIfFree(leaderLock(name));
    try {
      const keep = (release: Release): void => void (signal.aborted ? release() : this.#held.push(release));
      const [lock] = await Promise.all([
        leading,
        hold(workerLock(sharing.member), signal).then(keep),
        hold(openLock(name), signal, 'shared').then(keep),
      ]);
      signal.throwIfAborted();
      this.#channel = new BroadcastChannel(channelOf(name));
      this.#channel.onmessage = ({ data }) => this.#receive(data as ChannelMessage);
      if (lock !== undefined) {
        if (sharing.mustExist && !(await isInOrigin(name))) throw deletedError(name);
        signal.throwIfAborted();
        await this.#lead(request, lock, false);
        return;
      }
      // As the engine: this worker may be the next leader.
      this.#later.indexedDb.load?.().catch(() => undefined);
      this.#loadForKey(request);
      this.#send({ type: 'waits' }, []);
      this.#stand(request);
      this.#say({ type: 'seek' });
    } catch (error) {
      // The page is gone, or the browser refused a lock.
      leading.then(
        (lock) => lock?.(),
        () => undefined,
      );
      this.#fail(error);
    }
  }

  /** Stands in line. */
  #stand(request: Shared): void {
    hold(leaderLock(request.name), this.#ended.signal).then(
      async (lock) => {
        const { member, at } = this.#chosen ?? { member: '', at: 0 };
        this.#chosen = undefined;
        if (member === '' || member === request.sharing.member || Date.now() - at > YIELD_MS) {
          await this.#lead(request, lock, true);
          return;
        }
        await lock();
        this.#stand(request);
      },
      () => undefined,
    );
  }

  async #lead(request: Shared, lock: Release, isSuccessor: boolean): Promise<void> {
    const { name, sharing, options } = request;
    const own = new Connection(sharing.client, this.#send, options.version);
    const server = new EngineServer(own, this.#compactor, this.#adapter, this.#later);
    const clients = new Clients(name, sharing.member, server);
    this.#server.end();
    this.#server = server;
    this.#clients = clients;
    this.#isLeading = true;
    this.#term = uniqueName();
    this.#send({ type: 'opening' }, []);
    clients.listen(this.#line);
    if (isSuccessor && this.#line === undefined) this.#askForLine();
    this.#say({ type: 'lead', term: this.#term });
    const living = clients.living();
    // If that fails, the first write waits until every lease of the former leader has ended.
    living.catch(() => undefined);
    try {
      const hold = isSuccessor ? () => clients.returned(living) : undefined;
      const report = await server.open(request, { lock: { release: lock }, hold });
      this.#send({ type: 'leads', report }, []);
      if (!this.#isVisible) this.#see(false);
    } catch (error) {
      this.#isLeading = false;
      void lock();
      this.#fail(error);
    }
  }

  /** Lets another worker lead: `to`, or the next in line. */
  async #handOver(to: string): Promise<void> {
    const request = this.#request;
    if (!this.#isLeading || request === undefined) return;
    this.#isLeading = false;
    this.#say({ type: 'yield', to });
    this.#send({ type: 'retired' }, []);
    const clients = this.#clients;
    clients?.end();
    try {
      await this.#server.retire();
      clients?.close();
    } catch (error) {
      this.#fail(error);
      return;
    }
    this.#stand(request);
  }

  #see(isVisible: boolean): void {
    this.#isVisible = isVisible;
    if (isVisible) {
      if (!this.#isLeading) this.#say({ type: 'visible' });
      return;
    }
    setTimeout(() => {
      if (!this.#isVisible && this.#isLeading) this.#say({ type: 'dim' });
    }, HIDDEN_MS);
  }

  #receive(message: ChannelMessage): void {
    const { from, type, protocol } = message;
    if (protocol > PROTOCOL) return this.#outdated();
    switch (type) {
      case 'seek':
        if (!this.#isLeading) return;
        this.#say({ type: 'lead', term: this.#term });
        if (!this.#isVisible) this.#say({ type: 'dim' });
        if (this.#line === undefined) this.#askForLine();
        return;
      case 'lead':
        if (this.#isLeading || protocol !== PROTOCOL) return;
        this.#send({ type: 'leader', member: from, term: message.term, hasSyncHandles: hasSyncHandles() }, []);
        return;
      case 'dim':
        if (this.#isVisible && !this.#isLeading) this.#say({ type: 'visible' });
        return;
      case 'visible':
        if (this.#isLeading && !this.#isVisible) void this.#handOver(from);
        return;
      case 'yield':
        this.#chosen = { member: message.to, at: Date.now() };
        return;
      case 'connect':
        if (!this.#isLeading || message.to !== this.#request?.sharing.member) return;
        this.#clients?.reach(message.link);
        // The broker did not hand a port over: it may have died with the tab that had started it.
        this.#line = undefined;
        this.#askForLine();
        return;
      case 'delete':
        this.#send({ type: 'deleted' }, []);
        return;
    }
  }

  /** Asks the page for a port to the broker. The page starts the broker if there is none. */
  #askForLine(): void {
    const now = Date.now();
    if (now - this.#askedAt < LINE_MS) return;
    this.#askedAt = now;
    this.#send({ type: 'broker' }, []);
  }

  #say(word: Word): void {
    const from = this.#request?.sharing.member;
    if (from !== undefined && !this.#ended.signal.aborted) {
      this.#channel?.postMessage({ ...word, from, protocol: PROTOCOL });
    }
  }

  /** Newer code wants the store: this worker closes it, sends the error to its page, and stands in line no more. */
  #outdated(): void {
    const error = new VarveError(
      'VARVE_VERSION',
      'Another tab opened this store with a newer version of varve. Reload this page.',
    );
    this.#channel?.close();
    const retired = this.#isLeading ? this.#server.retire() : Promise.resolve();
    this.#isLeading = false;
    retired.then(
      () => this.#fail(error),
      () => this.#fail(error),
    );
  }

  /** The worker has failed. Its page must get the reason, not just find the worker's lock free. So the lock is kept until `end`. */
  #fail(error: unknown): void {
    this.#send({ type: 'dead', error: toWire(error) }, []);
    this.#stop();
  }

  #stop(): void {
    this.#ended.abort();
    this.#channel?.close();
    this.#clients?.close();
    this.#server.end();
  }
}
