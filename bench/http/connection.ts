/**
 * A connection to a server, by undici: one request at a time, as fast as its session asks.
 *
 * Invariant: it follows HTTP: when a server says `Connection: close`, which Deno does now and then after a body, the next
 * request takes a new connection, and nothing has failed. (autocannon goes on sending on the old one, and counts an error.)
 */

import { Client, type Dispatcher } from 'undici';
import type { Session } from './session.ts';

/** A request that is not answered for so long has failed, in milliseconds. */
const TIMEOUT_MS = 30_000;

/** One client. */
export class Connection {
  readonly #client: Client;
  readonly #session: Session;

  constructor(url: string, session: Session) {
    this.#client = new Client(url, { pipelining: 1, headersTimeout: TIMEOUT_MS, bodyTimeout: TIMEOUT_MS });
    this.#session = session;
  }

  /** Sends the session's next request; resolves when its answer was looked at. Never rejects: what goes wrong is the session's. */
  ask(): Promise<void> {
    const { method, path, headers, body } = this.#session.next();
    return new Promise((resolve) => {
      const request = { method, path, headers: headers ?? {}, body: body ?? null };
      this.#client.dispatch(request, new Answer(this.#session, `${method} ${path}`, resolve));
    });
  }

  /** Ends it, whether it is used or not. */
  async end(): Promise<void> {
    await this.#client.destroy();
  }
}

/** Collects one answer. The form without streams, since the client shares the machine with the server. */
class Answer implements Dispatcher.DispatchHandler {
  readonly #session: Session;
  readonly #what: string;
  readonly #done: () => void;
  readonly #chunks: Buffer[] = [];
  #status = 0;

  constructor(session: Session, what: string, done: () => void) {
    this.#session = session;
    this.#what = what;
    this.#done = done;
  }

  onRequestStart(): void {}

  onResponseStart(_controller: Dispatcher.DispatchController, status: number): void {
    this.#status = status;
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#chunks.push(chunk);
  }

  onResponseEnd(): void {
    const [first] = this.#chunks;
    const body = this.#chunks.length === 1 && first !== undefined ? first : Buffer.concat(this.#chunks);
    this.#session.answer(this.#status, body.toString());
    this.#done();
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#session.fail(`${this.#what}: ${error.message}`);
    this.#done();
  }
}
