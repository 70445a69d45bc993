/** Entries over HTTP: keys in URLs, values in bodies, ETags and conditions. */

import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { CborReader } from '../../js/src/codec/cbor-reader.ts';
import { CborWriter } from '../../js/src/codec/cbor-writer.ts';
import { ByteSink } from '../../js/src/codec/sink.ts';
import { keyFromJson, keyToJson } from '../../js/src/http/json-key.ts';
import { createHandler } from '../../js/src/http.ts';
import { problem, query, type Served, serve, served } from './support/http.ts';
import { Random } from './support/random.ts';

let http: Served;

beforeEach(async () => {
  http = await serve();
});
afterEach(() => http.db.close());

function cbor(value: unknown): Uint8Array<ArrayBuffer> {
  const sink = new ByteSink();
  new CborWriter(sink).write(value, sink);
  return sink.copy() as Uint8Array<ArrayBuffer>;
}

describe('keys', () => {
  test('a string key is one segment of the path, with any content', async () => {
    for (const key of ['visits', 'a/b', '42', 'true', '"', 'a b', '100%', '😀', '?#&=+', ' ', '\0', 'a..b']) {
      const response = await http.put(`/kv/${encodeURIComponent(key)}`, key);
      expect([key, response.status]).toEqual([key, 200]);
      expect(await http.db.get(key)).toBe(key);
      expect(await (await http.send('GET', `/kv?key=${query(key)}`)).json()).toBe(key);
    }
  });

  test('every kind of key is reached as JSON, and comes back as it was', async () => {
    const random = new Random(7);
    for (let i = 0; i < 300; i++) {
      const key = random.key();
      expect((await http.put(`/kv?key=${query(keyToJson(key))}`, i)).status).toBe(200);
      expect(await http.db.get(key)).toBe(i);
      expect(keyFromJson(JSON.parse(JSON.stringify(keyToJson(key))), 65_537)).toStrictEqual(key);
    }
    const tags: [unknown, unknown][] = [
      [{ bytes: 'AP8' }, Uint8Array.of(0, 255)],
      [{ bytes: 'AP8=' }, Uint8Array.of(0, 255)],
      [{ bytes: '-_-_' }, Uint8Array.of(0xfb, 0xff, 0xbf)],
      [{ bigint: '-12' }, -12n],
      [{ date: '2026-01-31T12:00:00.000Z' }, new Date('2026-01-31T12:00:00Z')],
      [{ number: '-Infinity' }, Number.NEGATIVE_INFINITY],
      [
        ['note', [42, { bigint: '1' }]],
        ['note', [42, 1n]],
      ],
    ];
    for (const [json, key] of tags) expect(keyFromJson(json, 100)).toStrictEqual(key);
  });

  test.each([
    '/kv',
    '/kv?key=visits',
    '/kv?kye="a"',
    '/kv?key=null',
    '/kv?key={}',
    `/kv?key=${query({ date: '2026' })}`,
    `/kv?key=${query({ bigint: '0x10' })}`,
    `/kv?key=${query({ bigint: '-0' })}`,
    `/kv?key=${query({ bytes: 'a' })}`,
    `/kv?key=${query({ bytes: 'aa aa' })}`,
    `/kv?key=${query({ number: 'NaN' })}`,
    `/kv?key=${query({ bytes: 'AA', date: 'x' })}`,
    '/kv?key="\\ud800"',
    '/kv/a?key="a"',
    `/kv?key=${'['.repeat(40)}${']'.repeat(40)}`,
  ])('%s names no key', async (path) => {
    expect(await problem(await http.send('GET', path))).toMatchObject({ status: 400, code: 'VARVE_INVALID_KEY' });
  });

  test.each(['/kv?key="a"&key="b"', '/kv?key="a"&kye="a"', '/kv?key="%ff"', '/kv/%ff', '/kv?key="%"', '/kv/a?limit=1'])(
    '%s is malformed',
    async (path) => {
      expect(await problem(await http.send('GET', path))).toMatchObject({
        status: 400,
        code: 'VARVE_INVALID_ARGUMENT',
      });
    },
  );

  test('a path of more segments than one is no key, and neither is an empty one', async () => {
    for (const path of ['/kv/a/b', '/kv/', '/kv/..', '/', '/kv/a/']) {
      expect((await http.send('GET', path)).status).toBe(404);
    }
  });

  test('a key longer than the limit is refused with 413', async () => {
    const small = await serve({ limits: { keyBytes: 16 } });
    expect((await small.put('/kv/123456789012345', 1)).status).toBe(200);
    const long = [
      '/kv/1234567890123456',
      `/kv?key=${query(Array(20).fill(1))}`,
      `/kv?key=${query({ bigint: '9'.repeat(200) })}`,
      `/range?prefix=${query('1234567890123456')}`,
    ];
    for (const path of long) {
      expect(await problem(await small.send('GET', path))).toMatchObject({ status: 413, code: 'VARVE_INVALID_KEY' });
    }
    await small.db.close();
  });
});

