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

/** A connection that was idle for so long may have been ended by its server, in milliseconds; workerd does it after 5 s. */
const IDLE_MS = 1000;

/** Two turns: between them the process hears what came over its sockets. */
async function hear(): Promise<void> {
  for (let turn = 0; turn < 2; turn++) await new Promise((resolve) => setImmediate(resolve));
}

/** One client. */
export class Connection {
  readonly #client: Client;
  #answered_ms = Number.POSITIVE_INFINITY;
  readonly #session: Session;

  constructor(url: string, session: Session) {
    this.#client = new Client(url, { pipelining: 1, headersTimeout: TIMEOUT_MS, bodyTimeout: TIMEOUT_MS });
    this.#session = session;
  }

  /**
   * Sends the session's next request; resolves when its answer was looked at. Never rejects: what goes wrong is the session's. After
   * a pause of this process, which a busy machine can make, it first hears whether the server has ended the connection.
   */
  async ask(): Promise<void> {
    if (performance.now() - this.#answered_ms > IDLE_MS) await hear();
    const { method, path, headers, body } = this.#session.next();
    const request = { method, path, headers: headers ?? {}, body: body ?? null };
    await new Promise<void>((resolve) => {
      this.#client.dispatch(request, new Answer(this.#session, `${method} ${path}`, resolve));
    });
    this.#answered_ms = performance.now();
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
