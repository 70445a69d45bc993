/**
 * The connections to a server, by undici: each makes one request at a time, as fast as its loop asks.
 *
 * Invariant: a connection follows HTTP: when a server says `Connection: close`, which Deno does now and then after a body, the next
 * request takes a new connection, and nothing has failed. (autocannon continues on the old one, and counts an error.) When a
 * request is answered as it must be, its writes are acknowledged in the ledger.
 */

import { gunzipSync } from 'node:zlib';
import { Client } from 'undici';
import { type Length, type Pace, runLoad } from '../../core/load.ts';
import { type Round, roundOf } from '../../core/measure.ts';
import { emptyTally } from '../../core/tasks/task.ts';
import type { Call, Kind } from './calls.ts';
import type { Ledger, Share } from './ledger.ts';

/** A request without an answer for so long has failed, in milliseconds. */
const TIMEOUT_MS = 30_000;
/** A server may have ended a connection that was idle for so long, in milliseconds; workerd does it after 5 s. */
const IDLE_MS = 1000;

export class Outcomes {
  /** Operations and characters of the right answers, and the answers with the right status and the wrong body. */
  readonly tally = emptyTally();
  requests = 0;
  /** Failed: no connection, no answer, or a status that is none of a right answer. */
  failed = 0;
  problem: string | undefined;

  constructor(readonly ledger: Ledger) {}

  answer(call: Call, status: number, body: string): void {
    if (status !== call.status) return this.fail(call, `${status} ${body.slice(0, 200)}`);
    this.ledger.acknowledge(call.writes, call.writes.length === 1 ? sequenceOf(body) : 0);
    if (!isRight(call, body)) {
      this.tally.wrong++;
      this.problem ??= `${call.method} ${call.path} was answered wrongly: ${body.slice(0, 200)}`;
      return;
    }
    this.requests++;
    this.tally.ops += call.operations;
    this.tally.bytes += body.length;
  }

  fail({ method, path }: Call, problem: string): void {
    this.failed++;
    this.problem ??= `${method} ${path}: ${problem}`;
  }
}

function sequenceOf(body: string): number {
  return Number(/^\{"sequence":(\d+)/.exec(body)?.[1] ?? 0);
}

/** A body that is not even JSON is wrong, not an error of the benchmark. */
function isRight({ check }: Call, body: string): boolean {
  try {
    return check?.(body) ?? true;
  } catch {
    return false;
  }
}

/** Two turns: between them the process receives the end of a connection. */
async function twoTurns(): Promise<void> {
  for (let turn = 0; turn < 2; turn++) await new Promise((resolve) => setImmediate(resolve));
}

/** Makes a request; resolves when its answer was checked. Never rejects: failures are outcomes. */
function ask(client: Client, call: Call, outcomes: Outcomes): Promise<void> {
  const { method, path, headers = {}, body = null } = call;
  return new Promise((done) => {
    const chunks: Buffer[] = [];
    let status = 0;
    let isGzip = false;
    // The form without streams, since the client shares the machine with the server.
    client.dispatch(
      { method, path, headers, body },
      {
        onRequestStart: () => undefined,
        onResponseStart: (_, code, { 'content-encoding': encoding }) => {
          status = code;
          isGzip = encoding === 'gzip';
        },
        onResponseData: (_, chunk) => void chunks.push(chunk),
        onResponseEnd: () => {
          const body = Buffer.concat(chunks);
          done(outcomes.answer(call, status, (isGzip ? gunzipSync(body) : body).toString()));
        },
        onResponseError: (_, error) => done(outcomes.fail(call, error.message)),
      },
    );
  });
}

/** Makes requests of a kind by several connections, one for each share. */
export async function runConnections(
  url: string,
  kind: Kind,
  shares: readonly Share[],
  ledger: Ledger,
  length: Length | Pace,
): Promise<Round & { readonly outcomes: Outcomes }> {
  const outcomes = new Outcomes(ledger);
  const clients = shares.map(() => {
    return new Client(url, { pipelining: 1, headersTimeout: TIMEOUT_MS, bodyTimeout: TIMEOUT_MS });
  });
  try {
    const callers = clients.map((client, i) => {
      let answeredMs = Number.POSITIVE_INFINITY;
      return async () => {
        // After a pause of this process, which a busy machine can make, the server may have ended the connection.
        if (performance.now() - answeredMs > IDLE_MS) await twoTurns();
        await ask(client, kind(shares[i] as Share), outcomes);
        answeredMs = performance.now();
      };
    });
    const { elapsedMs, latencies } = await runLoad(callers, length);
    return { outcomes, ...roundOf(outcomes.tally, elapsedMs, latencies) };
  } finally {
    await Promise.all(clients.map((client) => client.destroy()));
  }
}
