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

test.each([
  [['--siute', 'write-rand'], 'There is no flag "--siute": the nearest is --suite.'],
  [['write-rand'], '"write-rand" stands where a flag was expected.'],
  [['--suite', 'raed-rand-mem'], 'There is no suite "raed-rand-mem": the nearest is read-rand-mem.'],
  [['--peers', 'indexdb'], 'There is no engine "indexdb": the nearest is indexeddb.'],
  [['--durability', 'soft'], 'There is no durability "soft": there are memory, relaxed'],
  [['--suite'], '--suite wants a value: --suite NAME.'],
  [['--quick=yes'], '--quick takes no value.'],
  [['--fail-over', 'much'], '--fail-over must be a share such as 10% or 0.1'],
  [['--runs', '0'], '--runs must be a whole number from 1 to 20'],
  [['--rounds', '2.5'], 'The option rounds must be a whole number'],
])('an error in words, with the nearest name if there is one: %s', (args, message) => {
  expect(() => planOf(parseFlags(args).params)).toThrow(message);
});

test('shares are read as percentages or fractions', () => {
  expect(parseFlags(['--fail-over', '15%']).failOver).toBe(0.15);
  expect(parseFlags(['--fail-over', '0.05']).failOver).toBe(0.05);
});
