import { expect, test } from 'vitest';
import { standardPlan } from './options.ts';
import type { Custom, Plan } from './plan.ts';
import { tailored } from './tailor.ts';
import { CHOICES, SUITES, type Suite } from './workloads.ts';

const suite = (name: string): Suite => {
  const found = SUITES.find((known) => known.name === name);
  if (found === undefined) throw new Error(`There is no suite ${name}.`);
  return found;
};
const plan = (custom: Custom, more: Partial<Plan> = {}): Plan => ({ ...standardPlan('full'), custom, ...more });

test('without choices of its own a plan leaves a suite as it is', () => {
  for (const known of SUITES) {
    const { suite: same, entries, calls } = tailored(known, plan({}));
    expect(same).toEqual(known);
    expect([entries, calls]).toEqual([known.entries.full, known.calls.full]);
  }
});

test('counts grow with the scale', () => {
  expect(tailored(suite('write-rand'), plan({}, { scale: 2 }))).toMatchObject({ entries: 100_000, calls: 100_000 });
  expect(tailored(suite('open-cold'), plan({}, { scale: 5 })).entries).toBe(1_000_000);
});

test('what a plan chooses takes the place of what the suite says', () => {
  const custom: Custom = {
    entries: 500,
    calls: 70,
    keyBytes: 24,
    valueBytes: 1000,
    keyKind: 'sequential',
    distribution: 'zipfian',
    readRatio: 0.9,
    durability: 'strict',
  };
  const one = tailored(suite('custom'), plan(custom));
  expect(one).toMatchObject({ entries: 500, calls: 70, keyBytes: 24 });
  expect(one.suite).toMatchObject({
    keys: 'sequential',
    valueBytes: 1000,
    durability: 'strict',
    work: { mix: { reads: 0.9 }, order: 'zipfian' },
  });
  // Its phases are its levels.
  expect(tailored(suite('durability'), plan(custom)).suite.durability).toBe('memory');
});

test('every name of the workloads is there', () => {
  const names = CHOICES.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  for (const letter of 'abcdef') expect(names).toContain(`ycsb-${letter}`);
  for (const name of [
    'fillseq',
    'fillrandom',
    'overwrite',
    'readrandom',
    'readseq',
    'readwhilewriting',
    'seekrandom',
  ]) {
    expect(names).toContain(name);
  }
  for (const name of ['deleterandom', 'compaction', 'durability', 'txn', 'scale-txn', 'concurrent', 'open-cold']) {
    expect(names).toContain(name);
  }
  for (const name of ['main-vs-worker', 'multi-tab', 'custom', 'scale', 'micro']) expect(names).toContain(name);
});
