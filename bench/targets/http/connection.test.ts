// Loops against a small server of Node's own, whose behaviour is the story of the test.

import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import type { Length, Pace } from '../../core/load.ts';
import { health } from './calls.ts';
import { runConnections } from './connection.ts';
import { Ledger, Share } from './ledger.ts';

let server: Server | undefined;

async function run(listener: RequestListener, connections: number, length: Length | Pace) {
  server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const ledger = new Ledger(connections);
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return runConnections(url, health, Share.ofAll(ledger, connections, 1), ledger, length);
}

afterEach(() => {
  server?.closeAllConnections();
  server?.close();
});

const OK = '{"status":"ok"}';

test('a closed loop waits for its last answers, and counts how long they took', async () => {
  // Answers come after the time of the loop only.
  const listener: RequestListener = (_, response) => void setTimeout(() => response.end(OK), 100);
  const { outcomes, latencies } = await run(listener, 3, { seconds: 0.01 });
  expect(outcomes).toMatchObject({ requests: 3, failed: 0 });
  expect(Math.min(...latencies)).toBeGreaterThan(90_000);
});

test('a server that closes its connection after an answer has not failed', async () => {
  const listener: RequestListener = (_, response) => response.setHeader('connection', 'close').end(OK);
  const { outcomes } = await run(listener, 2, { requests: 20 });
  expect(outcomes).toMatchObject({ requests: 20, failed: 0 });
});

test('a connection that breaks is a failure, and the next request takes a new one', async () => {
  let count = 0;
  const listener: RequestListener = (request, response) => {
    if (++count === 3) request.socket.destroy();
    else response.end(OK);
  };
  const { outcomes } = await run(listener, 1, { requests: 10 });
  expect(outcomes).toMatchObject({ requests: 9, failed: 1, problem: expect.stringContaining('GET /health') });
});

test('an open loop counts the wait of every request that a stall delayed', async () => {
  // One answer comes after 300 ms; the other 49 requests are due within the first 50, and wait behind it.
  let count = 0;
  const listener: RequestListener = (_, response) => {
    if (++count === 1) setTimeout(() => response.end(OK), 300);
    else response.end(OK);
  };
  const { outcomes, latencies } = await run(listener, 1, { perSecond: 1000, seconds: 0.05 });
  expect(outcomes).toMatchObject({ requests: 50, failed: 0 });
  expect(Math.min(...latencies)).toBeGreaterThan(200_000);
});
