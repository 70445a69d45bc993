/** The handler behind a real server of Node's, over real sockets. */

import { once } from 'node:events';
import { get as httpGet, request as httpRequest, type IncomingMessage } from 'node:http';
import { connect, constants, type ServerHttp2Stream } from 'node:http2';
import { text } from 'node:stream/consumers';
import { createGunzip } from 'node:zlib';
import { serve as listen } from 'srvx';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { bearer, createHandler, type HttpOptions } from '../../js/src/http.ts';
import type { Key } from '../../js/src/types.ts';
import { certificate } from './support/certificate.ts';
import { counted, type Served, serve } from './support/http.ts';

const PATIENT = { timeout: 30_000 };

let http: Served;
const servers: { close(force?: boolean): Promise<void> }[] = [];

beforeEach(async () => {
  http = await serve();
});
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close(true);
  await http.db.close();
});

/** Listens, and returns the address. */
async function address(options: HttpOptions<Key> = {}, store = http.db, tls?: typeof certificate): Promise<string> {
  const fetch = createHandler(store, options);
  const secure = tls === undefined ? {} : { tls };
  const server = listen({ fetch, port: 0, hostname: '127.0.0.1', silent: true, gracefulShutdown: false, ...secure });
  servers.push(server);
  await server.ready();
  return (server.url as string).replace(/\/$/, '');
}

const json = { 'content-type': 'application/json' };

test('entries, conditions and batches work as they do without a server', async () => {
  const url = await address({ authorize: bearer('secret') });
  const headers = { ...json, authorization: 'Bearer secret' };
  const put = await fetch(`${url}/kv/${encodeURIComponent('a/b')}`, { method: 'PUT', body: '{"n":1}', headers });
  expect([put.status, put.headers.get('etag')]).toEqual([200, '"1"']);
  expect((await fetch(`${url}/kv/a%2Fb`)).status).toBe(401);
  const spared = await fetch(`${url}/kv/a%2Fb`, { headers: { ...headers, 'if-none-match': '"1"' } });
  expect(spared.status).toBe(304);
  const head = await fetch(`${url}/kv/a%2Fb`, { method: 'HEAD', headers });
  expect([head.headers.get('content-length'), await head.text()]).toEqual(['7', '']);
  const body = JSON.stringify([
    { op: 'set', key: ['x', 1], value: 1 },
    { op: 'get', key: 'a/b' },
  ]);
  const batch = await fetch(`${url}/batch`, { method: 'POST', body, headers });
  expect(await batch.json()).toMatchObject({ results: [{ sequence: 2 }, { value: { n: 1 } }] });
  const range = await fetch(`${url}/range?prefix=${encodeURIComponent('["x"]')}`, { headers });
  expect(await range.json()).toEqual({ entries: [{ key: ['x', 1], value: 1 }], next: null });
  const binary = Uint8Array.from({ length: 100_000 }, (_, i) => i);
  await fetch(`${url}/kv/bin`, {
    method: 'PUT',
    body: binary,
    headers: { ...headers, 'content-type': 'application/octet-stream' },
  });
  expect(await (await fetch(`${url}/kv/bin`, { headers })).bytes()).toEqual(binary);
});

test('a slow client is waited for: the store is read no further than the buffers of the sockets', async () => {
  const { store, given } = counted(http.db);
  const url = await address({}, store);
  const count = 20_000;
  await http.db.setMany(Array.from({ length: count }, (_, i): [Key, unknown] => [i, 'x'.repeat(2000)]));
  const request = httpGet(`${url}/range`, { headers: { accept: 'application/x-ndjson' } });
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  await once(response, 'readable');
  // Nothing is read: once the buffers are full, the scan stands still, open.
  let seen = -1;
  let still = 0;
  await expect
    .poll(() => {
      still = seen === given() ? still + 1 : 0;
      seen = given();
      return still;
    }, PATIENT)
    .toBeGreaterThan(10);
  expect(seen).toBeLessThan(count / 2);
  expect((await http.db.stats()).scans).toBe(1);
  let lines = 0;
  for await (const chunk of response) for (const byte of chunk as Buffer) if (byte === 10) lines++;
  expect(lines).toBe(count);
  await expect.poll(async () => (await http.db.stats()).scans, PATIENT).toBe(0);
});

