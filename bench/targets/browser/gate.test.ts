import { expect, test } from 'vitest';
import type { Baseline } from '../../core/baseline.ts';
import { planOf, rowOf } from '../../core/fixture.ts';
import type { Row } from '../../core/row.ts';
import { judgeRun } from './gate.ts';

const plan = planOf(['write-rand', 'read-rand-mem'], { rounds: 5 });
const about = (rate: number): number[] => [1, 1.01, 0.99, 1.005, 0.995].map((share) => rate * share);

/** Both suites, with these rates of Varve beside a floor of 1000 a second. */
function rows(read: number, write: number): Row[] {
  return [
    rowOf({ suite: 'read-rand-mem', engine: 'varve-sync', role: 'varve', rounds: about(read) }),
    rowOf({ suite: 'read-rand-mem', engine: 'map', role: 'floor', rounds: about(1000).reverse() }),
    rowOf({ suite: 'write-rand', engine: 'varve-sync', role: 'varve', rounds: about(write) }),
    rowOf({ suite: 'write-rand', engine: 'opfs-append', role: 'floor', rounds: about(1000).reverse() }),
  ];
}

const name = { access: 'worker', engine: 'varve-sync' } as const;
const baseline: Baseline = {
  ...{ version: 2, dates: ['2026-01-02'], commit: 'abc', browser: 'Chromium 1', plan },
  rows: [
    { ...name, suite: 'read-rand-mem', against: 'map', ratio: 1 },
    { ...name, suite: 'write-rand', against: 'opfs-append', ratio: 1 },
  ],
};

/** Judges a run; a second measurement gives `again`. Also returns the suites that were measured again. */
async function judge(first: Row[], again: Row[] = []) {
  const measured: (readonly string[])[] = [];
  const judgement = await judgeRun(baseline, first, 0.1, async ({ suites }) => {
    measured.push(suites);
    return again;
  });
  return { ...judgement, measured };
}

test('a run as quick as the baseline passes, and nothing runs again', async () => {
  const { passed, measured, text } = await judge(rows(1000, 1000));
  expect([passed, measured]).toEqual([true, []]);
  expect(text).toContain('Rows: 2 not slower.');
});

test('a row that is slower twice fails; only its suite runs again', async () => {
  const { passed, measured, text } = await judge(rows(700, 1000), rows(720, 1000));
  expect([passed, measured]).toEqual([false, [['read-rand-mem']]]);
  expect(text).toContain(
    '1 looked slower and ran once more in a new browser. Slower again: read-rand-mem (in the worker)',
  );
});

test('a row that is slower once passes, as too noisy to tell', async () => {
  const { passed, text } = await judge(rows(700, 1000), rows(1000, 1000));
  expect(passed).toBe(true);
  expect(text).toContain('Rows: 1 too noisy to tell, 1 not slower.');
});

test('a row that was not measured fails', async () => {
  const { passed, text } = await judge(rows(1000, 1000).slice(0, 2));
  expect(passed).toBe(false);
  expect(text).toContain('1 NOT MEASURED');
});
