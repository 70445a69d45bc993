// Hostile keys over HTTP. Each is refused with a status and a code, or accepted as the key that it encodes. None is an error of the
// server.

import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Key } from '../../js/src/types.ts';
import { tools } from './support/engine.ts';
import { type Served, serve } from './support/http.ts';

let http: Served;
beforeAll(async () => {
  http = await serve();
  await http.db.set('a', 1);
});
afterAll(async () => {
  expect(await http.db.entries().next()).toMatchObject({ value: ['a', 1] });
  expect((await http.db.check({ tools })).problems).toStrictEqual([]);
  await http.db.close();
});

const nested = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth);

const KEPT: readonly (readonly [string, Key])[] = [
  ['-0', 0],
  ['[-0.0]', [0]],
  ['{"number":"-Infinity"}', Number.NEGATIVE_INFINITY],
  ['{"bytes":""}', new Uint8Array(0)],
  ['{"date":"-271821-04-20T00:00:00.000Z"}', new Date(-8.64e15)],
  ['"__proto__"', '__proto__'],
  ['"\\u0000"', '\0'],
  ['"\\ud83d\\ude00"', '😀'],
  [`{"bigint":"-${2n ** 900n}"}`, -(2n ** 900n)],
  [nested(32), JSON.parse(nested(32))],
];

const REFUSED = [
  '',
  'a',
  'null',
  '{}',
  '[null]',
  '{"a":1}',
  '{"__proto__":"x"}',
  '{"constructor":"x"}',
  '{"bytes":"AA","date":"x"}',
  '{"bytes":["AA"]}',
  '{"bytes":"A"}',
  '{"bytes":"AAEC\\u0000"}',
  '{"bytes":{"length":3}}',
  '{"date":"1970-01-01"}',
  '{"date":"+275760-09-13T00:00:00.001Z"}',
  '{"date":8640000000000001}',
  '{"bigint":"1e9"}',
  '{"bigint":"-0"}',
  '{"bigint":"0x10"}',
  '{"bigint":1}',
  '{"number":"NaN"}',
  '{"number":"1"}',
  '"\\ud800"',
  '["ok","\\udfff"]',
  '{"bytes":"AA==","bytes":"AQ=="}',
  '{"bigint":"1","\\u0062igint":"2"}',
  '["ok",{"date":"1970-01-01T00:00:00.000Z","date":"1970-01-01T00:00:00.001Z"}]',
  '1e400',
  '-1e400',
  '1e-400',
  '9007199254740993',
  '[[12345678901234567890]]',
  '0.12345678901234567891',
  nested(33),
  nested(20_000),
];

test.each(KEPT)('%s is the key that it writes', async (json, key) => {
  const path = `/kv?key=${encodeURIComponent(json)}`;
  expect((await http.put(path, 'v')).status).toBeLessThan(300);
  expect(await http.db.get(key)).toBe('v');
  const range = await http.send('GET', `/range?gte=${encodeURIComponent(json)}&lte=${encodeURIComponent(json)}`);
  expect((await range.json()).entries).toHaveLength(1);
  expect((await http.batch([{ op: 'delete', key: JSON.parse(json) }])).status).toBe(200);
  expect(await http.db.has(key)).toBe(false);
});

test.each(REFUSED)('%s is no key', async (json) => {
  const key = encodeURIComponent(json);
  const answers = await Promise.all([
    http.put(`/kv?key=${key}`, 'v'),
    http.send('GET', `/kv?key=${key}`),
    http.send('DELETE', `/kv?key=${key}`),
    http.send('GET', `/range?gte=${key}`),
    http.send('DELETE', `/range?prefix=${key}`),
    http.send('POST', '/batch', {
      body: `[{"op":"set","key":${json},"value":1}]`,
      headers: { 'content-type': 'application/json' },
    }),
  ]);
  for (const answer of answers) {
    expect(answer.status).toBeGreaterThanOrEqual(400);
    expect(answer.status).toBeLessThan(500);
    expect((await answer.json()).code).toMatch(/^VARVE_INVALID_(KEY|VALUE|ARGUMENT)$/);
  }
  expect(await http.db.count()).toBe(1);
});

const SAID_TWICE_OR_TOO_FINE = [
  '{"a":1,"a":2}',
  '[{"b":{"c":1,"\\u0063":1}}]',
  '{"__proto__":1,"__proto__":2}',
  '1e400',
  '[-1e400]',
  '{"n":9007199254740993}',
  '1e-400',
];
const JSON_BODY = { 'content-type': 'application/json' };

test.each(SAID_TWICE_OR_TOO_FINE)('%s is no value, and is not changed to fit', async (json) => {
  const answers = await Promise.all([
    http.send('PUT', '/kv/v', { body: json, headers: JSON_BODY }),
    http.send('POST', '/batch', { body: `[{"op":"set","key":"v","value":${json}}]`, headers: JSON_BODY }),
    http.send('POST', '/batch?atomic=true', { body: `[{"op":"set","key":"v","value":${json}}]`, headers: JSON_BODY }),
  ]);
  for (const answer of answers) expect(answer.status).toBe(400);
  expect(await http.db.count()).toBe(1);
});

test.each([
  '[{"op":"delete","key":"z","key":"a"}]',
  '[{"op":"get","op":"delete","key":"a"}]',
  '[{"op":"deleteRange","range":{"gte":"z","gte":"a"}}]',
  '[{"op":"set","key":"a","value":2,"ifSequence":1e400}]',
  '[{"op":"set","key":"a","value":2,"expiresIn":9007199254740993}]',
])('%s is no batch, and nothing of it is done', async (body) => {
  for (const query of ['', '?atomic=true']) {
    expect((await http.send('POST', `/batch${query}`, { body, headers: JSON_BODY })).status).toBe(400);
  }
  expect(await http.db.get('a')).toBe(1);
});
