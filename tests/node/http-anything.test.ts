/** Arbitrary requests: each gets a valid response, never an error of the server. */

import fc from 'fast-check';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Served, serve } from './support/http.ts';

let http: Served;

beforeEach(async () => {
  http = await serve();
  await http.db.set('a', 1);
});
afterEach(() => http.db.close());

test('every request gets an answer, and a refused one changes nothing', async () => {
  const text = fc.oneof(
    fc.string(),
    fc.json(),
    fc.constantFrom('"a"', '[1]', '{"date":"x"}', 'null', '%', '%ff', '&', '=', '*', '"1"'),
  );
  const name = fc.oneof(
    fc.constantFrom(
      'key',
      'gt',
      'gte',
      'lt',
      'lte',
      'prefix',
      'limit',
      'reverse',
      'values',
      'atomic',
      'durability',
      'expiresIn',
      'expiresAt',
    ),
    text,
  );
  const pairs = fc.array(fc.tuple(name, text, fc.boolean()), { maxLength: 4 });
  const operation = fc.record(
    {
      op: fc.constantFrom('set', 'get', 'delete', 'deleteRange', 'x'),
      key: fc.jsonValue(),
      value: fc.jsonValue(),
      range: fc.jsonValue(),
      ifSequence: fc.jsonValue(),
    },
    { requiredKeys: [] },
  );
  const body = fc.oneof(
    fc.uint8Array(),
    fc.json(),
    fc.array(operation).map((operations) => JSON.stringify(operations)),
  );
  const header = fc.constantFrom(
    'accept',
    'content-type',
    'if-match',
    'if-none-match',
    'authorization',
    'content-encoding',
    'origin',
  );
  const value = fc.oneof(
    fc.stringMatching(/^[\x21-\x7e]{0,20}$/),
    fc.constantFrom(
      'application/json',
      'application/cbor',
      'application/octet-stream',
      '*',
      '"1"',
      'application/x-ndjson;q=1',
      '*/*;q=x',
    ),
  );
  const request = fc.record({
    method: fc.constantFrom('GET', 'HEAD', 'PUT', 'POST', 'DELETE', 'PATCH', 'toString', '__proto__'),
    path: fc.oneof(
      fc.constantFrom('/kv', '/kv/a', '/range', '/count', '/batch', '/health', '/stats', '/metrics'),
      fc.webPath(),
      text.map((segment) => `/kv/${encodeURI(segment)}`),
    ),
    pairs,
    body,
    headers: fc.dictionary(header, value, { maxKeys: 3 }),
  });
  const codes = /^VARVE_(INVALID_(KEY|VALUE|ARGUMENT)|CONFLICT)$/;
  await fc.assert(
    fc.asyncProperty(request, async ({ method, path, pairs, body, headers }) => {
      const encode = (part: string, raw: boolean) => (raw ? part.replaceAll('#', '') : encodeURIComponent(part));
      const search = pairs.map(([name, value, raw]) => `${encode(name, raw)}=${encode(value, raw)}`).join('&');
      const before = (await http.db.stats()).sequence;
      const hasBody = method !== 'GET' && method !== 'HEAD';
      const response = await http.send(method, `${path}?${search}`, {
        headers,
        body: hasBody ? (body as BodyInit) : null,
      });
      expect(response.status).toBeLessThan(500);
      const bytes = await response.arrayBuffer();
      if (response.status < 400) return;
      expect((await http.db.stats()).sequence).toBe(before);
      if (method === 'HEAD') return;
      const problem = JSON.parse(new TextDecoder().decode(bytes)) as { status: number; code?: string };
      expect(problem.status).toBe(response.status);
      if (![401, 403, 404].includes(problem.status)) expect(problem.code).toMatch(codes);
    }),
    { numRuns: 500 },
  );
});
