/** Access to the handler, its reports about itself, and its answers to arbitrary requests. */

import { afterEach, beforeEach, describe, expect, expectTypeOf, test } from 'vitest';
import { VarveError } from '../../js/src/errors.ts';
import { problemOf } from '../../js/src/http/problem.ts';
import { bearer, createHandler, type HttpStore, secretsEqual } from '../../js/src/http.ts';
import { open } from '../../js/src/index.ts';
import type { StorageAdapter } from '../../js/src/storage/adapter.ts';
import { SlotError } from '../../js/src/storage/device.ts';
import { MemoryDevice } from '../../js/src/storage/memory.ts';
import type { Store } from '../../js/src/store/store.ts';
import { open as openSync, type SyncStore } from '../../js/src/synchronous.ts';
import type { Key, ScanOptions } from '../../js/src/types.ts';
import { wasm } from './support/engine.ts';
import { ORIGIN, problem, type Served, serve, served } from './support/http.ts';
import { KeptDevices } from './support/kept-devices.ts';

const INVALID = expect.objectContaining({ code: 'VARVE_INVALID_ARGUMENT' });

let http: Served;

beforeEach(async () => {
  http = await serve();
  await http.db.set('a', 1);
});
afterEach(() => http.db.close());

describe('sites', () => {
  const from = (headers: Record<string, string>, method = 'GET'): Request =>
    new Request(`${ORIGIN}/kv/a`, { method, headers });

  test.each([
    [{ 'sec-fetch-site': 'same-origin', origin: ORIGIN }, 200],
    [{ 'sec-fetch-site': 'same-origin' }, 200],
    [{ 'sec-fetch-site': 'none' }, 200],
    [{}, 200],
    [{ origin: ORIGIN }, 200],
    [{ origin: 'https://varve.test' }, 200],
    [{ 'sec-fetch-site': 'cross-site' }, 403],
    [{ 'sec-fetch-site': 'same-site' }, 403],
    [{ 'sec-fetch-site': 'cross-site', origin: ORIGIN }, 403],
    [{ 'sec-fetch-site': 'nonsense' }, 403],
    [{ origin: 'http://evil.test' }, 403],
    [{ origin: 'http://varve.test:81' }, 403],
    [{ origin: 'null' }, 403],
    [{ origin: 'nonsense' }, 403],
  ] as [Record<string, string>, number][])('%j is answered with %i', async (headers, status) => {
    for (const method of ['GET', 'DELETE', 'OPTIONS']) {
      const response = await http.handler(from(headers, method));
      expect(response.status).toBe(method === 'OPTIONS' && status === 200 ? 204 : status);
      for (const name of response.headers.keys()) expect(name).not.toMatch(/^access-control/);
      expect(response.headers.get('cross-origin-resource-policy')).toBe('same-origin');
      expect(response.headers.get('x-content-type-options')).toBe('nosniff');
    }
  });

  test('cors allows the origins in its list, and no others', async () => {
    const origin = 'https://app.example';
    const handler = createHandler(http.db, { cors: { origins: [origin] } });
    const cross = { 'sec-fetch-site': 'cross-site', origin };
    const response = await handler(from(cross));
    expect(response.status).toBe(200);
    expect(response.headers.get('access-control-allow-origin')).toBe(origin);
    expect(response.headers.get('access-control-allow-credentials')).toBe(null);
    expect(response.headers.get('vary')).toContain('Origin');
    expect((await handler(from({ ...cross, origin: 'https://evil.example' }))).status).toBe(403);
    expect((await handler(from({ 'sec-fetch-site': 'cross-site' }))).status).toBe(403);
    const asked = { ...cross, 'access-control-request-method': 'PUT' };
    const flight = await handler(from(asked, 'OPTIONS'));
    expect(flight.status).toBe(204);
    expect(flight.headers.get('access-control-allow-methods')).toContain('PUT');
    expect(flight.headers.get('access-control-max-age')).toBe('600');
    const all = createHandler(http.db, { cors: { origins: '*', maxAge: 5 }, authorize: bearer('t') });
    expect((await all(from(asked, 'OPTIONS'))).headers.get('access-control-max-age')).toBe('5');
    const refused = await all(from(cross));
    expect([refused.status, refused.headers.get('access-control-allow-origin')]).toEqual([401, '*']);
  });

  test('hosts that are not in the list are refused', async () => {
    const handler = createHandler(http.db, { hosts: ['varve.test', 'localhost:8080'] });
    const status = async (url: string) => (await handler(new Request(url))).status;
    expect(await status('http://varve.test/kv/a')).toBe(200);
    expect(await status('http://localhost:8080/kv/a')).toBe(200);
    expect(await status('http://localhost/kv/a')).toBe(421);
    expect(await status('http://rebound.test/kv/a')).toBe(421);
  });
});

