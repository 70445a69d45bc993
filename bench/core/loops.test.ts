import { expect, test } from 'vitest';
import { CORE } from '../suites/core.ts';
import { base, inTables, points, writes } from '../suites/fixtures.ts';
import '../suites/browser.ts';
import { type Loop, tailored } from './loops.ts';
import { standardPlan } from './options.ts';
import type { Custom, Plan } from './plan.ts';
import { count, suites } from './suite.ts';

const plan = (custom: Custom, more: Partial<Plan> = {}): Plan => ({ ...standardPlan('full'), custom, ...more });
const mixed: Loop = { ...base, load: 'anywhere', work: points({ reads: 0.5 }) };

test('without choices of its own a plan leaves a loop as it is', () => {
  for (const { loop } of Object.values(CORE)) {
    const { entries, reserve, calls, keyBytes: _, ...same } = tailored(loop, plan({}));
    expect({ ...same, entries: loop.entries, calls: loop.calls }).toEqual(loop);
    expect([entries, reserve, calls]).toEqual([loop.entries.full, 0, loop.calls.full]);
  }
});

test('counts grow with the scale', () => {
  expect(tailored(writes, plan({}, { scale: 2 }))).toMatchObject({ entries: 100_000, calls: 100_000 });
  const opens: Loop = { ...inTables, entries: count(20_000, 200_000), calls: count(3, 5), work: { kind: 'open' } };
  expect(tailored(opens, plan({}, { scale: 5 }))).toMatchObject({ entries: 1_000_000, calls: 5 });
});

test('the choices of a plan take the place of those of the suite', () => {
  const custom: Custom = {
    entries: 500,
    calls: 70,
    valueBytes: 1000,
    distribution: 'zipfian',
    readRatio: 0.9,
    durability: 'strict',
  };
  const one = tailored(mixed, plan(custom));
  expect(one).toMatchObject({ entries: 500, calls: 70, valueBytes: 1000 });
  expect(one).toMatchObject({ durability: 'strict', work: { mix: { reads: 0.9 }, order: 'zipfian' } });
  const each: Loop = { ...writes, calls: writes.entries };
  expect(tailored(each, plan({ entries: 500 }))).toMatchObject({ entries: 500, calls: 500 });
  // Its phases are its levels.
  expect(tailored({ ...writes, phase: 'memory', durability: 'memory' }, plan(custom)).durability).toBe('memory');
});

test('every name of the workloads is there', () => {
  const names = suites().map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  for (const letter of 'abcdef') expect(names).toContain(`ycsb-${letter}`);
  const expected =
    'fillseq fillrandom overwrite readrandom readseq readwhilewriting seekrandom deleterandom compaction durability txn scale-txn ' +
    'concurrent open-cold main-vs-worker multi-tab custom scale micro documents queue rotate counters overwrite-steady sessions';
  expect(names).toEqual(expect.arrayContaining(expected.split(' ')));
});
