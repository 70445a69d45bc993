import fc from 'fast-check';
import { expect, test } from 'vitest';
import '../peers/all.ts';
import '../suites/browser.ts';
import { OPTIONS, type Option, paramsOf, planFrom, standardPlan } from './options.ts';
import type { Plan } from './plan.ts';

function anyOf({ kind, min = 0, max = 1, step = 1, choices }: Option): fc.Arbitrary<unknown> {
  const known = choices?.() ?? [];
  if (kind === 'choice') return fc.constantFrom(...known);
  if (kind === 'list') return fc.subarray([...known]);
  // An address knows no negative zero.
  return step < 1 ? fc.double({ min, max, noNaN: true }).map((value) => value + 0) : fc.integer({ min, max });
}

const some = OPTIONS.filter(({ field }) => field !== undefined);
const own = OPTIONS.filter(({ field }) => field === undefined);
const plans = fc
  .tuple(
    fc.record(Object.fromEntries(own.map((one) => [one.name === 'access' ? 'accesses' : one.name, anyOf(one)]))),
    fc.record(Object.fromEntries(some.map((one) => [one.field, anyOf(one)])), { requiredKeys: [] }),
  )
  .map(([plan, custom]) => ({ ...plan, custom }) as unknown as Plan);

test('the address of a plan gives the plan again', () => {
  fc.assert(
    fc.property(plans, (plan) => {
      expect(planFrom(new URLSearchParams(paramsOf(plan).toString()))).toEqual({ plan, problems: [] });
    }),
  );
});

test('the standard plans have the shortest addresses', () => {
  expect(paramsOf(standardPlan('quick')).toString()).toBe('');
  expect(paramsOf(standardPlan('full')).toString()).toBe('mode=full');
});

test('a wrong option is reported in words, and the rest is kept', () => {
  const wrong = 'suites=scan,nothing&value-bytes=1.5&read-ratio=2&sizes=3&durability=none';
  const { plan, problems } = planFrom(new URLSearchParams(`auto&mode=full&entries=10&${wrong}`));
  expect(plan).toMatchObject({ mode: 'full', suites: ['scan'], custom: { entries: 10 } });
  expect(Object.keys(plan.custom)).toEqual(['entries']);
  expect(problems).toEqual([
    'There is no "nothing" among the suites.',
    'The option value-bytes must be a whole number from 4 to 1048576, and is "1.5".',
    'The option read-ratio must be a number from 0 to 1, and is "2".',
    'There is no option "sizes".',
    '"none" is no durability: choose one of memory, relaxed, strict.',
  ]);
});