describe('tokens', () => {
  test('bearer has tokens for writing and tokens for reading, and leaves /health open', async () => {
    const guarded = createHandler(http.db, { authorize: bearer({ write: ['w'], read: ['r', 'r2'] }) });
    const status = async (method: string, path: string, authorization?: string) => {
      const headers: Record<string, string> = authorization === undefined ? {} : { authorization };
      return (await guarded(new Request(`${ORIGIN}${path}`, { method, headers }))).status;
    };
    for (const path of ['/kv/a', '/range', '/count', '/metrics']) {
      expect(await status('GET', path)).toBe(401);
      expect(await status('GET', path, 'Bearer r2')).toBe(200);
      expect(await status('GET', path, 'bearer w')).toBe(200);
      expect(await status('GET', path, 'Bearer x')).toBe(401);
      expect(await status('GET', path, 'Basic r')).toBe(401);
    }
    expect(await status('GET', '/health')).toBe(200);
    expect(await status('GET', '/nothing')).toBe(401);
    expect(await status('GET', '/nothing', 'Bearer r')).toBe(404);
    expect(await status('DELETE', '/kv/a', 'Bearer r')).toBe(401);
    expect(await status('POST', '/batch', 'Bearer r')).toBe(401);
    expect(await status('DELETE', '/range?prefix="x"', 'Bearer w')).toBe(200);
    const refused = await guarded(new Request(`${ORIGIN}/kv/a`, { headers: { authorization: 'Bearer x' } }));
    expect(refused.headers.get('www-authenticate')).toBe('Bearer realm="varve", error="invalid_token"');
  });

  test('authorize gets the kind of a request; its own error is 500 without details', async () => {
    const asked: unknown[] = [];
    const errors: unknown[] = [];
    const boom = new Error('the password is 42');
    const handler = createHandler(http.db, {
      authorize: ({ kind, token }) => {
        asked.push([kind, token]);
        if (token === 'boom') throw boom;
        return Promise.resolve(token === 'ok');
      },
      onError: (error) => {
        errors.push(error);
        throw new Error('so is the log');
      },
    });
    const get = (token: string) =>
      handler(new Request(`${ORIGIN}/kv/a`, { headers: { authorization: `Bearer ${token}` } }));
    expect((await get('ok')).status).toBe(200);
    const failed = await get('boom');
    expect(failed.status).toBe(500);
    expect(await failed.text()).not.toContain('42');
    expect(asked).toEqual([
      ['read', 'ok'],
      ['read', 'boom'],
    ]);
    expect(errors).toEqual([boom]);
  });

  test('a bearer without a token is a mistake', async () => {
    const wrong = [
      undefined,
      null,
      5,
      { write: undefined },
      { write: 'token' },
      { write: ['w'], read: null },
      { read: 5 },
    ];
    for (const tokens of ['', {}, { read: [''] }, 'two words', { write: ['w', 'key\n'] }, ...wrong])
      expect(() => bearer(tokens as string)).toThrow(INVALID);
    expect(await secretsEqual('a', 'a')).toBe(true);
    expect(await secretsEqual('a', 'ab')).toBe(false);
  });
});

