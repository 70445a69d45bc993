import { expect, test } from 'vitest';
import { rowWith } from './fixture.ts';
import { standingsOf, summaryOf } from './standing.ts';

test('what joins writes is compared with what joins them, and what is slower comes first', () => {
  const rows = [
    rowWith({ engine: 'varve-sync', role: 'varve', opsPerSecond: 5000 }),
    rowWith({ engine: 'varve-sync-each', role: 'varve', opsPerSecond: 1000 }),
    rowWith({ engine: 'indexeddb', role: 'peer', opsPerSecond: 10 }),
    rowWith({ engine: 'indexeddb-grouped', role: 'peer', opsPerSecond: 1000 }),
    rowWith({ engine: 'map', role: 'floor', opsPerSecond: 1e6 }),
    rowWith({ suite: 'range-100', engine: 'varve-sync', role: 'varve', opsPerSecond: 50 }),
    rowWith({ suite: 'range-100', engine: 'indexeddb', role: 'peer', opsPerSecond: 100 }),
  ];
  const standings = standingsOf(rows);
  expect(standings.map(({ name, peer, ratio }) => [name, peer.engine, Number(ratio.toFixed(2))])).toEqual([
    ['range-100 (worker)', 'indexeddb', 0.5],
    ['write-rand (worker), varve-sync', 'indexeddb-grouped', 5],
    ['write-rand (worker), varve-sync-each', 'indexeddb', 100],
  ]);
  const { slower, rest, headline } = summaryOf(standings);
  expect(slower).toEqual(['range-100 (worker): 0.50x the rate of indexeddb']);
  expect(rest).toEqual(['Quicker in 2 of 3: 5.00x to 100x.']);
  expect(headline).toBe('In the middle of 3 comparisons Varve reaches 5.00x the rate of the best peer.');
});

test('what the rounds do not tell apart is not called quicker', () => {
  const rows = [
    rowWith({ engine: 'varve-sync', role: 'varve', opsPerSecond: 110, rounds: [60, 110, 300] }),
    rowWith({ engine: 'indexeddb', role: 'peer', opsPerSecond: 100, rounds: [200, 100, 50] }),
  ];
  const { headline, slower, rest } = summaryOf(standingsOf(rows));
  expect(headline).toBe('Varve reaches 1.26x the rate of the best peer.');
  expect(slower).toEqual([]);
  expect(rest).toHaveLength(1);
  expect(rest[0]).toContain('Not told apart in 1 of 1');
});

test('a peer that was not verified, or reached another level, is not compared with', () => {
  const rows = [
    rowWith({ engine: 'varve-sync', role: 'varve', opsPerSecond: 5000 }),
    rowWith({ engine: 'broken', role: 'peer', opsPerSecond: 1e9, verified: false }),
    rowWith({ engine: 'forgetful', role: 'peer', opsPerSecond: 1e9, durability: 'memory' }),
  ];
  expect(standingsOf(rows)).toEqual([]);
  expect(summaryOf([]).headline).toContain('choose peers');
});

test('phases of a suite are cases of their own', () => {
  const at = (phase: string, varve: number) => [
    rowWith({ phase, engine: 'varve-sync', role: 'varve', opsPerSecond: varve }),
    rowWith({ phase, engine: 'indexeddb', role: 'peer', opsPerSecond: 100 }),
  ];
  const ratios = standingsOf([...at('before', 100), ...at('after', 300)]).map(({ case: one, ratio }) => [
    one.phase,
    Number(ratio.toFixed(6)),
  ]);
  expect(ratios).toEqual([
    ['before', 1],
    ['after', 3],
  ]);
});