test('a client that leaves ends its scan', async () => {
  const url = await address();
  await http.db.setMany(Array.from({ length: 20_000 }, (_, i): [Key, unknown] => [i, 'x'.repeat(2000)]));
  const request = httpGet(`${url}/range`, { headers: { accept: 'application/x-ndjson' } });
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  await once(response, 'readable');
  expect((await http.db.stats()).scans).toBe(1);
  request.on('error', () => undefined);
  request.destroy();
  await expect.poll(async () => (await http.db.stats()).scans, PATIENT).toBe(0);
});

test('a body that never ends is refused at the limit', async () => {
  const url = await address({ limits: { bodyBytes: 100_000 } });
  const request = httpRequest(`${url}/kv/a`, {
    method: 'PUT',
    headers: { 'content-type': 'application/octet-stream' },
  });
  request.on('error', () => undefined);
  const answered = once(request, 'response') as Promise<[IncomingMessage]>;
  const chunk = Buffer.alloc(16_384);
  const write = (): void => {
    while (!request.destroyed && request.write(chunk));
    request.once('drain', write);
  };
  write();
  const [response] = await answered;
  expect(response.statusCode).toBe(413);
  request.destroy();
  expect(await http.db.has('a')).toBe(false);
});

test('a hundred clients at once get their answers', async () => {
  const url = await address();
  const answers = await Promise.all(
    Array.from({ length: 100 }, async (_, i) => {
      const put = await fetch(`${url}/kv?key=${i}`, { method: 'PUT', body: String(i), headers: json });
      const get = await fetch(`${url}/kv?key=${i}`);
      return [put.status, await get.json()];
    }),
  );
  expect(answers).toEqual(Array.from({ length: 100 }, (_, i) => [200, i]));
});

test('over HTTP/2, all requests share one connection, and one that is cancelled ends its scan alone', async () => {
  const client = connect(await address({}, http.db, certificate), { rejectUnauthorized: false });
  const send = async (method: string, path: string, body = '', headers: Record<string, string> = {}) => {
    const stream = client.request({ ':method': method, ':path': path, ...headers });
    const answered = once(stream, 'response') as Promise<[Record<string, unknown>]>;
    // A GET has ended with its headers.
    if (body !== '') stream.end(body);
    return { stream, head: (await answered)[0] };
  };
  try {
    const long = 'x'.repeat(2000);
    await http.db.setMany(Array.from({ length: 20_000 }, (_, i): [Key, unknown] => [i, long]));
    const left = await send('GET', '/range', '', { accept: 'application/x-ndjson' });
    await once(left.stream, 'readable');
    expect((await http.db.stats()).scans).toBe(1);
    const answers = Array.from({ length: 20 }, async (_, i) => {
      const put = await send('PUT', `/kv/k${i}`, `[${i}]`, json);
      put.stream.resume();
      const got = await send('GET', `/kv/k${i}`);
      return [put.head[':status'], got.head[':status'], got.head['etag'] === put.head['etag'], await text(got.stream)];
    });
    expect(await Promise.all(answers)).toEqual(Array.from({ length: 20 }, (_, i) => [200, 200, true, `[${i}]`]));
    const page = await send('GET', '/range?limit=100', '', { 'accept-encoding': 'gzip' });
    expect(page.head['content-encoding']).toBe('gzip');
    const { entries } = JSON.parse(await text(page.stream.pipe(createGunzip()))) as { entries: unknown[] };
    expect(entries.length).toBe(100);
    left.stream.close(constants.NGHTTP2_CANCEL);
    await expect.poll(async () => (await http.db.stats()).scans, PATIENT).toBe(0);
  } finally {
    client.destroy();
  }
});

// A client that ended its session left its scan open: Node does not close a stream that its client ends with NO_ERROR. The guide has the listener.
test('over HTTP/2, the end of a session or of a stream ends its scan, whatever its code', async () => {
  const url = await address({}, http.db, certificate);
  const { server } = (servers.at(-1) as ReturnType<typeof listen>).node ?? {};
  server?.on('stream', (stream: ServerHttp2Stream) => stream.once('aborted', () => stream.destroy()));
  await http.db.setMany(Array.from({ length: 4000 }, (_, i): [Key, unknown] => [i, 'x'.repeat(2000)]));
  for (const end of ['session', 'stream']) {
    const client = connect(url, { rejectUnauthorized: false });
    const stream = client.request({ ':path': '/range', accept: 'application/x-ndjson' });
    stream.on('error', () => undefined);
    await once(stream, 'readable');
    expect((await http.db.stats()).scans).toBe(1);
    if (end === 'session') client.destroy();
    else stream.close(constants.NGHTTP2_NO_ERROR);
    await expect.poll(async () => (await http.db.stats()).scans, PATIENT).toBe(0);
    client.destroy();
  }
});