describe('methods, health, metrics', () => {
  test('a path takes its methods only', async () => {
    const response = await http.send('POST', '/kv/a');
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET, HEAD, PUT, DELETE']);
    expect((await http.send('GET', '/batch')).headers.get('allow')).toBe('POST');
    expect((await http.send('DELETE', '/metrics')).status).toBe(405);
    expect((await http.send('OPTIONS', '/kv/a')).headers.get('allow')).toContain('PUT');
    expect((await http.send('PATCH', '/toString')).status).toBe(404);
    expect((await http.send('GET', '/__proto__')).status).toBe(404);
    // Only an entry that is absent has a code: a client can tell it from a wrong path.
    expect(await problem(await http.send('GET', '/nothing'))).not.toHaveProperty('code');
    for (const method of ['toString', 'constructor', '__proto__']) {
      expect((await http.send(method, '/kv/a')).status).toBe(405);
    }
  });

  test('/health is ok while the store answers, 503 after', async () => {
    expect(await (await http.send('GET', '/health')).json()).toEqual({ status: 'ok' });
    await http.db.close();
    const response = await http.send('GET', '/health');
    expect(response.headers.get('retry-after')).toBe('1');
    expect(await problem(response)).toMatchObject({ status: 503, code: 'VARVE_CLOSED' });
    expect(await problem(await http.send('GET', '/range'))).toMatchObject({ status: 503, code: 'VARVE_CLOSED' });
    expect(
      await problem(await http.send('GET', '/range', { headers: { accept: 'application/x-ndjson' } })),
    ).toMatchObject({
      status: 503,
    });
  });

  test('/health of a store whose disk fails is 503, though it is still read', async () => {
    let fails = false;
    class FailingDevice extends MemoryDevice {
      override flush(slot: number): void {
        if (fails) throw new SlotError('io', 'the disk is gone');
        super.flush(slot);
      }
    }
    const storage: StorageAdapter = {
      kind: 'failing',
      open: async () => new FailingDevice(),
      list: async () => [],
      delete: async () => false,
    };
    const db = await open<Key, unknown>('failing', { storage, wasm });
    const failing = served(db, createHandler(db));
    expect((await failing.put('/kv/a', 1)).status).toBe(200);
    expect((await failing.send('GET', '/health')).status).toBe(200);
    fails = true;
    expect((await failing.put('/kv/a?durability=strict', 2)).status).toBeGreaterThanOrEqual(500);
    expect(await problem(await failing.send('GET', '/health'))).toMatchObject({ status: 503, code: 'VARVE_POISONED' });
    expect(await problem(await failing.put('/kv/a', 3))).toMatchObject({ status: 503, code: 'VARVE_POISONED' });
    expect((await failing.send('GET', '/kv/a')).status).toBe(200);
    fails = false;
    await db.close().catch(() => undefined);
  });

  test('/stats has the numbers of the store, with its name', async () => {
    await http.put('/kv/b', 2);
    const { snapshotAge: _, ...stats } = await http.db.stats();
    expect(await (await http.send('GET', '/stats')).json()).toMatchObject({
      name: 'http',
      sequence: stats.sequence,
      log: stats.log,
    });
    expect((await http.send('GET', '/stats?all=true')).status).toBe(400);
  });

  test('/metrics is text that Prometheus reads', async () => {
    await http.put('/kv/b', 2);
    await http.send('GET', '/kv/none');
    await http.send('GET', '/nowhere/"\n');
    await http.send('PURGE', '/kv/b');
    const snapshot = http.db.snapshot();
    await snapshot.get('b');
    await new Promise((resolve) => setTimeout(resolve, 20));
    const response = await http.send('GET', '/metrics');
    await snapshot.close();
    expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
    const text = await response.text();
    expect(text.endsWith('\n')).toBe(true);
    const names = new Map<string, string>();
    const label = String.raw`[a-z_]+="(?:[^"\\\n]|\\[\\"n])*"`;
    const sample = new RegExp(String.raw`^([a-z_]+)(?:\{${label}(?:,${label})*\})? [0-9.e+-]+$`);
    for (const line of text.trimEnd().split('\n')) {
      const [, name, type] = /^# TYPE ([a-z_]+) (gauge|counter|histogram)$/.exec(line) ?? [];
      if (name !== undefined) {
        expect(names.has(name)).toBe(false);
        names.set(name, type as string);
      } else if (!line.startsWith('# HELP ')) {
        const metric = sample.exec(line)?.[1]?.replace(/_(bucket|sum|count)$/, '');
        expect([line, names.has(metric ?? '')]).toEqual([line, true]);
        if (names.get(metric as string) === 'counter') expect(metric).toMatch(/_total$/);
      }
    }
    expect(text).toContain('varve_http_requests_total{route="/kv",method="PUT",status="200"} 1');
    expect(text).toContain('varve_http_requests_total{route="/kv",method="GET",status="404"} 1');
    expect(text).toContain('varve_http_requests_total{route="other",method="GET",status="404"} 1');
    expect(text).toContain('varve_http_requests_total{route="/kv",method="other",status="405"} 1');
    expect(text).toContain('varve_http_request_duration_seconds_bucket{route="/kv",le="+Inf"} 3');
    expect(text).toContain('varve_sequence{store="http"} 2');
    expect(text).toMatch(/^varve_log_segments\{store="http"\} [1-9]/m);
    expect(text).toMatch(/^varve_snapshot_age_seconds\{store="http"\} [0-4]\.\d+$/m);
  });
});

