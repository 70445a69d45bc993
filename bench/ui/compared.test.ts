import { expect, test } from 'vitest';
import { compareRuns, differencesOf } from './compared.ts';
import { resultWith, rowWith } from './fixture.ts';

const before = resultWith([
  rowWith({ engine: 'varve-sync', role: 'varve', opsPerSecond: 1000 }),
  rowWith({ engine: 'indexeddb', role: 'peer', opsPerSecond: 100 }),
  rowWith({ engine: 'idb', role: 'peer', opsPerSecond: 90 }),
]);

test('rows are matched by what they did, slower first, and noise is called noise', () => {
  const now = resultWith([
    rowWith({ engine: 'indexeddb', role: 'peer', opsPerSecond: 101 }),
    rowWith({ engine: 'varve-sync', role: 'varve', opsPerSecond: 500 }),
    rowWith({ engine: 'dexie', role: 'peer', opsPerSecond: 80 }),
  ]);
  const compared = compareRuns(before, now).map(({ now: row, change, verdict }) => [
    row.engine,
    Number(change.ratio.toFixed(6)),
    verdict,
  ]);
  expect(compared).toEqual([
    ['varve-sync', 0.5, 'slower'],
    ['indexeddb', 1.01, 'within noise'],
  ]);
});

test('rows of another level or phase are not the same row', () => {
  const now = resultWith([
    rowWith({ engine: 'varve-sync', role: 'varve', opsPerSecond: 1000, durability: 'strict' }),
    rowWith({ engine: 'varve-sync', role: 'varve', opsPerSecond: 1000, phase: 'after compaction' }),
  ]);
  expect(compareRuns(before, now)).toEqual([]);
});

test('what else differs between two runs is said', () => {
  const now = {
    ...before,
    environment: { ...before.environment, cores: 8 },
    plan: { ...before.plan, custom: { valueBytes: 1000 } },
  };
  expect(differencesOf(before, before)).toEqual([]);
  expect(differencesOf(before, now)).toHaveLength(2);
});
