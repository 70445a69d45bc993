import { expect, test } from 'vitest';
import { Random } from '../generator.ts';
import { normalOf } from './fixture.ts';
import { ratioOfTurns, verdictOf } from './rounds.ts';

function rounds(next: (deviation: number) => number, rate: number, share: number, count: number): number[] {
  return Array.from({ length: count }, () => rate * Math.exp(next(share)));
}

test('the interval of an unchanged rate misses 1 in about one of twenty comparisons, no more', () => {
  const next = normalOf(new Random(1));
  const trials = 2000;
  let alarms = 0;
  for (let trial = 0; trial < trials; trial++) {
    const [now, before] = [rounds(next, 1000, 0.1, 3), rounds(next, 1000, 0.1, 3)];
    if (verdictOf(ratioOfTurns(now, before)) !== 'within noise') alarms++;
  }
  expect(alarms / trials).toBeLessThan(0.06);
  expect(alarms / trials).toBeGreaterThan(0.01);
});

test('what disturbs both in the same round cancels out of a paired ratio', () => {
  const disturbance = [1, 0.3, 0.8, 0.5, 0.9];
  const ratio = ratioOfTurns(
    disturbance.map((part, i) => 3000 * part * (1 + i / 1000)),
    disturbance.map((part) => 1000 * part),
  );
  expect(ratio.low).toBeGreaterThan(2.9);
  expect(ratio.high).toBeLessThan(3.1);
  expect(verdictOf(ratio)).toBe('quicker');
});

test('one round shows nothing, however far it is', () => {
  expect(verdictOf(ratioOfTurns([9000], [1000]))).toBe('within noise');
  expect(verdictOf(ratioOfTurns([], [1000]))).toBe('within noise');
});