describe('values', () => {
  test('JSON, bytes and CBOR go in and come out as they are', async () => {
    const date = new Date(5);
    const cases: [string, BodyInit, unknown][] = [
      ['application/json', '{"title":"Silt","tags":["lake",null,1.5]}', { title: 'Silt', tags: ['lake', null, 1.5] }],
      ['application/json; charset=utf-8', '"text"', 'text'],
      ['application/octet-stream', Uint8Array.of(0, 1, 255), Uint8Array.of(0, 1, 255)],
      [
        'application/cbor',
        cbor({ at: date, n: 1n, map: new Map([[1, 2]]) }),
        { at: date, n: 1n, map: new Map([[1, 2]]) },
      ],
    ];
    for (const [type, body, value] of cases) {
      const response = await http.send('PUT', '/kv/v', { body, headers: { 'content-type': type } });
      expect(response.status).toBe(200);
      expect(await http.db.get('v')).toStrictEqual(value);
      const read = await http.send('GET', '/kv/v');
      expect(read.headers.get('content-type')).toBe(type.split(';')[0]);
      const bytes = new Uint8Array(await read.arrayBuffer());
      expect(read.headers.get('content-length')).toBe(String(bytes.length));
      if (type.startsWith('application/json')) expect(JSON.parse(new TextDecoder().decode(bytes))).toEqual(value);
      else expect(bytes).toEqual(body);
    }
  });

  test('the Accept header chooses the type, and any other type is 406', async () => {
    await http.db.set('json', { a: 1 });
    await http.db.set('bytes', Uint8Array.of(1));
    await http.db.set('date', new Date(5));
    const get = async (key: string, accept: string) => {
      const response = await http.send('GET', `/kv/${key}`, { headers: { accept } });
      return [response.status, response.headers.get('content-type')];
    };
    expect(await get('json', 'application/cbor')).toEqual([200, 'application/cbor']);
    expect(await get('json', 'application/cbor;q=0.5, application/json')).toEqual([200, 'application/json']);
    expect(await get('json', 'text/html, */*;q=0.1')).toEqual([200, 'application/json']);
    expect(await get('json', 'application/json;q=0, application/*')).toEqual([200, 'application/cbor']);
    expect(await get('bytes', 'application/octet-stream')).toEqual([200, 'application/octet-stream']);
    expect(await get('bytes', 'application/json')).toEqual([406, 'application/problem+json']);
    expect(await get('date', 'application/json')).toEqual([406, 'application/problem+json']);
    expect(await get('json', 'text/html')).toEqual([406, 'application/problem+json']);
    const sent = await (await http.send('GET', '/kv/json', { headers: { accept: 'application/cbor' } })).bytes();
    expect(new CborReader().read(sent, 0, sent.length)).toEqual({ a: 1 });
  });

  // A cache that had the JSON of an entry took it for the CBOR that was asked for, because both had the same ETag.
  test('the CBOR of a value that has another form has an ETag of its own', async () => {
    await http.put('/kv/json', { a: 1 });
    const get = async (headers: Record<string, string>) => {
      const { status, headers: given } = await http.send('GET', '/kv/json', { headers });
      return [status, given.get('etag')];
    };
    const accept = 'application/cbor';
    expect(await get({})).toEqual([200, '"1"']);
    expect(await get({ accept })).toEqual([200, '"1-cbor"']);
    expect(await get({ accept, 'if-none-match': '"1"' })).toEqual([200, '"1-cbor"']);
    expect(await get({ accept, 'if-none-match': '"1", "1-cbor"' })).toEqual([304, '"1-cbor"']);
    expect(await get({ accept, 'if-none-match': '*' })).toEqual([304, '"1-cbor"']);
    expect(await get({ 'if-none-match': '"1-cbor"' })).toEqual([200, '"1"']);
    expect(await get({ 'if-none-match': '"1-cbor-gzip", "1-gzip"' })).toEqual([304, '"1-gzip"']);
    // Both name the same entry, for writes.
    expect((await http.put('/kv/json', 2, { 'if-none-match': '"1-cbor"' })).status).toBe(412);
    expect((await http.put('/kv/json', 2, { 'if-match': '"1-cbor"' })).status).toBe(200);
    await http.db.set('date', new Date(0));
    expect((await http.send('GET', '/kv/date')).headers.get('etag')).toBe('"3"');
  });

  test('values that JSON would change or repeat are sent as CBOR', async () => {
    const shared = [1];
    const cycle: unknown[] = [];
    cycle.push(cycle);
    const values = [
      Number.NaN,
      -0,
      [undefined],
      { a: undefined },
      1n,
      [shared, shared],
      cycle,
      new Set([1]),
      { b: new Uint8Array(1) },
    ];
    for (const value of values) {
      await http.db.set('v', value);
      expect((await http.send('GET', '/kv/v')).headers.get('content-type')).toBe('application/cbor');
    }
    for (const value of [null, 0, '', false, [], {}, { ['__proto__']: 1 }, 'a\ud800']) {
      await http.db.set('v', value);
      const response = await http.send('GET', '/kv/v');
      expect(response.headers.get('content-type')).toBe('application/json');
      expect(await response.json()).toStrictEqual(value);
    }
  });

  test('a body that is no value is refused', async () => {
    const put = async (type: string | undefined, body: BodyInit) => {
      const headers: Record<string, string> = type === undefined ? {} : { 'content-type': type };
      return problem(await http.send('PUT', '/kv/v', { body, headers }));
    };
    const invalid = { status: 400, code: 'VARVE_INVALID_VALUE' };
    for (const body of ['', '{', 'undefined', '{"a":1}x', Uint8Array.of(0x22, 0xff, 0x22)]) {
      expect(await put('application/json', body)).toMatchObject(invalid);
    }
    // Story: bytes in a text that are no UTF-8 were replaced, and members whose names then were the same got lost.
    const noText = [Uint8Array.of(0x61, 0xff), Uint8Array.of(0xa2, 0x61, 0xfe, 1, 0x61, 0xff, 2)];
    for (const body of ['', 'x', Uint8Array.of(0xf7), Uint8Array.of(0x9f, 0xff), cbor([1]).slice(0, 1), ...noText]) {
      expect(await put('application/cbor', body)).toMatchObject(invalid);
    }
    expect(await put('application/json', '['.repeat(5000) + ']'.repeat(5000))).toMatchObject(invalid);
    expect(await put('text/plain', 'x')).toMatchObject({ status: 415, code: 'VARVE_INVALID_ARGUMENT' });
    expect(await put(undefined, Uint8Array.of(1))).toMatchObject({ status: 415 });
    expect(await http.db.count()).toBe(0);
  });

  test('a body longer than the limit is refused, announced or not', async () => {
    const small = await serve({ limits: { bodyBytes: 100 } });
    const type = { 'content-type': 'application/octet-stream' };
    const put = (body: BodyInit, headers = {}) =>
      small.handler(
        new Request('http://varve.test/kv/v', {
          method: 'PUT',
          body,
          headers: { ...type, ...headers },
          duplex: 'half',
        } as RequestInit),
      );
    expect((await put(new Uint8Array(100))).status).toBe(200);
    expect(await problem(await put(new Uint8Array(101)))).toMatchObject({
      status: 413,
      code: 'VARVE_INVALID_ARGUMENT',
    });
    let pulled = 0;
    let isCancelled = false;
    const endless = new ReadableStream<Uint8Array>({
      pull: (controller) => {
        pulled++;
        controller.enqueue(new Uint8Array(60));
      },
      cancel: () => {
        isCancelled = true;
      },
    });
    expect((await put(endless)).status).toBe(413);
    expect(pulled).toBeLessThan(5);
    expect(isCancelled).toBe(true);
    expect((await put(new Uint8Array(1), { 'content-length': '1000' })).status).toBe(413);
    expect((await put(new Uint8Array(1), { 'content-encoding': 'gzip' })).status).toBe(415);
    await small.db.close();
  });

  // Over HTTP/2, Deno ends the body of a client that is gone without an error: the half that had come was stored as the value.
  test('a body that ends before its announced length is refused', async () => {
    const headers = { 'content-type': 'application/octet-stream', 'content-length': '100' };
    const half = await problem(await http.send('PUT', '/kv/v', { body: new Uint8Array(50), headers }));
    expect(half).toMatchObject({ status: 400, detail: 'The body ended before it was complete.' });
    expect(await http.db.has('v')).toBe(false);
    expect((await http.send('PUT', '/kv/v', { body: new Uint8Array(100), headers })).status).toBe(200);
  });

  // The end of a file that `curl -C 50 -T file` sends replaced the whole value.
  test('a part of a body is not taken for the whole', async () => {
    const headers = { 'content-type': 'application/octet-stream', 'content-range': 'bytes 50-99/100' };
    const part = await problem(await http.send('PUT', '/kv/v', { body: new Uint8Array(50), headers }));
    expect(part).toMatchObject({ status: 400, code: 'VARVE_INVALID_ARGUMENT' });
    expect(await http.db.has('v')).toBe(false);
  });

  test('a value of the store that no media type takes is refused, as it would be there', async () => {
    const body = { 'content-type': 'application/cbor' };
    expect(await problem(await http.send('PUT', '/kv/v', { body: cbor(undefined), headers: body }))).toMatchObject({
      code: 'VARVE_INVALID_VALUE',
    });
  });
});

