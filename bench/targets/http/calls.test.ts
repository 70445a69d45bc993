import { expect, test } from 'vitest';
import { bare, batchGet, batchSet, get, insert, type Kind, put, range, remove, update } from './calls.ts';
import { Outcomes } from './connection.ts';
import { keyOf, Ledger, numberOf, Share, valueText } from './ledger.ts';

const BASE = 1000;
const CONNECTIONS = 7;

function shareOf(connection: number, ledger = new Ledger(BASE)): Share {
  return new Share(ledger, connection, CONNECTIONS, 1);
}

const parsed = (number: number, version: number): unknown => JSON.parse(valueText({ number, version }));
const entryOf = (number: number, version = 1) => ({ key: keyOf(number), value: parsed(number, version) });

test('every connection writes keys of its own', () => {
  for (const kind of [put, update, insert, remove, batchSet(10)]) {
    for (let connection = 0; connection < CONNECTIONS; connection++) {
      const { writes } = kind(shareOf(connection));
      expect(writes.length).toBeGreaterThan(0);
      for (const { number } of writes) expect(number % CONNECTIONS).toBe(connection);
    }
  }
});

test('keys sort as their numbers do, and give them back', () => {
  const numbers = [0, 9, 10, 99, 100, 123_456];
  expect(numbers.map(keyOf)).toEqual(numbers.map(keyOf).sort());
  expect(numbers.map((number) => numberOf(keyOf(number)))).toEqual(numbers);
});

test('an insert takes a key that was never written, a new one each time', () => {
  const share = shareOf(3);
  const numbers = [insert(share), insert(share)].flatMap(({ writes }) => writes.map(({ number }) => number));
  expect(new Set(numbers).size).toBe(2);
  for (const number of numbers) expect(number).toBeGreaterThanOrEqual(BASE);
});

test('a get takes the acknowledged value only, and 404 of a deleted key', () => {
  const ledger = new Ledger(CONNECTIONS);
  const share = shareOf(2, ledger);
  const call = get(share);
  expect(call.check?.(valueText({ number: 2, version: 1 }))).toBe(true);
  expect(call.check?.(valueText({ number: 2, version: 2 }))).toBe(false);
  ledger.acknowledge(remove(share).writes);
  expect(get(share).status).toBe(404);
});

test('an update names the sequence that its connection knows', () => {
  const ledger = new Ledger(CONNECTIONS);
  const share = shareOf(2, ledger);
  expect(update(share).headers?.['if-match']).toBe('*');
  ledger.acknowledge([ledger.next(2)], 41);
  expect(update(share).headers?.['if-match']).toBe('"41"');
});

test('a range is judged: order, length, own keys and their values', () => {
  const call = range(20)(shareOf(1));
  const from = numberOf(/%22(k\d+)%22/.exec(call.path)?.[1] ?? '');
  const right = Array.from({ length: Math.min(20, BASE - from) }, (_, i) => entryOf(from + i));
  const judge = (entries: readonly unknown[]): boolean | undefined => call.check?.(JSON.stringify({ entries }));
  expect(judge(right)).toBe(true);
  expect(judge([...right].reverse())).toBe(false);
  expect(judge(right.slice(1))).toBe(false);
  expect(judge([...right, entryOf(from + right.length)])).toBe(false);
  expect(judge([entryOf(from, 2), ...right.slice(1)])).toBe(false);
});

test('a batch of gets is judged value by value', () => {
  const call = batchGet(3)(shareOf(0));
  const numbers = [...(call.body ?? '').matchAll(/k(\d+)/g)].map(([, digits]) => Number(digits));
  const results = numbers.map((number) => ({ value: entryOf(number).value }));
  expect(call.check?.(JSON.stringify({ results }))).toBe(true);
  expect(call.check?.(JSON.stringify({ results: results.slice(1) }))).toBe(false);
  expect(call.check?.(JSON.stringify({ results: [...results].reverse() }))).toBe(false);
});

test('a floor sends the same bytes, writes nothing, and is judged by the length of its answer', () => {
  const kind: Kind = batchSet(10);
  const call = bare(kind, 5)(shareOf(0));
  expect(call).toMatchObject({ method: 'POST', operations: 10, writes: [] });
  expect(call.body).toHaveLength(kind(shareOf(0)).body?.length ?? 0);
  expect([call.check?.('12345'), call.check?.('1234')]).toEqual([true, false]);
});

test('right, wrong and failed answers are counted, and the ledger is kept', () => {
  const ledger = new Ledger(CONNECTIONS);
  const outcomes = new Outcomes(ledger);
  const share = new Share(ledger, 0, CONNECTIONS, 1);
  const first = put(share);
  outcomes.answer(first, 200, '{"sequence":9,"durability":"relaxed"}');
  expect([ledger.version(0), ledger.sequence(0)]).toEqual([first.writes[0]?.version, 9]);
  outcomes.answer(put(share), 503, 'busy');
  expect(ledger.version(0)).toBe(first.writes[0]?.version);
  expect(outcomes).toMatchObject({ requests: 1, failed: 1, tally: { ops: 1, wrong: 0 } });
  outcomes.answer(get(new Share(new Ledger(1), 0, 1, 1)), 200, 'not even JSON');
  expect(outcomes).toMatchObject({ requests: 1, failed: 1, tally: { wrong: 1 } });
});
