// A store in a Durable Object behind `varve/http`, in a real workerd, over real sockets: Worker -> object -> handler -> store.

import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'esbuild';
import { Miniflare } from 'miniflare';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { root } from '../../scripts/tools.mjs';

const DIST = join(root, 'dist');
const TOKEN = 'token-of-the-tests';
const PATIENT = { timeout: 30_000 };
const json = { 'content-type': 'application/json' };
const ndjson = { accept: 'application/x-ndjson' };

const folder = mkdtempSync(join(tmpdir(), 'varve-http-workerd-'));
let script = '';
let workerd: Miniflare;
let url = '';

/** Starts workerd on the same folder. */
async function start(): Promise<void> {
  workerd = new Miniflare({
    modules: [
      { type: 'ESModule', path: 'worker.js', contents: script },
      { type: 'CompiledWasm', path: 'varve.wasm', contents: readFileSync(join(DIST, 'varve.wasm')) },
    ],
    compatibilityDate: '2026-04-01',
    durableObjects: { STORES: { className: 'HttpStore', useSQLite: true } },
    durableObjectsPersist: folder,
    bindings: { TOKEN },
    // Not through miniflare's own Worker, which would decompress every answer and compress it again, as fast as it comes.
    unsafeDirectSockets: [{ host: '127.0.0.1', port: 0 }],
  });
  url = `${(await workerd.unsafeGetDirectURL()).origin}/`;
}

/**
 * Sends a request to an object, with the token. It uses a separate connection: workerd closes one that was idle for five
 * seconds, and on a busy machine the next request may be on its way then.
 */
function send(method: string, path: string, { headers = {}, ...init }: RequestInit = {}): Promise<Response> {
  const own = { authorization: `Bearer ${TOKEN}`, connection: 'close' };
  return fetch(`${url}${path}`, { method, headers: { ...own, ...headers }, ...init });
}

const put = (path: string, value: unknown, headers: Record<string, string> = {}): Promise<Response> =>
  send('PUT', path, { body: JSON.stringify(value), headers: { ...json, ...headers } });

const batch = (path: string, operations: unknown): Promise<Response> =>
  send('POST', path, { body: JSON.stringify(operations), headers: json });

const q = (key: unknown): string => encodeURIComponent(JSON.stringify(key));

/** How many scans an object has open. */
async function scans(name: string): Promise<number> {
  const text = await (await send('GET', `${name}/metrics`)).text();
  return Number(/^varve_scans\{.*\} (\d+)$/m.exec(text)?.[1]);
}

/** Entries of 1,000 characters, random ones: gzip makes them only a little shorter, so they do not fit into the buffers of sockets. */
async function fill(name: string, count: number): Promise<void> {
  const value = () => randomBytes(750).toString('base64');
  for (let from = 0; from < count; from += 1000) {
    const operations = Array.from({ length: 1000 }, (_, i) => ({ op: 'set', key: ['many', from + i], value: value() }));
    expect((await batch(`${name}/batch?atomic=true`, operations)).status).toBe(200);
  }
}