test('every code of the store has its status', () => {
  const status = (code: ConstructorParameters<typeof VarveError>[0]) => problemOf(new VarveError(code, 'x')).status;
  expect(status('VARVE_CONFLICT')).toBe(412);
  expect(status('VARVE_RETRY')).toBe(503);
  expect(status('VARVE_STORAGE_FULL')).toBe(507);
  expect(status('VARVE_POISONED')).toBe(503);
  expect(status('VARVE_CORRUPT')).toBe(500);
  expect(status('VARVE_NOT_FOUND')).toBe(404);
  expect(status('VARVE_EXISTS')).toBe(409);
  expect(status('VARVE_UNAVAILABLE')).toBe(503);
  expect(status('VARVE_UNSUPPORTED')).toBe(501);
  expect(problemOf({ name: 'VarveError', code: 'VARVE_RETRY', message: 'from another copy' }).status).toBe(503);
  expect(problemOf({ name: 'VarveError', code: 'toString' })).toMatchObject({ status: 500, code: 'VARVE_INTERNAL' });
});

test('an error to try again, or of a full store, has its status and the time to come again', async () => {
  for (const [code, status] of [
    ['VARVE_RETRY', 503],
    ['VARVE_STORAGE_FULL', 507],
  ] as const) {
    const failing = Object.assign(Object.create(http.db) as typeof http.db, {
      set: () => Promise.reject(new VarveError(code, 'no room')),
    });
    const put = new Request(`${ORIGIN}/kv/a`, {
      method: 'PUT',
      body: '1',
      headers: { 'content-type': 'application/json' },
    });
    const response = await createHandler(failing)(put);
    expect(response.headers.get('retry-after')).toBe(status === 503 ? '1' : null);
    expect(await problem(response)).toEqual({ status, code, detail: 'no room' });
  }
});

test('a request that its client aborts is aborted in the store', async () => {
  const signal = AbortSignal.abort();
  expect(await problem(await http.send('GET', '/range', { signal }))).toEqual({
    status: 499,
    detail: 'The client has closed the request.',
  });
  expect((await http.send('GET', '/count', { signal })).status).toBe(499);
});

test('a failure of the store is reported although the client has disconnected', async () => {
  const gone = new AbortController();
  const failure = new VarveError('VARVE_IO', 'The disk failed.');
  const failing = Object.assign(Object.create(http.db) as typeof http.db, {
    count: async () => {
      gone.abort();
      throw failure;
    },
  });
  const heard: unknown[] = [];
  const handler = createHandler(failing, { onError: (error) => void heard.push(error) });
  expect((await handler(new Request(`${ORIGIN}/count`, { signal: gone.signal }))).status).toBe(500);
  expect(heard).toEqual([failure]);
});

// The response had the status 200, and neither onError nor the metrics learned that it failed.
test('a failure inside of a response is reported and counted: of a stream, and of an operation of a batch', async () => {
  const failure = new VarveError('VARVE_IO', 'The disk failed.');
  const failing = Object.assign(Object.create(http.db) as typeof http.db, {
    async *entries({ signal }: ScanOptions) {
      yield ['a', 'x'.repeat(70_000)];
      signal?.throwIfAborted();
      throw failure;
    },
    set: async () => Promise.reject(failure),
    delete: (key: Key) => http.db.delete(key, { ifSequence: 7 }),
  });
  const heard: unknown[] = [];
  const handler = createHandler(failing, { onError: (error) => void heard.push(error) });
  const { batch, send } = served(failing, handler);
  for (const coding of ['identity', 'gzip']) {
    const headers = { accept: 'application/x-ndjson', 'accept-encoding': coding };
    const response = await send('GET', '/range', { headers });
    expect(response.status).toBe(200);
    await expect(response.bytes()).rejects.toThrow();
  }
  expect(heard).toEqual([failure, failure]);
  // The conflict of the second operation is the client's.
  const operations = [
    { op: 'set', key: 'a', value: 1 },
    { op: 'delete', key: 'a' },
  ];
  expect((await batch(operations)).status).toBe(200);
  expect(heard).toEqual([failure, failure, failure]);
  // A client that leaves is no failure.
  const gone = new AbortController();
  const left = await send('GET', '/range', { headers: { accept: 'application/x-ndjson' }, signal: gone.signal });
  gone.abort();
  await expect(left.bytes()).rejects.toThrow();
  expect(heard.length).toBe(3);
  const text = await (await send('GET', '/metrics')).text();
  expect(text).toContain('varve_http_failures_total{route="/range",status="500"} 2\n');
  expect(text).toContain('varve_http_failures_total{route="/batch",status="500"} 1\n');
});

