import { expect, test } from 'vitest';
import { bestPeers, type Comparison, comparisonsOf, countText, ratioText, slowerOf } from './comparison.ts';
import { rowOf } from './fixture.ts';
import type { Row } from './row.ts';

const row = (engine: string, role: Row['role'], opsPerSecond: number, more: Partial<Row> = {}): Row =>
  rowOf({ engine, role, opsPerSecond, rounds: [opsPerSecond], ...more });
const best = (...rows: Row[]): Comparison<Row>[] => bestPeers(comparisonsOf([rows]));
const ratios = (...rows: Row[]): unknown[] =>
  best(...rows).map(({ varve, peer, ratio }) => [varve.engine, peer.engine, Number(ratio.toFixed(3))]);

const varve = row('varve-sync', 'varve', 300);

test('the quickest peer is the best one, and a floor is no peer', () => {
  const rows = [varve, row('slow', 'peer', 50), row('quick', 'peer', 100), row('map', 'floor', 9000)];
  expect(ratios(...rows)).toEqual([['varve-sync', 'quick', 3]]);
});

test('a peer counts only if it was verified and reached the same level', () => {
  const wrong = row('wrong', 'peer', 500, { verified: false });
  const weaker = row('weaker', 'peer', 400, { durability: 'memory' });
  expect(ratios(varve, wrong, weaker, row('honest', 'peer', 10))).toEqual([['varve-sync', 'honest', 30]]);
  expect(ratios(varve, wrong, weaker)).toEqual([]);
});

test('a row of Varve that was not verified is beside nothing', () => {
  expect(ratios(row('varve-sync', 'varve', 900, { verified: false }), row('peer', 'peer', 600))).toEqual([]);
});

test('a row that joins many writes into one commit stands beside others that do, one by one beside one by one', () => {
  const peers = [row('sqlite-wasm', 'peer', 10), row('sqlite-wasm-grouped', 'peer', 200)];
  expect(ratios(varve, row('varve-sync-each', 'varve', 20), ...peers)).toEqual([
    ['varve-sync', 'sqlite-wasm-grouped', 1.5],
    ['varve-sync-each', 'sqlite-wasm', 2],
  ]);
});

test('a strict set is one commit, so it stands beside one commit', () => {
  const strict = { durability: 'strict' } as const;
  const peers = [row('indexeddb', 'peer', 10, strict), row('indexeddb-grouped', 'peer', 90, strict)];
  expect(ratios(row('varve-sync', 'varve', 30, strict), ...peers)).toEqual([['varve-sync', 'indexeddb', 3]]);
});

test('Varve over IndexedDB stands beside what is over IndexedDB', () => {
  const rows = [row('varve-indexeddb', 'varve', 30), row('sqlite-wasm', 'peer', 900), row('dexie', 'peer', 60)];
  expect(ratios(...rows)).toEqual([['varve-indexeddb', 'dexie', 0.5]]);
});

test('Varve is slower where the whole interval says so, and a ratio below one never reads as one', () => {
  const slow = row('varve-sync', 'varve', 50, { rounds: [50, 51, 49] });
  const peer = row('peer', 'peer', 100, { rounds: [100, 101, 99] });
  const noisy = row('noisy', 'peer', 100, { rounds: [10, 100, 1000] });
  const comparisons = comparisonsOf([[slow, peer, noisy]]);
  expect(slowerOf(comparisons).map((one) => one.peer.engine)).toEqual(['peer']);
  expect(countText(comparisons)).toBe('slower in 1 of 2 comparisons with a peer');
  const once = (name: string, rate: number) => row(name, 'peer', rate, { rounds: [rate] });
  expect(slowerOf(comparisonsOf([[{ ...slow, rounds: [50] }, once('peer', 51), once('other', 49)]]))).toHaveLength(1);
  expect(ratioText(0.9999)).toBe('0.999x');
});
