/** Ranges, streams and batches over HTTP. */

import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createHandler } from '../../js/src/http.ts';
import type { Key } from '../../js/src/types.ts';
import { counted, ORIGIN, problem, query, type Served, serve, served } from './support/http.ts';

const PATIENT = { timeout: 30_000 };

let http: Served;

beforeEach(async () => {
  http = await serve();
});
afterEach(() => http.db.close());

interface Page {
  readonly entries: {
    readonly key: unknown;
    readonly value?: unknown;
    readonly bytes?: string;
    readonly cbor?: string;
  }[];
  readonly next: string | null;
}

async function page(path: string): Promise<Page> {
  const response = await http.send('GET', path);
  expect(response.status).toBe(200);
  return (await response.json()) as Page;
}

const fill = (count: number) =>
  http.db.setMany(Array.from({ length: count }, (_, i): [Key, unknown] => [['note', i], `value ${i}`]));
const ndjson = { headers: { accept: 'application/x-ndjson' } };

test('a handler over a view serves only its part', async () => {
  await http.db.setMany([
    ['secret', 1],
    [['note', 1], 'one'],
    [['note', 2, 'x'], 'two'],
  ]);
  const { send, put, batch } = served(http.db, createHandler(http.db.at(['note'])));
  expect(await (await send('GET', '/range')).json()).toMatchObject({
    entries: [
      { key: 1, value: 'one' },
      { key: [2, 'x'], value: 'two' },
    ],
  });
  expect((await put('/kv?key=3', 'three')).status).toBe(200);
  expect(await http.db.get(['note', 3])).toBe('three');
  const conflict = await batch([{ op: 'set', key: 1, value: 'again', ifSequence: null }], '?atomic=true');
  expect(await conflict.json()).toMatchObject({ code: 'VARVE_CONFLICT', conflict: { key: 1 } });
  expect((await send('GET', '/kv/secret')).status).toBe(404);
  expect(await (await send('GET', '/metrics')).text()).not.toContain('varve_sequence');
  expect(await problem(await send('GET', '/stats'))).toMatchObject({
    status: 404,
    detail: expect.stringContaining('view'),
  });
  expect((await send('DELETE', '/range?prefix=[]')).status).toBe(200);
  expect(await http.db.count()).toBe(1);
});