// `cors: { origins: 'https://app.example.evil' }` allowed https://app.example, a part of it; other wrong options failed at the first request.
test('options that decide who is answered are refused if they make no sense', () => {
  const wrong = [
    { cors: { origins: 'https://app.example.evil' } },
    { cors: {} },
    { cors: { origins: ['https://app.example/'] } },
    { cors: { origins: ['app.example'] } },
    { cors: { origins: ['https://app.example:443'] } },
    { cors: { origins: ['HTTPS://app.example'] } },
    { cors: { origins: ['*'] } },
    { cors: { origins: [undefined] } },
    { hosts: 'localhost' },
    { hosts: [8080] },
    { authorize: 'token' },
  ];
  for (const options of wrong) expect(() => createHandler(http.db, options as never)).toThrow(INVALID);
  const origins = ['https://app.example', 'http://localhost:5173', 'http://[::1]:5173', 'capacitor://localhost'];
  expect(createHandler(http.db, { cors: { origins }, hosts: [], authorize: bearer('t') })).toBeTypeOf('function');
});

test('invalid options are refused at once', () => {
  const wrong = [
    { base: 'api' },
    { base: '/a?b' },
    { limits: { bodyBytes: 0 } },
    { limits: { keyBytes: 70_000 } },
    { limits: { rows: 5 } as object },
    { authorise: () => false } as object,
    { cors: { origin: '*' } as never },
  ];
  for (const options of wrong) expect(() => createHandler(http.db, options)).toThrow(INVALID);
});

test('a key codec stands between JSON and the store', async () => {
  const keys = {
    name: 'user',
    encode: (key: { id: number }): Key => ['user', key.id],
    decode: (key: Key) => {
      if (!Array.isArray(key) || key[0] !== 'user') throw new Error('no user');
      return { id: key[1] as number };
    },
  };
  const db = await open<{ id: number }, unknown>('coded', { storage: new KeptDevices(), wasm, keys });
  const handler = createHandler(db, { keys });
  const get = (path: string) => handler(new Request(`${ORIGIN}${path}`));
  await db.set({ id: 7 }, 'seven');
  expect(await (await get('/kv?key=["user",7]')).json()).toBe('seven');
  expect(await (await get('/range')).json()).toEqual({ entries: [{ key: ['user', 7], value: 'seven' }], next: null });
  expect(await problem(await get('/kv/seven'))).toMatchObject({ status: 400, code: 'VARVE_INVALID_KEY' });
  await db.close();
});

test('a store of varve/synchronous is served too; writes that it answers are logged', async () => {
  const db = await openSync('sync', { storage: 'memory', wasm, compactor: false });
  const handler = createHandler(db);
  const headers = { 'content-type': 'application/json' };
  const put = (body: string) => handler(new Request(`${ORIGIN}/kv/a`, { method: 'PUT', body, headers }));
  expect(await (await put('1')).json()).toEqual({ sequence: 1, durability: 'relaxed' });
  const body = JSON.stringify([
    { op: 'set', key: 'b', value: 2 },
    { op: 'get', key: 'a' },
    { op: 'delete', key: 'a', ifSequence: 9 },
  ]);
  const batch = await handler(new Request(`${ORIGIN}/batch`, { method: 'POST', body, headers }));
  expect(await batch.json()).toEqual({
    results: [
      { sequence: 2, durability: 'relaxed' },
      { value: 1, sequence: 1 },
      { error: expect.objectContaining({ code: 'VARVE_CONFLICT' }) },
    ],
  });
  expect(await (await handler(new Request(`${ORIGIN}/range`))).json()).toMatchObject({
    entries: [{ key: 'a' }, { key: 'b' }],
  });
  expect(await (await handler(new Request(`${ORIGIN}/count`))).json()).toEqual({ count: 2 });
  expect((await handler(new Request(`${ORIGIN}/health`))).status).toBe(200);
  expect((await handler(new Request(`${ORIGIN}/metrics`))).status).toBe(200);
  await db.close();
});

test('both kinds of store are accepted, with their types', () => {
  expectTypeOf<Store<Key, unknown>>().toExtend<HttpStore<Key, unknown>>();
  expectTypeOf<Store<string, number>>().toExtend<HttpStore<string, number>>();
  expectTypeOf<SyncStore<Key, unknown>>().toExtend<HttpStore<Key, unknown>>();
  expectTypeOf(createHandler<Key, unknown>).returns.toEqualTypeOf<(request: Request) => Promise<Response>>();
  // @ts-expect-error a store has its methods
  expect(() => createHandler({ name: 'x' }, { base: 'x' })).toThrow();
});
