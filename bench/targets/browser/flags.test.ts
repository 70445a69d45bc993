import { expect, test } from 'vitest';
import { OPTIONS } from '../../core/options.ts';
import { helpText, parseFlags, planOf } from './flags.ts';

test('every option of a run is a flag, and its values reach the plan', () => {
  const { params, peers, failOver } = parseFlags([
    ...['--suite', 'write-rand', '--suite', 'mixed-70', '--value-bytes', '1000', '--distribution=zipfian'],
    ...['--read-ratio', '0.9', '--rounds', '5', '--seed', '7', '--quick', '--peers', 'map,indexeddb'],
  ]);
  const plan = planOf(params);
  expect(plan).toMatchObject({ mode: 'quick', suites: ['write-rand', 'mixed-70'], rounds: 5, seed: 7 });
  expect(plan.custom).toEqual({ valueBytes: 1000, distribution: 'zipfian', readRatio: 0.9 });
  expect(peers).toEqual(['map', 'indexeddb']);
  expect(failOver).toBe(0.1);
});

test('the help has every option', () => {
  const help = helpText();
  for (const { name } of OPTIONS) expect(help).toContain(`  --${name}`);
});

test('the error of an unknown flag has the nearest one', () => {
  expect(() => parseFlags(['--siute', 'write-rand'])).toThrow('There is no flag "--siute": the nearest is --suite.');
  expect(() => parseFlags(['write-rand'])).toThrow('"write-rand" stands where a flag was expected.');
});

test('the error of an unknown name has the nearest one', () => {
  expect(() => parseFlags(['--suite', 'raed-rand-mem'])).toThrow(
    'There is no suite "raed-rand-mem": the nearest is read-rand-mem.',
  );
  expect(() => parseFlags(['--peers', 'indexdb'])).toThrow('There is no engine "indexdb": the nearest is indexeddb.');
  expect(() => parseFlags(['--durability', 'soft'])).toThrow(
    'There is no durability "soft": there are memory, relaxed',
  );
});

test('a value that is missing or impossible is an error in words', () => {
  expect(() => parseFlags(['--suite'])).toThrow('--suite wants a value: --suite NAME.');
  expect(() => parseFlags(['--quick=yes'])).toThrow('--quick takes no value.');
  expect(() => parseFlags(['--fail-over', 'much'])).toThrow('--fail-over must be a share such as 10% or 0.1');
  expect(() => parseFlags(['--runs', '0'])).toThrow('--runs must be a whole number from 1 to 20');
  expect(() => planOf(parseFlags(['--rounds', '2.5']).params)).toThrow('The option rounds must be a whole number');
});

test('shares are read as percentages or fractions', () => {
  expect(parseFlags(['--fail-over', '15%']).failOver).toBe(0.15);
  expect(parseFlags(['--fail-over', '0.05']).failOver).toBe(0.05);
});
