import { expect, test } from 'vitest';
import { ratioOfTurns, verdictOf } from './ratio.ts';

test('the interval is that of the textbook', () => {
  // Student's t for 4 degrees of freedom: 2.776; s = 1.5811, over the root of five.
  const { ratio, low, high } = ratioOfTurns([1, 2, 3, 4, 5].map(Math.exp), [1, 1, 1, 1, 1]);
  expect(Math.log(ratio)).toBeCloseTo(3);
  expect(Math.log(low)).toBeCloseTo(3 - 1.9632, 3);
  expect(Math.log(high)).toBeCloseTo(3 + 1.9632, 3);
});

test('a disturbance of both in the same round cancels out', () => {
  const disturbance = [1, 0.3, 0.8, 0.5, 0.9];
  const ours = disturbance.map((part, i) => 3 * part * (1 + i / 1000));
  const ratio = ratioOfTurns(ours, disturbance);
  expect(ratio.low).toBeGreaterThan(2.9);
  expect(ratio.high).toBeLessThan(3.1);
  expect(verdictOf(ratio)).toBe('quicker');
});

test('one round shows nothing, however far it is', () => {
  expect(verdictOf(ratioOfTurns([9000], [1000]))).toBe('within noise');
  expect(verdictOf(ratioOfTurns([], [1000]))).toBe('within noise');
});