describe('writing', () => {
  test('a write answers with its sequence and the level that was asked for', async () => {
    const first = await http.put('/kv/a?durability=strict', 1);
    expect(await first.json()).toEqual({ sequence: 1, durability: 'strict' });
    expect(first.headers.get('etag')).toBe('"1"');
    expect(await (await http.put('/kv/a', 2)).json()).toEqual({ sequence: 2, durability: 'relaxed' });
    const gone = await http.send('DELETE', '/kv/a?durability=strict');
    expect(await gone.json()).toEqual({ sequence: 3, durability: 'strict' });
    expect((await http.send('DELETE', '/kv/a')).status).toBe(200);
    expect(await (await http.send('DELETE', '/kv/a?existed=true')).json()).toMatchObject({ existed: false });
    await http.put('/kv/a', 1);
    const asks = await http.send('DELETE', '/kv/a?existed=true', { headers: { 'if-match': '*' } });
    expect(await asks.json()).toMatchObject({ existed: true, durability: 'relaxed' });
    for (const bad of [
      'durability=now',
      'durability=',
      'expiresIn=0',
      'expiresIn=-1',
      'expiresIn=x',
      'expiresIn=1e3',
      'expiresAt=2030',
      'expiresAt=1900000000000',
      'expiresIn=1000&expiresAt=2030-01-31T12:00:00.000Z',
    ]) {
      expect(await problem(await http.put(`/kv/a?${bad}`, 1))).toMatchObject({
        status: 400,
        code: 'VARVE_INVALID_ARGUMENT',
      });
    }
  });

  test('an entry can expire, and its answer has the time', async () => {
    const before = Date.now();
    await http.put('/kv/token?expiresIn=60000', 'x');
    const expires = new Date((await http.send('GET', '/kv/token')).headers.get('varve-expires') as string).getTime();
    expect(expires).toBeGreaterThanOrEqual(before + 60_000);
    expect(expires).toBeLessThanOrEqual(Date.now() + 60_001);
    await http.put('/kv/until?expiresAt=2090-01-31T12:00:00.000Z', 'x');
    const until = await http.send('GET', '/kv/until');
    expect(until.headers.get('varve-expires')).toBe('2090-01-31T12:00:00.000Z');
    await http.put('/kv/plain', 'x');
    expect((await http.send('GET', '/kv/plain')).headers.get('varve-expires')).toBe(null);
  });

  test('HEAD answers as GET does, without the body', async () => {
    await http.put('/kv/a', [1, 2]);
    const head = await http.send('HEAD', '/kv/a');
    expect(head.status).toBe(200);
    expect(head.headers.get('etag')).toBe('"1"');
    expect(head.headers.get('content-length')).toBe('5');
    expect(await head.text()).toBe('');
    expect((await http.send('HEAD', '/kv/b')).status).toBe(404);
  });

  test('an absent key is 404', async () => {
    expect(await problem(await http.send('GET', '/kv/a'))).toEqual({
      status: 404,
      detail: 'There is no entry with this key.',
      code: 'VARVE_NOT_FOUND',
    });
  });
});

