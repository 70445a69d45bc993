/**
 * An open loop: requests are due at a fixed rate, whether the server keeps up or not.
 *
 * Invariant: the latency of a request counts from when it was due, not from when a connection was free to send it, so that a
 * stall shows in every request that it delayed (no coordinated omission). It is therefore up to a tick of the timer (about a
 * millisecond) more than the server's own time. autocannon's rates are not used: within each second it sends as fast as it is
 * answered, and it corrects latencies with an interval in seconds where its histogram is in milliseconds.
 */

import { Client } from 'undici';
import type { Latencies } from '../latency.ts';
import type { Session } from './session.ts';

/** A fixed rate for a time. */
export interface Pace {
  readonly perSecond: number;
  readonly seconds: number;
}

/** A request that is not answered for so long has failed, in milliseconds. */
const TIMEOUT_MS = 30_000;

interface Connection {
  readonly client: Client;
  readonly session: Session;
}

/** Runs the sessions, a connection each. Resolves with the seconds from the first request's time to the last answer. */
export async function openLoop(
  url: string,
  sessions: readonly Session[],
  { perSecond, seconds }: Pace,
  latencies: Latencies,
): Promise<number> {
  const options = { pipelining: 1, headersTimeout: TIMEOUT_MS, bodyTimeout: TIMEOUT_MS };
  const free: Connection[] = sessions.map((session) => ({ session, client: new Client(url, options) }));
  const clients = free.map(({ client }) => client);
  const total = Math.max(1, Math.round(perSecond * seconds));
  const started = performance.now();
  let sent = 0;
  let answered = 0;
  let timer: NodeJS.Timeout | undefined;
  const dueAt = (index: number): number => started + (index * 1000) / perSecond;
  try {
    await new Promise<void>((resolve, reject) => {
      /** Sends what is due, as far as connections are free; the rest waits for the next one that is. */
      const pump = (): void => {
        for (const now = performance.now(); sent < total && dueAt(sent) <= now; ) {
          const connection = free.pop();
          if (connection === undefined) return;
          const due = dueAt(sent++);
          ask(connection).then(() => {
            latencies.add((performance.now() - due) * 1000);
            free.push(connection);
            answered++;
            if (answered === total) resolve();
            else pump();
          }, reject);
        }
        clearTimeout(timer);
        if (sent < total) timer = setTimeout(pump, Math.max(0, dueAt(sent) - performance.now()));
      };
      pump();
    });
  } finally {
    await Promise.all(clients.map((client) => client.destroy()));
  }
  return (performance.now() - started) / 1000;
}

/** One request and its answer. Never rejects: what goes wrong is the session's. */
async function ask({ client, session }: Connection): Promise<void> {
  const { method, path, headers, body } = session.next();
  try {
    const response = await client.request({ method, path, headers: { ...headers }, body: body ?? null });
    session.answer(response.statusCode, await response.body.text());
  } catch (error) {
    session.fail(`${method} ${path}: ${error instanceof Error ? error.message : error}`);
  }
}
