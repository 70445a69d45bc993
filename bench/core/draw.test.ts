import { expect, test } from 'vitest';
import { drawer, shuffled, Zipfian } from './draw.ts';
import { Random } from './generator.ts';

const DRAWS = 200_000;

/** The share of all draws that a rank of `count` gets, by the definition. */
function zipfianShare(rank: number, count: number): number {
  const weight = (i: number): number => 1 / (i + 1) ** 0.99;
  return weight(rank) / Array.from({ length: count }, (_, i) => weight(i)).reduce((sum, one) => sum + one);
}

/** Pearson's statistic of what was drawn against the shares that were to be. */
function chiSquare(counts: readonly number[], shares: readonly number[]): number {
  const total = counts.reduce((sum, count) => sum + count, 0);
  return counts.reduce(
    (sum, count, i) => sum + (count - total * (shares[i] ?? 0)) ** 2 / (total * (shares[i] ?? 1)),
    0,
  );
}

test('the two hottest ranks come up exactly as often as zipfian says, and the others nearly', () => {
  const COUNT = 100;
  const zipfian = new Zipfian(COUNT, new Random(42));
  const counts = new Array<number>(COUNT).fill(0);
  for (let i = 0; i < DRAWS; i++) counts[zipfian.next()]!++;
  // Ranks 0 and 1 are drawn exactly; the formula approximates the rest, which counts as one class.
  const shares = [zipfianShare(0, COUNT), zipfianShare(1, COUNT)];
  const rest = 1 - shares[0]! - shares[1]!;
  const others = counts.slice(2).reduce((sum, count) => sum + count, 0);
  // 13.8: exceeded once in a thousand seeds with two degrees of freedom.
  expect(chiSquare([counts[0]!, counts[1]!, others], [...shares, rest])).toBeLessThan(13.8);
  for (let rank = 2; rank < 20; rank++) {
    const share = counts[rank]! / DRAWS;
    expect(share / zipfianShare(rank, COUNT)).toBeGreaterThan(0.75);
    expect(share / zipfianShare(rank, COUNT)).toBeLessThan(1.35);
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

test('even draws are even', () => {
  const draw = drawer('uniform', 50, new Random(6));
  const counts = new Array<number>(50).fill(0);
  for (let i = 0; i < DRAWS; i++) counts[draw(50)]!++;
  // 85.4: exceeded once in a thousand seeds with 49 degrees of freedom.
  expect(chiSquare(counts, new Array<number>(50).fill(1 / 50))).toBeLessThan(85.4);
});

test('a shuffle holds every number once', () => {
  expect([...shuffled(500, new Random(7))].sort((a, b) => a - b)).toEqual(Array.from({ length: 500 }, (_, i) => i));
});
