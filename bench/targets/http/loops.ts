/**
 * How requests come. In a closed loop each connection sends its next request when the one before is answered: it tells what
 * throughput the server gives to so many clients. In an open loop requests are due at a fixed rate, whether the server keeps
 * up or not: it tells what users wait.
 *
 * Invariant: no request is left out because it was slow. When the time of a closed loop is over, each connection waits for its
 * last answer. The latency of an open loop counts from when a request was due, not from when a connection was free to send
 * it (no coordinated omission), so it is up to a tick of the timer, about a millisecond, more than the server's own time.
 */

import type { Latencies } from '../../core/latency.ts';
import { Connection } from './connection.ts';
import type { Session } from './session.ts';

/** A closed loop for a time, or for a number of requests. */
export type Length = { readonly seconds: number } | { readonly requests: number };

/** An open loop: a fixed rate for a time. */
export interface Pace {
  readonly perSecond: number;
  readonly seconds: number;
}

/**
 * Runs the sessions, a connection each, and adds a latency in microseconds for each request. Resolves with the seconds from the
 * first request (the time when it was due) to the last answer.
 */
export async function runLoop(
  url: string,
  sessions: readonly Session[],
  length: Length | Pace,
  latencies: Latencies,
): Promise<number> {
  const connections = sessions.map((session) => new Connection(url, session));
  const started = performance.now();
  try {
    if ('perSecond' in length) await open(connections, length, latencies);
    else await closed(connections, length, latencies);
    return (performance.now() - started) / 1000;
  } finally {
    await Promise.all(connections.map((connection) => connection.end()));
  }
}

async function closed(connections: readonly Connection[], length: Length, latencies: Latencies): Promise<void> {
  const ends = 'seconds' in length ? performance.now() + length.seconds * 1000 : Number.POSITIVE_INFINITY;
  let left = 'requests' in length ? length.requests : Number.POSITIVE_INFINITY;
  const work = async (connection: Connection): Promise<void> => {
    // Each connection asks once at least, however busy the machine is.
    for (let sent = performance.now(), isFirst = true; left > 0 && (isFirst || sent < ends); isFirst = false) {
      left--;
      await connection.ask();
      const answered = performance.now();
      latencies.add((answered - sent) * 1000);
      sent = answered;
    }
  };
  await Promise.all(connections.map(work));
}

function open(connections: readonly Connection[], { perSecond, seconds }: Pace, latencies: Latencies): Promise<void> {
  const free = [...connections];
  const total = Math.max(1, Math.round(perSecond * seconds));
  const started = performance.now();
  const dueAt = (index: number): number => started + (index * 1000) / perSecond;
  let sent = 0;
  let answered = 0;
  let timer: NodeJS.Timeout | undefined;
  return new Promise((resolve, reject) => {
    /** Sends what is due, as far as connections are free; the rest waits for the next one that is. */
    const pump = (): void => {
      for (const now = performance.now(); sent < total && dueAt(sent) <= now; ) {
        const connection = free.pop();
        if (connection === undefined) return;
        const due = dueAt(sent++);
        connection.ask().then(() => {
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
}
