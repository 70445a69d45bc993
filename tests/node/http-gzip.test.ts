/** Compressed responses: who gets them, their headers and their ETags. */

import { gunzipSync } from 'node:zlib';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createHandler } from '../../js/src/http.ts';
import type { Key } from '../../js/src/types.ts';
import { counted, type Served, serve } from './support/http.ts';

const PATIENT = { timeout: 30_000 };
const LONG = 'silt '.repeat(2000);
const gzip = { 'accept-encoding': 'gzip' };

let http: Served;
beforeEach(async () => {
  http = await serve();
  await http.put('/kv/long', LONG);
  await http.put('/kv/short', 'silt');
});
afterEach(() => http.db.close());

const get = (path: string, headers: Record<string, string> = gzip) => http.send('GET', path, { headers });
const header = (response: Response, name: string) => response.headers.get(name);
/** The body as text, after it was decompressed. */
const unpacked = async (response: Response) => gunzipSync(await response.bytes()).toString();

test('a long value is compressed for a client that accepts gzip, and only for that one', async () => {
  const packed = await get('/kv/long');
  expect([header(packed, 'content-encoding'), header(packed, 'content-length')]).toEqual(['gzip', null]);
  expect([header(packed, 'etag'), header(packed, 'vary')]).toEqual(['"1-gzip"', 'Accept, Accept-Encoding']);
  expect(await unpacked(packed)).toBe(JSON.stringify(LONG));
  const plain = await get('/kv/long', {});
  expect([header(plain, 'content-encoding'), header(plain, 'content-length')]).toEqual([null, '10002']);
  expect([header(plain, 'etag'), header(plain, 'vary')]).toEqual(['"1"', 'Accept, Accept-Encoding']);
  expect(await plain.json()).toBe(LONG);
});

test.each([
  ['br, gzip;q=0.5', true],
  ['GZIP', true],
  ['*', true],
  ['gzip;q=0', false],
  ['gzip;q=0, *', false],
  ['identity, gzip;q=0.5', false],
  ['br', false],
  ['', false],
  ['gzip;q=x', false],
])('Accept-Encoding: %s', async (accept, isPacked) => {
  const response = await get('/kv/long', { 'accept-encoding': accept });
  expect(header(response, 'content-encoding')).toBe(isPacked ? 'gzip' : null);
});

test('short answers, bytes and errors stay as they are', async () => {
  await http.send('PUT', '/kv/bytes', {
    body: new Uint8Array(10_000),
    headers: { 'content-type': 'application/octet-stream' },
  });
  for (const path of ['/kv/short', '/kv/bytes', '/range?limit=0', '/kv/absent', '/health', '/count']) {
    const response = await get(path);
    expect([path, header(response, 'content-encoding')]).toEqual([path, null]);
    await response.bytes();
  }
  expect(header(await get('/kv/short'), 'etag')).toBe('"2"');
});

test('the limit decides from how many bytes on', async () => {
  const bytes = JSON.stringify(LONG).length;
  for (const [limit, coding] of [
    [bytes, 'gzip'],
    [bytes + 1, null],
  ] as const) {
    const handler = createHandler(http.db, { limits: { gzipBytes: limit } });
    const response = await handler(new Request('http://varve.test/kv/long', { headers: gzip }));
    expect(header(response, 'content-encoding')).toBe(coding);
    await response.bytes();
  }
});

test('HEAD has the headers of GET', async () => {
  for (const path of ['/kv/long', '/kv/short', '/range']) {
    const [head, whole] = [await http.send('HEAD', path, { headers: gzip }), await get(path)];
    expect([...head.headers]).toEqual([...whole.headers]);
    expect(await head.text()).toBe('');
    await whole.bytes();
  }
});

test('conditions take the ETag of either form, and a 304 repeats the one that was sent', async () => {
  for (const tag of ['"1-gzip"', '"1"']) {
    const spared = await get('/kv/long', { ...gzip, 'if-none-match': `"9", ${tag}` });
    expect([spared.status, header(spared, 'etag'), header(spared, 'vary')]).toEqual([
      304,
      tag,
      'Accept, Accept-Encoding',
    ]);
  }
  expect((await get('/kv/long', { 'if-none-match': '"1-br"' })).status).toBe(200);
  expect((await http.put('/kv/long', 'mud', { 'if-match': '"1-gzip"' })).status).toBe(200);
  expect((await http.put('/kv/long', 'clay', { 'if-match': '"1-gzip"' })).status).toBe(412);
  expect(await http.db.get('long')).toBe('mud');
});

test('pages, streams, batches and metrics are compressed', async () => {
  const page = await get('/range');
  expect(header(page, 'content-encoding')).toBe('gzip');
  expect(JSON.parse(await unpacked(page))).toMatchObject({ entries: [{ value: LONG }, { value: 'silt' }] });
  const lines = await get('/range', { ...gzip, accept: 'application/x-ndjson' });
  expect([header(lines, 'content-encoding'), header(lines, 'content-type')]).toEqual(['gzip', 'application/x-ndjson']);
  expect((await unpacked(lines)).split('\n').length).toBe(3);
  const body = JSON.stringify([{ op: 'get', key: 'long' }]);
  const batch = await http.send('POST', '/batch', { body, headers: { ...gzip, 'content-type': 'application/json' } });
  expect(header(batch, 'content-encoding')).toBe('gzip');
  expect(JSON.parse(await unpacked(batch))).toMatchObject({ results: [{ value: LONG }] });
  expect(await unpacked(await get('/metrics'))).toContain('varve_http_requests_total');
});

test('a slow reader of a compressed stream is waited for, and one that leaves ends its scan', async () => {
  const { store, given } = counted(http.db);
  await http.db.setMany(Array.from({ length: 5000 }, (_, i): [Key, unknown] => [i, LONG]));
  const headers = { ...gzip, accept: 'application/x-ndjson' };
  const response = await createHandler(store)(new Request('http://varve.test/range', { headers }));
  expect(header(response, 'content-encoding')).toBe('gzip');
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  await reader.read();
  expect((await http.db.stats()).scans).toBe(1);
  expect(given()).toBeLessThan(2500);
  await reader.cancel();
  await expect.poll(async () => (await http.db.stats()).scans, PATIENT).toBe(0);
  expect(given()).toBeLessThan(2500);
});

test('a compressed stream that fails is cut', async () => {
  await http.db.setMany(Array.from({ length: 1000 }, (_, i): [Key, unknown] => [i, LONG]));
  const { store } = counted(http.db);
  const failing = new Proxy(store, {
    get(target, name) {
      if (name !== 'entries') return Reflect.get(target, name);
      return async function* () {
        let i = 0;
        for await (const entry of target.entries()) {
          if (++i === 500) throw new Error('The disk is gone.');
          yield entry;
        }
      };
    },
  });
  const headers = { ...gzip, accept: 'application/x-ndjson' };
  const response = await createHandler(failing)(new Request('http://varve.test/range', { headers }));
  expect(header(response, 'content-encoding')).toBe('gzip');
  await expect(response.bytes()).rejects.toThrow();
});