describe('pages', () => {
  test('a range has bounds, a prefix, a direction and a limit', async () => {
    await http.db.setMany([
      ['a', 1],
      ['b', Uint8Array.of(1)],
      ['c', new Date(5)],
      [['note', 1], 'x'],
    ]);
    expect((await page('/range')).entries).toEqual([
      { key: 'a', value: 1 },
      { key: 'b', bytes: 'AQ==' },
      { key: 'c', cbor: expect.any(String) },
      { key: ['note', 1], value: 'x' },
    ]);
    const keys = async (parameters: string) =>
      (await page(`/range?keysOnly=true&${parameters}`)).entries.map(({ key }) => key);
    expect(await keys('gt="a"&lt=["note"]')).toEqual(['b', 'c']);
    expect(await keys('gte="b"&lte="b"')).toEqual(['b']);
    expect(await keys('prefix=["note"]')).toEqual([['note', 1]]);
    expect(await keys('reverse=true&limit=2')).toEqual([['note', 1], 'c']);
    expect(await keys('limit=0')).toEqual([]);
    expect(await (await http.send('GET', '/count?lt=["note"]')).json()).toEqual({ count: 3 });
  });

  test.each(['', '&reverse=true', '&keysOnly=true', '&reverse=true&keysOnly=true'])(
    'next leads from page to page until there is none (%s)',
    async (parameters) => {
      await fill(25);
      await http.db.set('other', 1);
      const seen: unknown[] = [];
      const sizes: number[] = [];
      let next: string | null = `/range?prefix=["note"]&limit=10${parameters}`;
      while (next !== null) {
        const response = await http.send('GET', next);
        const body = (await response.json()) as Page;
        expect(response.headers.get('link')).toBe(body.next === null ? null : `<${body.next}>; rel="next"`);
        seen.push(...body.entries.map(({ key }) => key));
        sizes.push(body.entries.length);
        next = body.next;
      }
      const numbers = Array.from({ length: 25 }, (_, i) => ['note', i]);
      expect(seen).toEqual(parameters.includes('reverse') ? numbers.reverse() : numbers);
      expect(sizes).toEqual([10, 10, 5]);
    },
  );

  // Story: a program had keys of 5000 bytes in its store. A client that walked the store over HTTP got 413 for the `next` of a page
  // that ended at such a key, so it never saw the rest.
  test.each(['', '&reverse=true'])('next leads on behind a key that requests may not name (%s)', async (parameters) => {
    const long = Array.from({ length: 3 }, (_, i) => ['long', i, 'x'.repeat(5000 + 30_000 * i)]);
    await http.db.setMany(long.map((key) => [key, 1]));
    await http.db.set(['longer'], 1);
    const seen: unknown[] = [];
    let next: string | null = `/range?limit=1&keysOnly=true${parameters}`;
    while (next !== null) {
      const { entries, next: following } = await page(next);
      seen.push(...entries.map(({ key }) => key));
      next = following;
    }
    const keys = [...long, ['longer']];
    expect(seen).toEqual(parameters === '' ? keys : keys.reverse());
    expect((await http.send('GET', `/kv?key=${query(long[0])}`)).status).toBe(413);
  });

  test('a page ends at the limits of the handler, with its next', async () => {
    const small = await serve({ base: '/api/store/', limits: { results: 3, answerBytes: 1000 } });
    await small.db.setMany(Array.from({ length: 6 }, (_, i): [Key, unknown] => [i, 'x'.repeat(i < 3 ? 1 : 900)]));
    const read = async (path: string) => (await (await small.send('GET', path)).json()) as Page;
    const first = await read('/api/store/range?limit=100');
    expect(first.entries.map(({ key }) => key)).toEqual([0, 1, 2]);
    expect(first.next).toMatch(/^\/api\/store\/range\?/);
    const second = await read(first.next as string);
    expect(second.entries.map(({ key }) => key)).toEqual([3, 4]);
    const third = await read(second.next as string);
    expect(third).toMatchObject({ entries: [{ key: 5 }], next: null });
    expect((await small.send('GET', '/range')).status).toBe(404);
    await small.db.close();
  });

  test.each(['gt="a"&gte="a"', 'prefix=1', 'limit=-1', 'limit=1.5', 'limit=', 'reverse=yes', 'pre="a"', 'gt=', 'lt=a'])(
    'the range %s makes no sense',
    async (parameters) => {
      const { status, code } = await problem(await http.send('GET', `/range?${parameters}`));
      expect(status).toBe(400);
      expect(code).toMatch(/^VARVE_INVALID_(ARGUMENT|KEY)$/);
    },
  );

  test('a range is deleted by its bounds, and not without', async () => {
    await fill(5);
    expect(await problem(await http.send('DELETE', '/range'))).toMatchObject({
      status: 400,
      code: 'VARVE_INVALID_ARGUMENT',
    });
    expect((await http.send('DELETE', '/range?limit=1&prefix=["note"]')).status).toBe(400);
    expect(await http.db.count()).toBe(5);
    const response = await http.send('DELETE', `/range?gte=${query(['note', 2])}&durability=strict`);
    expect(await response.json()).toMatchObject({ durability: 'strict' });
    expect(await http.db.count()).toBe(2);
  });
});

