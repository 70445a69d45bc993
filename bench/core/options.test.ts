import fc from 'fast-check';
import { expect, test } from 'vitest';
import '../peers/all.ts';
import '../suites/browser.ts';
import { ACCESSES, OPTIONS, paramsOf, planFrom, standardPlan } from './options.ts';
import type { Custom, Plan } from './plan.ts';

const option = (name: string): (typeof OPTIONS)[number] => {
  const found = OPTIONS.find((known) => known.name === name);
  if (found === undefined) throw new Error(`There is no option ${name}.`);
  return found;
};
const whole = (name: string): fc.Arbitrary<number> =>
  fc.integer({ min: option(name).min ?? 0, max: option(name).max ?? 1 });
const choice = <T extends string>(...choices: T[]): fc.Arbitrary<T> => fc.constantFrom(...choices);
const some = (name: string): fc.Arbitrary<string[]> => fc.subarray([...(option(name).choices?.() ?? [])]);

const custom = fc.record(
  {
    entries: whole('entries'),
    calls: whole('calls'),
    keyBytes: whole('key-bytes'),
    valueBytes: whole('value-bytes'),
    keyKind: choice('sequential', 'random', 'tuple'),
    distribution: choice('uniform', 'zipfian', 'latest', 'sequential'),
    readRatio: fc.double({ min: 0, max: 1, noNaN: true }).filter((ratio) => !Object.is(ratio, -0)),
    memoryBytes: whole('memory-bytes'),
    durability: choice('memory', 'relaxed', 'strict'),
    storage: choice('opfs', 'indexeddb', 'memory'),
    threads: whole('threads'),
    round_ms: whole('round-ms'),
  } satisfies { [K in keyof Required<Custom>]: fc.Arbitrary<Required<Custom>[K]> },
  { requiredKeys: [] },
);

const plans: fc.Arbitrary<Plan> = fc.record({
  mode: choice('quick', 'full'),
  suites: some('suites'),
  engines: some('engines'),
  accesses: fc.subarray([...ACCESSES]),
  rounds: whole('rounds'),
  seed: whole('seed'),
  scale: fc.double({ min: 0.01, max: 100, noNaN: true }),
  custom,
});

test('the address of a plan gives the plan again', () => {
  fc.assert(
    fc.property(plans, (plan) => {
      const address = new URLSearchParams(paramsOf(plan).toString());
      expect(planFrom(address)).toEqual({ plan, problems: [] });
    }),
  );
});

test('the standard plans have the shortest addresses', () => {
  expect(paramsOf(standardPlan('quick')).toString()).toBe('');
  expect(paramsOf(standardPlan('full')).toString()).toBe('mode=full');
});

test('what cannot be had is reported in words, and the rest is kept', () => {
  const { plan, problems } = planFrom(
    new URLSearchParams(
      'auto&mode=full&suites=scan,nothing&value-bytes=1.5&read-ratio=2&entries=10&sizes=3&storage=tape',
    ),
  );
  expect(plan).toMatchObject({ mode: 'full', suites: ['scan'], custom: { entries: 10 } });
  expect(Object.keys(plan.custom)).toEqual(['entries']);
  expect(problems).toEqual([
    'There is no "nothing" among the suites.',
    'The option value-bytes must be a whole number from 4 to 1048576, and is "1.5".',
    'The option read-ratio must be a number from 0 to 1, and is "2".',
    'There is no option "sizes".',
    '"tape" is no storage: choose one of opfs, indexeddb, memory.',
  ]);
});
