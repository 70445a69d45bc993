import { expect, test } from 'vitest';
import { baselineText, compare, comparedText, type Judgement, makeBaseline, parseBaseline } from './baseline.ts';
import { ENVIRONMENT, planOf, rowOf, scattered } from './fixture.ts';
import { Random } from './generator.ts';
import type { Result } from './result.ts';
import type { Row } from './row.ts';

const even = (rate: number): number[] => [1, 1.01, 0.99, 1.005, 0.995].map((share) => rate * share);
const varve = rowOf({ engine: 'varve-sync', role: 'varve', rounds: even(1_000_000) });
const map = rowOf({ engine: 'map', role: 'floor', rounds: even(2_000_000).reverse() });
const resultOf = (...rows: Row[]): Result => {
  return { environment: ENVIRONMENT, plan: planOf([]), rows, notes: [], storage: [], problems: [] };
};
const baselineOf = (...rows: Row[]) => makeBaseline([resultOf(...rows)], 'abc1234');

test('a baseline reads back as it was written, a row a line, with ratios and no rates', () => {
  const baseline = baselineOf(varve, map);
  const text = baselineText(baseline);
  expect(parseBaseline(text, 'baseline.json')).toEqual(baseline);
  expect(text.split('\n').filter((line) => line.includes('"varve-sync"'))).toHaveLength(1);
  expect(text).not.toContain('1000000');
  expect(baseline.browser).toBe('Chromium 140');
  expect(() => parseBaseline('{"version":0}', 'x.json')).toThrow('x.json is no baseline');
});

test('of several runs a baseline has the lowest ratio, and only rows that all of them have', () => {
  const slower = { ...varve, rounds: even(500_000) };
  const run = (rows: Row[]) => resultOf(...rows);
  const runs = (...all: Row[][]) => makeBaseline(all.map(run), undefined);
  expect(runs([varve, map], [slower, map]).rows.map(({ ratio }) => ratio)).toEqual([0.25]);
  expect(() => runs([varve, map], [varve])).toThrow('No row of the run has a ratio');
});

test('the row that the targets compare with comes first, then a floor, then a peer', () => {
  const rows = [
    rowOf({ engine: 'indexeddb', role: 'peer', rounds: [1, 1, 1] }),
    rowOf({ engine: 'opfs-append', role: 'floor', rounds: [1, 1, 1] }),
    map,
  ];
  const beside = (count: number) => baselineOf(varve, ...rows.slice(0, count)).rows[0]?.against;
  expect([beside(3), beside(2), beside(1)]).toEqual(['map', 'opfs-append', 'indexeddb']);
});

test('rows that were not verified, of other suites or phases, are not compared', () => {
  for (const other of [{ verified: false }, { suite: 'read-miss' }, { phase: 'after' }]) {
    expect(() => baselineOf(varve, { ...map, ...other })).toThrow('No row');
    expect(compare(baselineOf(varve, map), [varve, { ...map, ...other }], 0.1)[0]?.verdict).toBe('NOT MEASURED');
  }
});

/** The verdicts of so many runs whose rate is `factor` of what it was; a round scatters by `noise`. */
function verdicts(runs: number, factor: number, noise: number, rounds = 5): Judgement[] {
  const random = new Random(6);
  return Array.from({ length: runs }, () => {
    const roundsOf = (rate: number): number[] => scattered(random, rate, noise / Math.SQRT2, rounds);
    const row = (one: Row, rate: number): Row => ({ ...one, rounds: roundsOf(rate) });
    const [found] = compare(baselineOf(varve, map), [row(varve, 1_000_000 * factor), row(map, 2_000_000)], 0.1);
    return found?.verdict ?? 'NOT MEASURED';
  });
}
const share = (all: readonly Judgement[], verdict: Judgement): number =>
  all.filter((one) => one === verdict).length / all.length;

test.each<[string, number, number, Judgement]>([
  ['is 20% slower, surely so, is slower', 0.8, 0.02, 'SLOWER'],
  ['is 5% slower is within a threshold of 10%', 0.95, 0.002, 'not slower'],
  ['is 30% faster is not slower', 1.3, 0.02, 'not slower'],
  ['scatters widely is too noisy to tell, not unchanged', 0.9, 0.5, 'too noisy to tell'],
])('a row that %s', (_, factor, noise, verdict) => {
  expect(share(verdicts(100, factor, noise), verdict)).toBeGreaterThan(0.9);
});

test('an unchanged row raises next to no alarm, and four rounds are too few, whatever they say', () => {
  expect(share(verdicts(1000, 1, 0.2), 'SLOWER')).toBeLessThan(0.01);
  expect(share(verdicts(10, 0.5, 0.001, 4), 'needs 5 rounds')).toBe(1);
});

test('the table has the worst first, and a count of verdicts above it', () => {
  const page = { ...varve, access: 'page' };
  const baseline = baselineOf(varve, map, page, { ...map, access: 'page' });
  const compared = compare(baseline, [{ ...varve, rounds: even(500_000) }, map, page, { ...map, access: 'page' }], 0.1);
  const text = comparedText(baseline, compared);
  expect(text).toContain('Rows: 1 SLOWER, 1 not slower.');
  expect(text).toMatch(/in the worker\) varve-sync +\| map +\| +0\.50x \| +0\.25x \| +-50\.0% /);
});
