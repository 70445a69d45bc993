import { expect, test } from 'vitest';
import { ENVIRONMENT, rowOf } from '../fixture.ts';
import type { Result } from '../result.ts';
import { baselineText, makeBaseline, parseBaseline } from './baseline.ts';
import { baselineOf } from './fixture.ts';
import { compare } from './judge.ts';
import { seriesOf } from './ratios.ts';
import { comparisonText } from './table.ts';

const { plan } = baselineOf([]);
const rows = [
  rowOf({ engine: 'varve-sync', role: 'varve', rounds: [1_000_000, 1_010_000, 990_000, 1_005_000, 995_000] }),
  rowOf({ engine: 'map', role: 'floor', rounds: [2_000_000, 2_010_000, 1_990_000, 2_005_000, 1_995_000] }),
];
const result: Result = { environment: ENVIRONMENT, plan, rows, notes: [], storage: [], problems: [] };

test('a baseline reads back as it was written, a row a line, with ratios and no rates', () => {
  const baseline = makeBaseline([result, result], 'abc1234');
  const text = baselineText(baseline);
  expect(parseBaseline(text, 'baseline.json')).toEqual(baseline);
  expect(text.split('\n').filter((line) => line.includes('"varve-sync"'))).toHaveLength(1);
  expect(text).not.toContain('1000000');
  expect(text).not.toContain('Linux');
  expect(baseline.browser).toBe('Chrome/140.0.0.0');
});

test('a run compared with itself has no change, and the table says so', () => {
  const baseline = makeBaseline([result], 'abc1234');
  const compared = compare(baseline, seriesOf([result.rows]), 0.1);
  expect(compared.map(({ verdict }) => verdict)).toEqual(['same']);
  const text = comparisonText(baseline, compared, 0.1);
  expect(text).toContain('Rows: 1 not slower.');
  expect(text).toMatch(/read-rand-mem \(worker\) varve-sync \| map +\| +0\.50x \| +0\.50x \| +[+-]0\.0%/);
});

test('what is no baseline is refused with a sentence that says what to do', () => {
  expect(() => parseBaseline('{"version":0}', 'x.json')).toThrow(/--save-baseline x\.json/);
  expect(() => makeBaseline([{ ...result, rows: [] }], undefined)).toThrow(/No row of the run has a ratio/);
});
