import { expect, test } from 'vitest';
import { Random } from '../generator.ts';
import { baselineOf, normalOf, seriesWith } from './fixture.ts';
import { type Compared, compare, type Verdict } from './judge.ts';

const ROWS = 20;
const THRESHOLD = 0.1;
const SLOWER = Math.log(0.8);

interface Made {
  readonly normal: (deviation: number) => number;
  /** Standard deviation of a round's logarithm. */
  readonly noise: number;
  readonly rounds: number;
}

const roundsOf = ({ normal, noise, rounds }: Made, middle = 0): number[] =>
  Array.from({ length: rounds }, () => middle + normal(noise));

/** A comparison of made-up runs in which the first row is `change` quicker or slower (a logarithm) than it was. */
function trial(made: Made, change = 0, count = ROWS): Compared[] {
  const before = Array.from({ length: count }, () => [roundsOf(made)]);
  const now = Array.from({ length: count }, (_, n) => roundsOf(made, n === 0 ? change : 0));
  return compare(baselineOf(before), seriesWith(now), THRESHOLD);
}

/** How many of so many trials have a row that is slower. */
const alarmsOf = (trials: number, run: () => readonly Compared[]): number =>
  Array.from({ length: trials }, run).filter((rows) => rows.some(({ verdict }) => verdict === 'slower')).length;

const verdictOf = (rows: readonly Compared[], suite: string): Verdict | undefined =>
  rows.find((row) => row.suite === suite)?.verdict;

test('where nothing has changed, 1000 runs of 20 rows raise no more alarms than one in twenty', () => {
  const normal = normalOf(new Random(1));
  // At 20% noise the estimates lie far beyond the threshold often enough that only the statistics hold them back.
  expect(alarmsOf(1000, () => trial({ normal, noise: 0.2, rounds: 5 }))).toBeLessThanOrEqual(50);
});

test('at 3% noise, where a row is known to a few percent, 100 runs of 60 unchanged rows raise no alarm', () => {
  const normal = normalOf(new Random(2));
  expect(alarmsOf(100, () => trial({ normal, noise: 0.03, rounds: 5 }, 0, 60))).toBe(0);
});

test('a row that is 20% slower at 5% noise is found, and named alone', () => {
  const normal = normalOf(new Random(3));
  let found = 0;
  let wrong = 0;
  for (let n = 0; n < 200; n++) {
    const rows = trial({ normal, noise: 0.05, rounds: 7 }, SLOWER);
    if (verdictOf(rows, 'suite-0') === 'slower') found++;
    wrong += rows.filter(({ suite, verdict }) => suite !== 'suite-0' && verdict === 'slower').length;
    if (verdictOf(rows, 'suite-0') === 'slower') expect(rows[0]?.suite).toBe('suite-0');
  }
  expect(found).toBeGreaterThanOrEqual(180);
  expect(wrong).toBe(0);
});

test.each([
  ['a row that is 5% slower, surely so, is within a threshold of 10%', 0.002, 0.95, 'same'],
  ['a row that is 30% faster is faster', 0.02, 1.3, 'faster'],
  ['rounds that lie far apart are too noisy to tell, not unchanged', 0.5, 0.9, 'unclear'],
])('%s', (_, noise, factor, verdict) => {
  const rows = trial({ normal: normalOf(new Random(6)), noise, rounds: 5 }, Math.log(factor), 1);
  expect(verdictOf(rows, 'suite-0')).toBe(verdict);
});

test('four rounds are too few, whatever they say', () => {
  const rows = trial({ normal: normalOf(new Random(7)), noise: 0.001, rounds: 4 }, SLOWER);
  expect(rows.every(({ verdict, change }) => verdict === 'few rounds' && change === undefined)).toBe(true);
});

test('a row of the baseline that is not there any more comes first', () => {
  const before = [[[0, 0.01, 0, 0.01, 0]], [[0, 0.01, 0, 0.01, 0]]];
  const rows = compare(baselineOf(before), seriesWith([[-1, -1.01, -1, -1.01, -1]]), THRESHOLD);
  expect(rows.map(({ verdict }) => verdict)).toEqual(['missing', 'slower']);
});

test('runs that scatter more than their rounds explain make a change of that size no alarm', () => {
  const normal = normalOf(new Random(8));
  const made = { normal, noise: 0.01, rounds: 5 };
  const alarms = alarmsOf(200, () => {
    // Each run of each row has a bias of its own, as browsers that are started anew have.
    const before = Array.from({ length: ROWS }, () => [0, 0, 0].map(() => roundsOf(made, normal(0.1))));
    const now = Array.from({ length: ROWS }, () => roundsOf(made, normal(0.1)));
    return compare(baselineOf(before), seriesWith(now), THRESHOLD);
  });
  expect(alarms).toBeLessThanOrEqual(10);
});