describe('streams', () => {
  test('a stream has every entry on a line of its own', async () => {
    await fill(3000);
    const response = await http.send('GET', '/range?prefix=["note"]', ndjson);
    expect(response.headers.get('content-type')).toBe('application/x-ndjson');
    const lines = (await response.text()).trimEnd().split('\n');
    expect(lines.map((line) => JSON.parse(line))).toEqual(
      Array.from({ length: 3000 }, (_, i) => ({ key: ['note', i], value: `value ${i}` })),
    );
    expect(await (await http.send('GET', '/range?gt=["note",1]&limit=1&keysOnly=true', ndjson)).text()).toBe(
      '{"key":["note",2]}\n',
    );
    expect(await (await http.send('GET', '/range?lt="a"', ndjson)).text()).toBe('');
    expect((await http.send('GET', '/range', { headers: { accept: 'text/html' } })).status).toBe(406);
  });

  test('it is read as fast as the client reads, and ends when the client leaves', async () => {
    await http.db.setMany(Array.from({ length: 2000 }, (_, i): [Key, unknown] => [i, 'x'.repeat(1000)]));
    const { store, given } = counted(http.db);
    const slow = served(store, createHandler(store));
    const response = await slow.send('GET', '/range', ndjson);
    const reader = response.body!.getReader();
    await reader.read();
    // Enough time for a scan that would read on.
    for (let i = 0; i < 50; i++) await slow.send('GET', '/count');
    expect(given()).toBeLessThan(100);
    await reader.read();
    expect(given()).toBeGreaterThan(100);
    expect((await http.db.stats()).scans).toBe(1);
    await reader.cancel();
    await expect.poll(async () => (await http.db.stats()).scans, PATIENT).toBe(0);
    expect(given()).toBeLessThan(200);
  });

  test('it has one read point', async () => {
    await fill(3000);
    const response = await http.send('GET', '/range', ndjson);
    await http.db.clear();
    expect((await response.text()).split('\n').length).toBe(3001);
  });

  test('an aborted stream ends its scan', async () => {
    await http.db.setMany(Array.from({ length: 2000 }, (_, i): [Key, unknown] => [i, 'x'.repeat(1000)]));
    const abort = new AbortController();
    const response = await http.send('GET', '/range', { ...ndjson, signal: abort.signal });
    const reader = response.body!.getReader();
    await reader.read();
    abort.abort();
    await expect(
      (async () => {
        while (!(await reader.read()).done);
      })(),
    ).rejects.toMatchObject({ name: 'AbortError' });
    await expect.poll(async () => (await http.db.stats()).scans, PATIENT).toBe(0);
  });

  test('HEAD of a stream reads nothing on', async () => {
    await fill(3000);
    const head = await http.send('HEAD', '/range', ndjson);
    expect(head.status).toBe(200);
    expect(head.body).toBe(null);
    await expect.poll(async () => (await http.db.stats()).scans, PATIENT).toBe(0);
  });
});

