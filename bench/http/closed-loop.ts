/**
 * A closed loop, by autocannon: each connection sends its next request when the one before is answered. It tells what
 * throughput the server gives to so many clients; its latencies are those of clients that wait for one another's turn.
 *
 * Invariant: no request is cut off by the end of a row: when the time is over, each connection waits for its last answer. So a
 * slow answer is not left out because it was slow, and what the store must hold is known. Latencies are of single requests, in
 * microseconds (autocannon's own histogram is of whole milliseconds).
 */

import autocannon from 'autocannon';
import type { Latencies } from '../latency.ts';
import type { Session } from './session.ts';

/** How long a closed loop goes on: a time, or a number of requests. */
export type Length = { readonly seconds: number } | { readonly requests: number };

/** A request that is not answered for so long has failed. */
const TIMEOUT_SECONDS = 30;
/** How often autocannon looks whether the time is over, in milliseconds. */
const SAMPLE_MS = 20;

/** autocannon's client as it is, with the number of requests after whose answers it ends (autocannon is pinned to one version). */
type EndingClient = autocannon.Client & { responseMax?: number };

/** Runs the sessions, a connection each. Resolves with the seconds from the first request to the last answer. */
export async function closedLoop(
  url: string,
  sessions: readonly Session[],
  length: Length,
  latencies: Latencies,
): Promise<number> {
  let connection = 0;
  const setupClient = (client: autocannon.Client): void => {
    const session = sessions[connection++];
    if (session === undefined) throw new Error('autocannon made more connections than it was asked for.');
    const setupRequest = (request: autocannon.Request): autocannon.Request => {
      const { method, path, headers, body } = session.next();
      return { ...request, method, path, headers: { ...headers }, body };
    };
    const onResponse = (status: number, body: string): void => session.answer(status, body);
    client.setRequests([{ setupRequest, onResponse }]);
  };
  const started = performance.now();
  let last = started;
  const ends = 'requests' in length ? Number.POSITIVE_INFINITY : started + length.seconds * 1000;
  const limit = 'requests' in length ? { amount: length.requests } : { duration: length.seconds + TIMEOUT_SECONDS + 5 };
  const options = { url, connections: sessions.length, timeout: TIMEOUT_SECONDS, sampleInt: SAMPLE_MS, setupClient };
  await new Promise<void>((resolve, reject) => {
    const done = (error: Error | null): void => (error === null ? resolve() : reject(error));
    const instance = autocannon({ ...options, ...limit }, done);
    instance.on('response', (client: EndingClient, _status, _bytes, elapsed_ms) => {
      last = performance.now();
      latencies.add(elapsed_ms * 1000);
      if (last >= ends) client.responseMax = 1;
    });
  });
  // Of a server that answers no more.
  for (const session of sessions) session.fail('The server did not answer within the time limit.');
  return (last - started) / 1000;
}
