/**
 * The clients of a leader that are in other tabs. They connect over ports that a broker hands over, or over channels.
 *
 *     leader -> client   welcome
 *     client -> leader   join
 *     leader -> client   opened, as soon as the store is; from then on as between a page and its own worker
 *
 * Invariant: a client has one connection at a time, the one of its latest attempt. When its lock is free, its page is gone, and
 * its snapshots and scans are closed.
 */

import { toWire, VarveError } from '../errors.ts';
import type { Request } from '../protocol/messages.ts';
import { whenFree } from '../share/locks.ts';
import { clientLock, linkChannel, PROTOCOL } from '../share/names.ts';
import { Connection, type Send } from './connection.ts';
import type { EngineServer, Incoming } from './engine-server.ts';

type Join = Extract<Request, { type: 'join' }>;

/** The maximum time to wait for the clients of the previous leader, in milliseconds. */
const RETURN_MS = 2000;

/** A client that has joined. */
interface Joined {
  readonly connection: Connection;
  readonly attempt: number;
  readonly gone: AbortController;
  readonly close: () => void;
}

/** Accepts clients and passes their messages and frames to the server. */
export class Clients {
  readonly #store: string;
  readonly #member: string;
  readonly #server: EngineServer;
  readonly #joined = new Map<number, Joined>();
  /** The close functions of all open ports and channels, with or without a client yet. */
  readonly #closers = new Set<() => void>();
  /** The clients that have reopened their snapshots and scans. */
  readonly #returned = new Set<number>();
  /** Wakes the call of `returned` that waits for clients. */
  #wake: () => void = () => undefined;
  #isOver = false;
  readonly #ended = new AbortController();

  constructor(store: string, member: string, server: EngineServer) {
    this.#store = store;
    this.#member = member;
    this.#server = server;
    server.onReturned = (client) => {
      this.#returned.add(client);
      this.#wake();
    };
  }

  /** Accepts clients from a broker. */
  listen(line: MessagePort | undefined): void {
    if (line === undefined || this.#isOver) return;
    line.onmessage = ({ ports: [port] }) => {
      if (port === undefined || this.#isOver) return;
      port.onmessage = this.#reception(
        (message, transfer) => port.postMessage(message, transfer),
        () => port.close(),
      );
    };
    line.postMessage({ type: 'lead', member: this.#member });
  }

  /** Accepts a client over a channel. */
  reach(link: string): void {
    if (this.#isOver) return;
    const channel = new BroadcastChannel(linkChannel(this.#store, link));
    channel.onmessage = this.#reception(
      (message) => channel.postMessage(message),
      () => channel.close(),
    );
  }

  /** The clients that live. The server gets to know them, and which of them end. */
  async living(): Promise<number[]> {
    const { held = [] } = await navigator.locks.query();
    const prefix = clientLock(this.#store, 0).slice(0, -1);
    const ids = held.map(({ name = '' }) => (name.startsWith(prefix) ? name.slice(prefix.length) : ''));
    const clients = ids.filter((id) => /^\d+$/.test(id)).map(Number);
    for (const client of clients) {
      whenFree(clientLock(this.#store, client), this.#ended.signal, () => this.#server.clientClosed(client));
    }
    this.#server.know(clients);
    return clients;
  }

  /** Resolves when these clients have reopened their snapshots and scans, or after two seconds. */
  async returned(clients: Promise<readonly number[]>): Promise<void> {
    const expected = await clients;
    const end = performance.now() + RETURN_MS;
    while (!this.#isOver && !expected.every((client) => this.#returned.has(client)) && performance.now() < end) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, end - performance.now());
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  }

  /** Accepts no more clients. The clients that came before are still answered. */
  end(): void {
    this.#isOver = true;
    this.#ended.abort();
    this.#wake();
    for (const { gone } of this.#joined.values()) gone.abort();
  }

  /** Closes all ports and channels of this leader. Called when there is nothing left to answer. */
  close(): void {
    this.end();
    for (const close of this.#closers) this.#shut(close);
  }

  /** Returns the message handler of one port or channel. The first message must be a `join`. */
  #reception(post: Send, close: () => void): (event: MessageEvent) => void {
    this.#closers.add(close);
    // A closed channel throws.
    const send: Send = (message, transfer) => void (this.#closers.has(close) && post(message, transfer));
    let joined: Joined | undefined;
    send({ type: 'welcome' }, []);
    return ({ data }: MessageEvent<Incoming>) => {
      if (joined !== undefined) {
        if (!(data instanceof ArrayBuffer) && data.type === 'ping') send({ type: 'pong' }, []);
        else this.#server.receive(data, joined.connection);
        return;
      }
      if (data instanceof ArrayBuffer || data.type !== 'join') return;
      try {
        joined = this.#admit(data, send, close);
      } catch (error) {
        send({ type: 'failed', id: data.id, error: toWire(error) }, []);
      }
    };
  }

  #admit(join: Join, send: Send, close: () => void): Joined | undefined {
    const { client, attempt, protocol, version } = join;
    const before = this.#joined.get(client);
    if (before !== undefined && before.attempt >= attempt) return undefined;
    if (protocol !== PROTOCOL) {
      throw new VarveError('VARVE_VERSION', 'The tab that has this store open runs another version of varve. Reload.');
    }
    const connection = new Connection(client, send, version);
    const gone = new AbortController();
    const joined = { connection, attempt, gone, close };
    if (before !== undefined) {
      before.gone.abort();
      this.#server.replace(before.connection);
      this.#shut(before.close);
    }
    this.#joined.set(client, joined);
    whenFree(clientLock(this.#store, client), gone.signal, () => this.#leave(joined));
    this.#server.receive(join, connection);
    return joined;
  }

  #leave(joined: Joined): void {
    const { connection, close } = joined;
    if (this.#joined.get(connection.client) === joined) this.#joined.delete(connection.client);
    void this.#server.leave(connection, true);
    this.#shut(close);
  }

  /** Closes a port or channel. From now on nothing is sent there. */
  #shut(close: () => void): void {
    this.#closers.delete(close);
    close();
  }
}