describe('conditions', () => {
  const conflict = { status: 412, code: 'VARVE_CONFLICT' };

  test('If-None-Match sends no value that the client has', async () => {
    await http.put('/kv/a', 1);
    const get = async (tags: string) =>
      (await http.send('GET', '/kv/a', { headers: { 'if-none-match': tags } })).status;
    expect(await get('"1"')).toBe(304);
    expect(await get('W/"1"')).toBe(304);
    expect(await get('"9", "1"')).toBe(304);
    expect(await get('*')).toBe(304);
    expect(await get('"2"')).toBe(200);
    expect(await get('"x"')).toBe(200);
    const spared = await http.send('GET', '/kv/a', { headers: { 'if-none-match': '"1"' } });
    expect(spared.headers.get('etag')).toBe('"1"');
    expect(await spared.text()).toBe('');
  });

  // Story: a proxy in front keeps answers under ETags of its own, with commas in them. Each of its reads got 400.
  test('an ETag of somebody else may contain commas', async () => {
    await http.put('/kv/a', 1);
    const get = async (tags: string) =>
      (await http.send('GET', '/kv/a', { headers: { 'if-none-match': tags } })).status;
    expect(await get('"a,b"')).toBe(200);
    expect(await get('"1,2"')).toBe(200);
    expect(await get('"a,b" , W/"c,",  "1"')).toBe(304);
    expect(await problem(await http.put('/kv/a', 2, { 'if-match': '"a,1"' }))).toMatchObject(conflict);
    expect((await http.put('/kv/a', 2, { 'if-match': '",", "1"' })).status).toBe(200);
  });

  test('If-None-Match: * creates only', async () => {
    expect((await http.put('/kv/a', 1, { 'if-none-match': '*' })).status).toBe(201);
    const refused = await http.put('/kv/a', 2, { 'if-none-match': '*' });
    const body = await refused.json();
    expect(body).toMatchObject({ ...conflict, title: 'Precondition Failed', conflict: { key: 'a', sequence: 1 } });
    expect(await http.db.get('a')).toBe(1);
  });

  test('If-Match changes only what was read', async () => {
    await http.put('/kv/a', 1);
    expect((await http.put('/kv/a', 2, { 'if-match': '"1"' })).headers.get('etag')).toBe('"2"');
    expect(await problem(await http.put('/kv/a', 3, { 'if-match': '"1"' }))).toMatchObject(conflict);
    expect(await problem(await http.put('/kv/a', 3, { 'if-match': 'W/"2"' }))).toMatchObject(conflict);
    expect(await problem(await http.put('/kv/a', 3, { 'if-match': '"x"' }))).toMatchObject(conflict);
    expect(await problem(await http.send('DELETE', '/kv/a', { headers: { 'if-match': '"1"' } }))).toMatchObject(
      conflict,
    );
    expect(await http.db.get('a')).toBe(2);
    expect((await http.put('/kv/a', 3, { 'if-match': '"1", "2"' })).status).toBe(200);
    expect((await http.put('/kv/a', 4, { 'if-match': '*' })).status).toBe(200);
    expect((await http.put('/kv/a', 5, { 'if-match': '*', 'if-none-match': '"1"' })).status).toBe(200);
    expect(await problem(await http.put('/kv/a', 6, { 'if-match': '*', 'if-none-match': '"5"' }))).toMatchObject(
      conflict,
    );
    expect((await http.send('DELETE', '/kv/a', { headers: { 'if-match': '"5"' } })).status).toBe(200);
    expect(await problem(await http.put('/kv/a', 1, { 'if-match': '*' }))).toMatchObject(conflict);
    expect(await problem(await http.send('GET', '/kv/a', { headers: { 'if-match': '*' } }))).toMatchObject(conflict);
  });

  test('of two clients that write the entry that both read, one conflicts', async () => {
    await http.put('/kv/n', 0);
    const increment = async (): Promise<void> => {
      for (;;) {
        const read = await http.send('GET', '/kv/n');
        const etag = read.headers.get('etag') as string;
        const response = await http.put('/kv/n', ((await read.json()) as number) + 1, { 'if-match': etag });
        if (response.status === 200) return;
        expect(response.status).toBe(412);
      }
    };
    await Promise.all(Array.from({ length: 20 }, increment));
    expect(await http.db.get('n')).toBe(20);
  });

  test('a list of tags is compared again when another write came in between', async () => {
    await http.put('/kv/n', 0);
    const writes = Array.from({ length: 60 }, (_, i) => http.put('/kv/n', i, { 'if-match': '*' }));
    expect((await Promise.all(writes)).map(({ status }) => status)).toEqual(Array(60).fill(200));
    expect(await http.db.get('n'), 'in the order of the requests').toBe(59);
  });

  test('a list of tags is no conflict where others write each time: the client is asked to come again', async () => {
    vi.spyOn(Math, 'random').mockReturnValue(0);
    const { db } = http;
    await db.set('n', 0);
    const store = new Proxy(db, {
      get: (target, name) => {
        if (name === 'set') {
          return async (...write: Parameters<typeof db.set>) => {
            await db.set('n', -1);
            return db.set(...write);
          };
        }
        const value: unknown = Reflect.get(target, name);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
    const response = await served(db, createHandler(store)).put('/kv/n', 1, { 'if-match': '*' });
    vi.restoreAllMocks();
    expect(response.headers.get('retry-after')).toBe('1');
    expect(await problem(response)).toMatchObject({ status: 503, code: 'VARVE_RETRY' });
    expect(await db.get('n')).toBe(-1);
  });

  test.each(['1', '"1', 'W/1', '"1" "2"', '"1",', '"1",,"2"', '"1,', '', 'w/"1"'])(
    'If-Match: %s is malformed',
    async (tags) => {
      const response = await http.put('/kv/a', 1, { 'if-match': tags });
      expect(await problem(response)).toMatchObject({ status: 400, code: 'VARVE_INVALID_ARGUMENT' });
    },
  );
});