describe('batches', () => {
  test('operations run in their order, each for itself', async () => {
    const response = await http.batch([
      { op: 'set', key: 'a', value: { n: 1 } },
      { op: 'get', key: 'a' },
      { op: 'set', key: 'a', value: 2, ifSequence: null },
      { op: 'set', key: ['b', 1], bytes: 'AQID' },
      { op: 'set', key: 'c', value: 1, expiresIn: 60_000 },
      { op: 'delete', key: 'a', ifSequence: 1 },
      { op: 'get', key: 'a' },
      { op: 'deleteRange', range: { prefix: ['b'] } },
      { op: 'get', key: 'c' },
      { op: 'set', key: 'c', value: 2, expiresAt: '2090-01-31T12:00:00.000Z' },
      { op: 'get', key: 'c' },
    ]);
    expect(response.status).toBe(200);
    const { results } = (await response.json()) as { results: unknown[] };
    expect(results).toEqual([
      { sequence: 1, durability: 'relaxed' },
      { value: { n: 1 }, sequence: 1 },
      { error: expect.objectContaining({ status: 412, code: 'VARVE_CONFLICT', conflict: { key: 'a', sequence: 1 } }) },
      { sequence: 2, durability: 'relaxed' },
      { sequence: 3, durability: 'relaxed' },
      { sequence: 4, durability: 'relaxed' },
      null,
      { sequence: 5, durability: 'relaxed' },
      { value: 1, sequence: 3, expiresAt: expect.stringMatching(/Z$/) },
      { sequence: 6, durability: 'relaxed' },
      { value: 2, sequence: 6, expiresAt: '2090-01-31T12:00:00.000Z' },
    ]);
    expect(await http.db.count()).toBe(1);
  });

  test('atomic: all of it or nothing', async () => {
    const writes = [
      { op: 'set', key: 'a', value: 1, ifSequence: null },
      { op: 'set', key: 'b', value: 2 },
      { op: 'delete', key: 'c' },
      { op: 'deleteRange', range: { gte: 'x' } },
    ];
    expect(await (await http.batch(writes, '?atomic=true&durability=strict')).json()).toEqual({
      sequence: 4,
      durability: 'strict',
    });
    await http.db.set('b', 3);
    expect(await problem(await http.batch(writes, '?atomic=true'))).toMatchObject({
      status: 412,
      code: 'VARVE_CONFLICT',
    });
    expect(await http.db.get('b')).toBe(3);
    expect((await http.batch([{ op: 'get', key: 'a' }], '?atomic=true')).status).toBe(400);
  });

  test('an empty batch is no error', async () => {
    expect(await (await http.batch([])).json()).toEqual({ results: [] });
  });

  const set = { op: 'set', key: 'a' };
  test.each([
    ['no list', { op: 'set' }],
    ['no object', [1]],
    ['a null', [null]],
    ['no op', [{ key: 'a' }]],
    ['an unknown op', [{ op: 'merge', key: 'a' }]],
    ['an op of the prototype', [{ op: 'toString', key: 'a' }]],
    ['no key', [{ op: 'get' }]],
    ['a bad key', [{ op: 'get', key: null }]],
    ['no value', [set]],
    ['two values', [{ ...set, value: 1, bytes: 'AA' }]],
    ['bad base64', [{ ...set, bytes: '!' }]],
    ['bytes that are no string', [{ ...set, bytes: [1] }]],
    ['bad CBOR', [{ ...set, cbor: '/w==' }]],
    ['an unknown member', [{ ...set, value: 1, ttl: 5 }]],
    ['a bad lifetime', [{ ...set, value: 1, expiresIn: 0 }]],
    ['a time that is no date', [{ ...set, value: 1, expiresAt: 1_900_000_000_000 }]],
    ['two lifetimes', [{ ...set, value: 1, expiresIn: 1000, expiresAt: '2030-01-31T12:00:00.000Z' }]],
    ['a bad sequence', [{ ...set, value: 1, ifSequence: 0 }]],
    ['a sequence as a string', [{ ...set, value: 1, ifSequence: '1' }]],
    ['a range without bounds', [{ op: 'deleteRange', range: {} }]],
    ['no range', [{ op: 'deleteRange' }]],
    ['an unknown bound', [{ op: 'deleteRange', range: { from: 1 } }]],
    ['a prefix that is none', [{ op: 'deleteRange', range: { prefix: 1 } }]],
  ])('%s: nothing runs', async (_, operations) => {
    const batch = Array.isArray(operations) ? [{ op: 'set', key: 'first', value: 1 }, ...operations] : operations;
    for (const atomic of ['', '?atomic=true']) {
      const { status, code, detail } = await problem(await http.batch(batch, atomic));
      expect(status).toBe(400);
      expect(code).toMatch(/^VARVE_INVALID_(ARGUMENT|KEY|VALUE)$/);
      if (Array.isArray(batch)) expect(detail).toMatch(/^Operation 1: /);
      expect(await http.db.has('first')).toBe(false);
    }
  });

  test('an operation whose value cannot be stored fails alone', async () => {
    const deep = JSON.parse('['.repeat(2000) + ']'.repeat(2000));
    const { results } = (await (
      await http.batch([
        { ...set, value: deep },
        { op: 'set', key: 'b', value: 1 },
      ])
    ).json()) as {
      results: { error?: { code: string } }[];
    };
    expect(results[0]?.error?.code).toBe('VARVE_INVALID_VALUE');
    expect(results[1]?.error).toBe(undefined);
  });

  // Story: 64 reads always ran together. So a batch that read large values had them all in memory, and was 500 instead of partly 413.
  test('limits: operations, and bytes of what is read', async () => {
    const small = await serve({ limits: { operations: 200, answerBytes: 10_000 } });
    const many = Array.from({ length: 201 }, (_, i) => ({ op: 'set', key: i, value: 1 }));
    expect(await problem(await small.batch(many))).toMatchObject({ status: 413, code: 'VARVE_INVALID_ARGUMENT' });
    await small.db.set('big', 'x'.repeat(1000));
    const reads = [
      ...Array.from({ length: 100 }, () => ({ op: 'get', key: 'big' })),
      { op: 'set', key: 'late', value: 1 },
    ];
    const { results } = (await (await small.batch(reads)).json()) as {
      results: { value?: string; error?: { status: number } }[];
    };
    expect(results.length).toBe(101);
    expect(results.filter(({ value }) => value !== undefined).length).toBe(8 + 16);
    expect(results.at(-1)?.error?.status).toBe(413);
    expect(await small.db.has('late')).toBe(false);
    await small.db.close();
  });

  test('only JSON is a batch', async () => {
    const post = (body: BodyInit, type: string) =>
      http.send('POST', '/batch', { body, headers: { 'content-type': type } });
    expect((await post('[]', 'text/plain')).status).toBe(415);
    expect((await post('[', 'application/json')).status).toBe(400);
    expect((await http.batch([], '?atomic=1')).status).toBe(400);
    expect(
      (
        await http.handler(
          new Request(`${ORIGIN}/batch`, { method: 'POST', headers: { 'content-type': 'application/json' } }),
        )
      ).status,
    ).toBe(400);
  });
});
