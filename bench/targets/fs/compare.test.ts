// The comparison on stores that are maps, some of which lie: it must notice.

import { expect, test } from 'vitest';
import { LIVES } from '../../suites/lives/lives.ts';
import { compareEngines, compareReopening } from './compare.ts';
import type { FileEngine, FileStore, Pair } from './engine.ts';
import { liveOn } from './lives.ts';
import { fileTable } from './row.ts';
import { type FileSuite, SUITES } from './suites.ts';

type Store = Map<string, Uint8Array>;

/** An engine whose stores are maps; `spoil` makes it lie. */
function mapEngine(name: string, spoil: (store: FileStore, map: Store) => Partial<FileStore> = () => ({})): FileEngine {
  const stores = new Map<string, Store>();
  return {
    name,
    version: 'map 1',
    writes: { relaxed: 'a map', strict: 'a map' },
    open: async (directory) => {
      const map = stores.get(directory) ?? new Map<string, Uint8Array>();
      stores.set(directory, map);
      const store = storeOf(map);
      return { ...store, ...spoil(store, map) };
    },
  };
}

function storeOf(map: Store): FileStore {
  const sorted = (): Pair[] => [...map].sort(([a], [b]) => (a < b ? -1 : 1));
  return {
    set: (key, value) => void map.set(key, value),
    // One that answers later is waited for.
    get: async (key) => map.get(key),
    delete: (key) => void map.delete(key),
    batch: (pairs) => {
      for (const [key, value] of pairs) map.set(key, value);
    },
    range: (gte, limit) =>
      sorted()
        .filter(([key]) => key >= gte)
        .slice(0, limit),
    deleteRange: (gte, lt) => {
      for (const key of map.keys()) if (key >= gte && key < lt) map.delete(key);
    },
    all: sorted,
    settle: async () => undefined,
    close: async () => undefined,
  };
}

const EXTENT = { isQuick: true, rounds: 2, round_ms: 5 };
const small = (suite: FileSuite): FileSuite => ({ ...suite, entries: { quick: 500, full: 500 } });
const suiteOf = (name: string): FileSuite => small(SUITES.find((suite) => suite.name === name) as FileSuite);

test.each(SUITES.map(small))('$name: an honest store is verified', async (suite) => {
  const [row] = await compareEngines([mapEngine('honest')], suite, 'place', EXTENT);
  expect(row).toMatchObject({ suite: suite.name, engine: 'honest', errors: 0, verified: true, problem: undefined });
  expect(row?.rounds).toHaveLength(2);
  expect(row?.opsPerSecond).toBeGreaterThan(0);
});

test('a set that is forgotten is found when the store is walked', async () => {
  const forgetful = mapEngine('forgetful', (store, map) => ({
    set: (key, value) => void (map.size < 3 && store.set(key, value)),
  }));
  const rows = await compareEngines([mapEngine('honest'), forgetful], suiteOf('write-rand'), 'place', EXTENT);
  expect(rows.map(({ verified }) => verified)).toEqual([true, false]);
  expect(rows[1]?.problem).toMatch(/where .* must come|holds 3 of/);
  expect(fileTable(rows)).toContain('| **no** |');
});

test('a get of another value, a range that is short, a delete that is not made are found', async () => {
  const stale = mapEngine('stale', () => ({ get: () => new Uint8Array(100) }));
  const short = mapEngine('short', (store) => ({
    range: async (gte, limit) => (await store.range(gte, limit)).slice(1),
  }));
  const keeping = mapEngine('keeping', () => ({ delete: () => undefined }));
  for (const [suite, engine] of [
    ['read-rand', stale],
    ['range-100', short],
    ['delete', keeping],
  ] as const) {
    const [row] = await compareEngines([engine], suiteOf(suite), 'place', EXTENT);
    expect([suite, row?.verified]).toEqual([suite, false]);
  }
});

test('reopening is verified by the first get', async () => {
  const engines = [mapEngine('honest'), mapEngine('empty', () => ({ get: () => undefined }))];
  const rows = await compareReopening(engines, 'place', EXTENT);
  expect(rows.map(({ suite, verified }) => [suite, verified])).toEqual([
    ['reopen', true],
    ['reopen', false],
  ]);
});

test('a life gives its rows, with its story on the first; one that is lived wrongly is not verified', async () => {
  const counters = LIVES.find(({ name }) => name === 'counters') as (typeof LIVES)[number];
  const rows = await liveOn(mapEngine('honest'), counters, 'place', EXTENT);
  expect(rows.map(({ suite, work, verified }) => [suite, work, verified])).toEqual([
    ['counters', 'increment', true],
    ['counters', 'scan', true],
    ['counters', 'scan, fresh store', true],
  ]);
  expect(rows[0]?.life?.samples.length).toBeGreaterThan(0);
  expect(fileTable(rows)).toContain('| counters, scan, fresh store | honest |');
  expect(fileTable(rows)).toMatch(/^- counters, honest: \S+ of 20\.0k steps/m);
  const forgetful = mapEngine('forgetful', () => ({ set: () => undefined }));
  const [wrong] = await liveOn(forgetful, counters, 'place', EXTENT);
  expect(wrong).toMatchObject({ verified: false });
});
