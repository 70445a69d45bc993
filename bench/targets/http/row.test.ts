import { expect, test } from 'vitest';
import { Latencies } from '../../core/latency.ts';
import { spreadOf } from '../../core/rows.ts';
import { makeRow, type Round, type RowHead } from './row.ts';
import { noOutcomes } from './session.ts';
import { tables } from './table.ts';
import { judge, verdictText } from './thresholds.ts';

const HEAD: RowHead = {
  suite: 'http-load',
  work: 'ramp',
  runtime: 'node',
  engine: 'varve',
  durability: 'relaxed',
  loop: 'closed',
  connections: 10,
};

function roundOf(requests: number, seconds: number, more: Partial<Round['outcomes']> = {}): Round {
  const latencies = new Latencies();
  for (let i = 1; i <= requests; i++) latencies.add(i * 1000);
  return { outcomes: { ...noOutcomes(), requests, operations: requests * 2, ...more }, seconds, latencies };
}

test('rates are medians of the rounds, percentiles are of all requests', () => {
  const row = makeRow(HEAD, [roundOf(100, 1), roundOf(100, 2), roundOf(100, 4)]);
  expect(row).toMatchObject({ requests: 300, operations: 600, seconds: 7, requestsPerSecond: 50, opsPerSecond: 100 });
  expect(row).toMatchObject({ rounds: [200, 100, 50], p50: 50_000, p95: 95_000, p99: 99_000, max: 100_000 });
  expect(spreadOf(row)).toBe(1.5);
  expect(row.verified).toBe(true);
});

test('failed and wrong answers are errors, and only wrong ones say that the store is not to be trusted', () => {
  const failed = makeRow(HEAD, [roundOf(98, 1, { failed: 2, problem: 'GET /: 503' })]);
  expect(failed).toMatchObject({ errors: 2, errorShare: 0.02, verified: true, problem: 'GET /: 503' });
  expect(makeRow(HEAD, [roundOf(99, 1, { wrong: 1 })])).toMatchObject({ errorShare: 0.01, verified: false });
});

test('a row without an answer is not verified', () => {
  expect(makeRow(HEAD, [roundOf(0, 1)]).verified).toBe(false);
});

test('thresholds: less than 1% errors, p95 below 500 ms, more than 100 requests a second', () => {
  const good = { errorShare: 0.009, p95: 499_000, requestsPerSecond: 101 };
  expect(verdictText(judge(good))).toBe('kept');
  expect(verdictText(judge({ ...good, errorShare: 0.01 }))).toBe('missed: errors');
  expect(verdictText(judge({ ...good, p95: 500_000 }))).toBe('missed: p95');
  expect(verdictText(judge({ ...good, requestsPerSecond: 100, p95: 1e9 }))).toBe('missed: p95, req/s');
});

test('the table shows errors, verification and the ratio to the floor, and leaves the floor out', () => {
  const row = {
    ...makeRow(HEAD, [roundOf(100, 1)]),
    barePerSecond: 200,
    verdict: judge(makeRow(HEAD, [roundOf(100, 1)])),
  };
  const text = tables([row, { ...row, engine: 'bare', work: 'the floor' }, { ...row, verified: false, work: 'bad' }]);
  expect(text).toContain('### http-load');
  expect(text).toContain('| 0.50x |');
  expect(text).toContain('missed: req/s');
  expect(text).toContain('| **no** |');
  expect(text).not.toContain('the floor');
});
