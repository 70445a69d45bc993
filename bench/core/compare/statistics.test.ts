import { expect, test } from 'vitest';
import { difference, holm, meanInterval, sideOf } from './statistics.ts';

test('the interval of a mean is that of the textbook', () => {
  // Student's t for 4 degrees of freedom: 2.776; s = 1.5811, over the root of five.
  const { estimate, low, high } = meanInterval([1, 2, 3, 4, 5]);
  expect(estimate).toBe(3);
  expect(low).toBeCloseTo(3 - 1.9632, 3);
  expect(high).toBeCloseTo(3 + 1.9632, 3);
});

test('one figure has no interval', () => {
  const { estimate, low, high } = meanInterval([7]);
  expect([estimate, low, high]).toEqual([7, Number.NaN, Number.NaN]);
});

test('a difference of two means is judged by its distribution', () => {
  // Equal scatter, three figures a side: four degrees of freedom, whose distribution has a closed form.
  const { estimate, low, high, chance } = difference(sideOf([10, 11, 12]), sideOf([12, 13, 14]));
  expect(estimate).toBe(2);
  const t = 2 / Math.sqrt(2 / 3);
  const square = 1 + t ** 2 / 4;
  const below = 1 / 2 + (3 / 8) * (t / Math.sqrt(square)) * (1 - t ** 2 / (12 * square));
  expect(chance).toBeCloseTo(2 * (1 - below), 6);
  // Student's t for 4 degrees of freedom: 2.776.
  expect((high - low) / 2).toBeCloseTo(2.776 * Math.sqrt(2 / 3), 2);
});

test('figures that do not scatter differ surely or not at all', () => {
  const still = (middle: number) => ({ mean: middle, error: 0, freedom: 4 });
  expect(difference(still(1), still(2)).chance).toBe(0);
  expect(difference(still(1), still(1)).chance).toBe(1);
});

test('Holm lets a chance count only if it is small for as many as are left', () => {
  expect(holm([0.01, 0.04, 0.03, 0.005], 0.05)).toEqual([true, false, false, true]);
  expect(holm([0.05], 0.05)).toEqual([true]);
  expect(holm([0.03, 0.03], 0.05)).toEqual([false, false]);
  expect(holm([], 0.05)).toEqual([]);
});
