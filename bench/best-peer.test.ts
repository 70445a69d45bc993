import { expect, test } from 'vitest';
import { bestPeer, bestPeerCells, bestPeers } from './best-peer.ts';
import type { Row } from './rows.ts';

function row(engine: string, role: Row['role'], opsPerSecond: number, more: Partial<Row> = {}): Row {
  return {
    suite: 'write-rand',
    engine,
    role,
    access: 'worker',
    durability: 'relaxed',
    unit: 'ops',
    ops: 100,
    seconds: 1,
    opsPerSecond,
    megabytesPerSecond: 1,
    p50: 1,
    p95: 1,
    p99: 1,
    max: 1,
    hitRate: null,
    verified: true,
    groupSize: 1,
    rounds: [opsPerSecond],
    busy: 0,
    histogram: '',
    timeline: [],
    ...more,
  };
}

const varve = row('varve-sync', 'varve', 300);

test('the quickest peer is the best one, and a floor is no peer', () => {
  const rows = [varve, row('slow', 'peer', 50), row('quick', 'peer', 100), row('map', 'floor', 9000)];
  expect(bestPeer(rows)).toMatchObject({ varve: { engine: 'varve-sync' }, peer: { engine: 'quick' }, ratio: 3 });
});

test('a peer counts only if it was verified and reached the same level', () => {
  const wrong = row('wrong', 'peer', 500, { verified: false });
  const weaker = row('weaker', 'peer', 400, { durability: 'memory' });
  expect(bestPeer([varve, wrong, weaker, row('honest', 'peer', 10)])?.peer.engine).toBe('honest');
  expect(bestPeer([varve, wrong, weaker])).toBeUndefined();
});

test('of several rows of Varve the quickest verified one is set beside it, wherever it stands', () => {
  const each = row('varve-sync-each', 'varve', 200);
  const unverified = row('varve', 'varve', 900, { verified: false });
  const rows = [each, unverified, varve, row('peer', 'peer', 600)];
  expect(bestPeer(rows)).toMatchObject({ varve: { engine: 'varve-sync' }, ratio: 0.5 });
});

test('without Varve, or without a peer, there is nothing to tell', () => {
  expect(bestPeer([row('peer', 'peer', 1)])).toBeUndefined();
  expect(bestPeer([varve])).toBeUndefined();
  expect(bestPeerCells({ rows: [] })).toEqual([]);
});

test('the phases of a suite are told apart', () => {
  const before = { phase: 'before' };
  const after = { phase: 'after' };
  const rows = [
    row('varve-sync', 'varve', 100, before),
    row('varve-sync', 'varve', 400, after),
    row('peer', 'peer', 50, before),
    row('peer', 'peer', 100, after),
  ];
  expect(bestPeers(rows).map(({ varve, ratio }) => [varve.phase, ratio])).toEqual([
    ['before', 2],
    ['after', 4],
  ]);
});

test('the line of the table names both engines, their spreads and the ratio', () => {
  const peer = row('peer', 'peer', 100, { rounds: [90, 100, 110] });
  expect(bestPeerCells({ rows: [varve, peer] })).toEqual([
    ['write-rand', 'worker', 'relaxed', 'varve-sync', '300', '0%', 'peer', '100', '20.0%', '3.00x'],
  ]);
});