beforeAll(async () => {
  const outfile = join(root, 'build', 'test-http-object', 'worker.mjs');
  mkdirSync(join(outfile, '..'), { recursive: true });
  await build({
    entryPoints: [join(root, 'tests/runtimes/fixtures/http-object-worker.ts')],
    outfile,
    bundle: true,
    format: 'esm',
    target: 'es2022',
    external: ['cloudflare:*'],
    plugins: [
      {
        name: 'built-package',
        setup: ({ onResolve }) => {
          onResolve({ filter: /^varve\/[\w-]+$/ }, ({ path }) => ({ path: join(DIST, `${path.split('/')[1]}.js`) }));
          // Uploaded beside the script.
          onResolve({ filter: /\.wasm$/ }, () => ({ path: './varve.wasm', external: true }));
        },
      },
    ],
    logLevel: 'error',
  });
  script = readFileSync(outfile, 'utf8');
});
beforeEach(start);
afterEach(() => workerd.dispose());
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('entries and their conditions; each object has its own', async () => {
  const made = await put('one/kv/note', { title: 'Silt' }, { 'if-none-match': '*' });
  expect([made.status, await made.json()]).toEqual([201, { sequence: expect.any(Number), durability: 'strict' }]);
  const tag = made.headers.get('etag') as string;
  const got = await send('GET', 'one/kv/note');
  expect([got.headers.get('etag'), await got.json()]).toEqual([tag, { title: 'Silt' }]);
  expect((await send('GET', 'one/kv/note', { headers: { 'if-none-match': tag } })).status).toBe(304);
  expect((await put('one/kv/note', 1, { 'if-none-match': '*' })).status).toBe(412);
  const over = await put('one/kv/note', 'Clay', { 'if-match': tag });
  expect(over.status).toBe(200);
  const late = await put('one/kv/note', 'Loam', { 'if-match': tag });
  expect([late.status, await late.json()]).toEqual([
    412,
    expect.objectContaining({ code: 'VARVE_CONFLICT', conflict: { key: 'note', sequence: expect.any(Number) } }),
  ]);
  expect(await (await send('GET', 'one/kv/note')).json()).toBe('Clay');
  expect((await send('GET', 'two/kv/note')).status).toBe(404);
  const bytes = Uint8Array.from({ length: 300_000 }, (_, i) => i * 7);
  const headers = { 'content-type': 'application/octet-stream' };
  expect((await send('PUT', `one/kv?key=${q(['file', 1])}`, { body: bytes, headers })).status).toBe(200);
  expect(await (await send('GET', `one/kv?key=${q(['file', 1])}`)).bytes()).toEqual(bytes);
  expect((await send('DELETE', 'one/kv/note')).status).toBe(200);
  expect((await send('GET', 'one/kv/note')).status).toBe(404);
});

test('a batch that is atomic is applied as a whole or not at all', async () => {
  await put('batches/kv/balance', 10);
  const tag = (await put('batches/kv/other', 0)).headers.get('etag') as string;
  const moved = await batch('batches/batch?atomic=true', [
    { op: 'set', key: 'balance', value: 6 },
    { op: 'set', key: 'other', value: 4, ifSequence: Number(JSON.parse(tag)) },
  ]);
  expect([moved.status, await moved.json()]).toEqual([200, { sequence: expect.any(Number), durability: 'strict' }]);
  const refused = await batch('batches/batch?atomic=true', [
    { op: 'set', key: 'balance', value: 2 },
    { op: 'deleteRange', range: { prefix: 'b' } },
    { op: 'set', key: 'other', value: 8, ifSequence: Number(JSON.parse(tag)) },
  ]);
  expect([refused.status, await refused.json()]).toEqual([412, expect.objectContaining({ code: 'VARVE_CONFLICT' })]);
  const read = await batch('batches/batch', [
    { op: 'get', key: 'balance' },
    { op: 'get', key: 'other' },
  ]);
  expect(await read.json()).toMatchObject({ results: [{ value: 6 }, { value: 4 }] });
});

test('a range is streamed from the object as it was when it was asked for', async () => {
  await fill('streams', 5000);
  const response = await send('GET', 'streams/range', { headers: ndjson });
  expect(response.headers.get('content-type')).toBe('application/x-ndjson');
  expect(response.headers.get('content-encoding')).toBe('gzip');
  const head = await send('HEAD', 'streams/range', { headers: ndjson });
  expect([head.status, head.headers.get('content-encoding'), await head.text()]).toEqual([200, 'gzip', '']);
  expect((await send('DELETE', `streams/range?prefix=${q(['many'])}`)).status).toBe(200);
  const lines = (await response.text()).trimEnd().split('\n');
  expect(lines.map((line) => (JSON.parse(line) as { key: unknown }).key)).toEqual(
    Array.from({ length: 5000 }, (_, i) => ['many', i]),
  );
  expect(await (await send('GET', 'streams/count')).json()).toEqual({ count: 0 });
  expect(await scans('streams')).toBe(0);
});

test('a page names the next one, below the path of the object', async () => {
  await fill('pages', 1000);
  const { next, entries } = (await (await send('GET', 'pages/range?limit=600&keysOnly=true')).json()) as {
    next: string;
    entries: unknown[];
  };
  expect([entries.length, next]).toEqual([600, expect.stringMatching(/^\/pages\/range\?/)]);
  const rest = (await (await send('GET', next.slice(1))).json()) as { next: null; entries: unknown[] };
  expect([rest.entries.length, rest.entries[0], rest.next]).toEqual([400, { key: ['many', 600] }, null]);
});

