import { expect, test } from 'vitest';
import { drawer, shuffled, Zipfian } from './draw.ts';
import { Random } from './generator.ts';

const DRAWS = 200_000;

function zipfianShare(rank: number, count: number): number {
  const weight = (i: number): number => 1 / (i + 1) ** 0.99;
  return weight(rank) / Array.from({ length: count }, (_, i) => weight(i)).reduce((sum, one) => sum + one);
}

test('the hottest ranks come up nearly as often as zipfian says', () => {
  const zipfian = new Zipfian(100, new Random(42));
  const counts = new Array<number>(100).fill(0);
  for (let i = 0; i < DRAWS; i++) counts[zipfian.next()]!++;
  for (let rank = 0; rank < 20; rank++) {
    const share = counts[rank]! / DRAWS / zipfianShare(rank, 100);
    // Ranks 0 and 1 are drawn exactly; the formula approximates the rest.
    expect(share).toBeGreaterThan(rank < 2 ? 0.97 : 0.75);
    expect(share).toBeLessThan(rank < 2 ? 1.03 : 1.35);
  }
});

test('scattered favourites are no neighbours, and the same seed has the same ones', () => {
  const drawn = (seed: number): number[] => {
    const draw = drawer('zipfian', 1000, new Random(seed));
    return Array.from({ length: 5000 }, () => draw(1000));
  };
  expect(drawn(3)).toEqual(drawn(3));
  expect(drawn(3)).not.toEqual(drawn(4));
  const counts = new Map<number, number>();
  for (const number of drawn(3)) counts.set(number, (counts.get(number) ?? 0) + 1);
  const [first, second] = [...counts].sort((a, b) => b[1] - a[1]).map(([number]) => number);
  expect(Math.abs(first! - second!)).toBeGreaterThan(1);
});

test('the latest keys are drawn most, and none that is not there', () => {
  const draw = drawer('latest', 1000, new Random(5));
  let newest = 0;
  for (let i = 0; i < 5000; i++) {
    const number = draw(1200);
    expect(number).toBeLessThan(1200);
    if (number === 1199) newest++;
  }
  expect(newest / 5000).toBeCloseTo(zipfianShare(0, 1000), 1);
});

test('a shuffle holds every number once', () => {
  expect([...shuffled(500, new Random(7))].sort((a, b) => a - b)).toEqual(Array.from({ length: 500 }, (_, i) => i));
});
