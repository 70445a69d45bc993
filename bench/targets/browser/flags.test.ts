import { expect, test } from 'vitest';
import { benchCommand, parseFlags, planOf } from './flags.ts';

const command = () =>
  benchCommand()
    .exitOverride()
    .configureOutput({ writeErr: () => undefined });

test('every option of a run is a flag, and its values reach the plan', () => {
  const { params, flags } = parseFlags([
    ...['--suite', 'write-rand', '--suite', 'mixed-70', '--value-bytes', '1000', '--distribution=zipfian'],
    ...['--read-ratio', '0.9', '--rounds', '5', '--seed', '7', '--quick', '--peers', 'map,indexeddb'],
  ]);
  const plan = planOf(params);
  expect(plan).toMatchObject({ mode: 'quick', suites: ['write-rand', 'mixed-70'], rounds: 5, seed: 7 });
  expect(plan.custom).toEqual({ valueBytes: 1000, distribution: 'zipfian', readRatio: 0.9 });
  expect(plan.engines).toEqual(expect.arrayContaining(['varve-sync', 'varve', 'map', 'indexeddb']));
  expect(plan.engines).not.toContain('dexie');
  expect(planOf(parseFlags(['--quick', '--peers', 'all']).params).engines).toContain('dexie');
  expect(flags).toMatchObject({ runs: 1, failOver: 0.1 });
});

test.each([
  [['--siute', 'write-rand'], 'Did you mean --suite'],
  [['write-rand'], 'too many arguments'],
  [['--suite', 'raed-rand-mem'], 'There is no "raed-rand-mem" among the suites.'],
  [['--peers', 'indexdb'], 'There is no "indexdb" among the engines.'],
  [['--durability', 'soft'], 'Allowed choices are memory, relaxed, strict.'],
  [['--suite'], 'argument missing'],
  [['--fail-over', 'much'], 'It must be a share such as 10% or 0.1'],
  [['--runs', '0'], '--runs takes a number above 0'],
  [['--rounds', '2.5'], 'The option rounds must be a whole number'],
])('an error in words: %s', (args, message) => {
  expect(() => planOf(parseFlags(args, command()).params)).toThrow(message);
});

test('shares are read as percentages or fractions', () => {
  expect(parseFlags(['--fail-over', '15%']).flags.failOver).toBe(0.15);
  expect(parseFlags(['--fail-over', '0.05']).flags.failOver).toBe(0.05);
});
