/**
 * A connection to a server, by undici: one request at a time, as fast as its loop asks.
 *
 * Invariant: it follows HTTP: when a server says `Connection: close`, which Deno does now and then after a body, the next
 * request takes a new connection, and nothing has failed. (autocannon continues on the old one, and counts an error.)
 */

import { Client } from 'undici';
import { type Length, type Pace, runLoad } from '../../core/load.ts';
import type { Kind } from './calls.ts';
import type { Outcomes } from './outcomes.ts';
import type { Share } from './share.ts';

/** A request without an answer for so long has failed, in milliseconds. */
const TIMEOUT_MS = 30_000;
/** A server may have ended a connection that was idle for so long, in milliseconds; workerd does it after 5 s. */
const IDLE_MS = 1000;

/** Two turns: between them the process receives the end of a connection. */
async function twoTurns(): Promise<void> {
  for (let turn = 0; turn < 2; turn++) await new Promise((resolve) => setImmediate(resolve));
}

class Connection {
  readonly #client: Client;
  #answered_ms = Number.POSITIVE_INFINITY;

  constructor(
    url: string,
    private readonly kind: Kind,
    private readonly share: Share,
    private readonly outcomes: Outcomes,
  ) {
    this.#client = new Client(url, { pipelining: 1, headersTimeout: TIMEOUT_MS, bodyTimeout: TIMEOUT_MS });
  }

  /** Makes the next request; resolves when its answer was checked. Never rejects: failures are outcomes. */
  async ask(): Promise<void> {
    // After a pause of this process, which a busy machine can make, the server may have ended the connection.
    if (performance.now() - this.#answered_ms > IDLE_MS) await twoTurns();
    const call = this.kind(this.share);
    const { method, path, headers = {}, body = null } = call;
    await new Promise<void>((done) => {
      const chunks: Buffer[] = [];
      let status = 0;
      // The form without streams, since the client shares the machine with the server.
      this.#client.dispatch(
        { method, path, headers, body },
        {
          onRequestStart: () => undefined,
          onResponseStart: (_, code) => {
            status = code;
          },
          onResponseData: (_, chunk) => void chunks.push(chunk),
          onResponseEnd: () => {
            this.outcomes.answer(call, status, Buffer.concat(chunks).toString());
            done();
          },
          onResponseError: (_, error) => {
            this.outcomes.fail(call, error.message);
            done();
          },
        },
      );
    });
    this.#answered_ms = performance.now();
  }

  async end(): Promise<void> {
    await this.#client.destroy();
  }
}

/** Makes requests of a kind by several connections. */
export async function runConnections(
  url: string,
  kind: Kind,
  shares: readonly Share[],
  outcomes: Outcomes,
  length: Length | Pace,
): ReturnType<typeof runLoad> {
  const connections = shares.map((share) => new Connection(url, kind, share, outcomes));
  try {
    const callers = connections.map((connection) => () => connection.ask());
    return await runLoad(callers, length);
  } finally {
    await Promise.all(connections.map((connection) => connection.end()));
  }
}