test('a client that leaves ends its scan in the object', async () => {
  await fill('left', 20_000);
  const leave = new AbortController();
  const response = await send('GET', 'left/range', { headers: ndjson, signal: leave.signal });
  await response.body?.getReader().read();
  expect(await scans('left')).toBe(1);
  leave.abort();
  await expect.poll(() => scans('left'), PATIENT).toBe(0);
});

test('a client without a token gets nothing but the health', async () => {
  await put('guarded/kv/a', 1);
  for (const authorization of ['', 'Bearer wrong', 'Basic YTpi', TOKEN]) {
    const headers = { authorization };
    for (const [method, path] of [
      ['GET', 'guarded/kv/a'],
      ['GET', 'guarded/range'],
      ['GET', 'guarded/metrics'],
      ['DELETE', 'guarded/kv/a'],
      ['POST', 'guarded/batch'],
      ['GET', 'guarded/nothing'],
    ] as const) {
      const response = await send(method, path, { headers });
      expect([path, response.status, response.headers.get('www-authenticate')]).toEqual([
        path,
        401,
        expect.stringContaining('Bearer'),
      ]);
    }
    expect(await (await send('GET', 'guarded/health', { headers })).json()).toEqual({ status: 'ok' });
  }
  expect((await send('GET', 'guarded/kv/a', { headers: { origin: 'https://evil.example' } })).status).toBe(403);
  expect(await (await send('GET', 'guarded/kv/a')).json()).toBe(1);
});

test('metrics are of the object that is asked', async () => {
  await put('measured/kv/a', 1);
  await put('measured/kv/b', 2);
  const response = await send('GET', 'measured/metrics');
  expect(response.headers.get('content-type')).toContain('version=0.0.4');
  const text = await response.text();
  expect(text).toContain('varve_http_requests_total{route="/kv",method="PUT",status="200"} 2\n');
  expect(text).toContain('varve_sequence{store="store"} 2\n');
});

test('an invalid request is refused, and changes nothing', async () => {
  await put('strict/kv/a', 1);
  const refused: [method: string, path: string, body: string | null, status: number][] = [
    ['GET', 'strict/kv?key=nonsense', null, 400],
    ['GET', 'strict/kv/%ff', null, 400],
    ['GET', 'strict/range?prefx="a"', null, 400],
    ['GET', 'strict/range?limit=-1', null, 400],
    ['DELETE', 'strict/range', null, 400],
    ['PUT', 'strict/kv/a', '{', 400],
    ['PUT', 'strict/kv/a?expiresIn=0', '1', 400],
    ['PUT', 'strict/kv/a?durability=eventual', '1', 400],
    ['POST', 'strict/batch', '{}', 400],
    ['POST', 'strict/batch', '[{"op":"set","key":"a","value":2},{"op":"sett"}]', 400],
    ['POST', 'strict/kv/a', '1', 405],
    ['GET', 'strict/nothing', null, 404],
    ['PUT', `strict/kv/${'k'.repeat(5000)}`, '1', 413],
  ];
  for (const [method, path, body, status] of refused) {
    const response = await send(method, path, { body, headers: json });
    expect([method, path, response.status]).toEqual([method, path, status]);
    expect(response.headers.get('content-type')).toBe('application/problem+json');
  }
  const plain = await send('PUT', 'strict/kv/a', { body: 'x', headers: { 'content-type': 'text/plain' } });
  expect(plain.status).toBe(415);
  const all = await send('GET', 'strict/range');
  expect(await all.json()).toEqual({ entries: [{ key: 'a', value: 1 }], next: null });
});

test('answered writes are there after the process was killed', async () => {
  const tag = (await put('killed/kv/a', 'before')).headers.get('etag');
  await workerd.dispose();
  await start();
  const got = await send('GET', 'killed/kv/a');
  expect([got.headers.get('etag'), await got.json()]).toEqual([tag, 'before']);
});
