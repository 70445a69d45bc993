import { expect, test } from 'vitest';
import { Latencies } from '../../core/latency.ts';
import { type InTabs, makeRow, type Row } from '../../core/rows.ts';
import { failoverLine, tabTables } from './report.ts';

/** A row of so many operations a second. */
function row(engine: string, rate: number, tabs: Partial<InTabs>): Row {
  const latencies = Latencies.of(Float64Array.of(100, 200, 300));
  const tally = { ops: rate, bytes: rate * 116, reads: 0, hits: 0, wrong: 0 };
  const head = {
    suite: 'multi-tab',
    engine,
    role: engine === 'varve' ? 'varve' : 'peer',
    access: 'page',
    durability: 'relaxed',
    unit: 'ops',
    groupSize: 1,
    tabs: { count: 2, call: 'set', role: 'tab', load: 'alone', place: 'tab', ...tabs },
  } as const;
  return makeRow(head, [{ tally, elapsed_ms: 1000, latencies, timeline: [] }], true);
}

test('a peer stands beside the leader and a follower alone, and beside all of them at once', () => {
  const [table, ...others] = tabTables(
    [
      row('varve', 3000, { role: 'all', load: 'all' }),
      row('varve', 4000, { role: 'leader' }),
      row('varve', 1000, { role: 'follower' }),
      row('varve', 9000, { role: 'leader', count: 4 }),
      row('indexeddb', 2000, {}),
      row('indexeddb', 1500, { role: 'all', load: 'all' }),
    ],
    [],
  );
  expect(others).toEqual([]);
  expect(table?.title).toBe('multi-tab: set, awaited');
  const cells = table?.lines.map((line) => [line.cells[1], line.cells[2], line.cells.at(-1)]);
  expect(cells).toEqual([
    ['the leader', 'varve', ''],
    ['the follower', 'varve', ''],
    ['one tab', 'indexeddb', '2.00x (leader), 0.50x (follower)'],
    ['all at once', 'varve', ''],
    ['all at once', 'indexeddb', '2.00x'],
    ['the leader', 'varve', ''],
  ]);
});

test('frames are said to be no tabs', () => {
  const [table] = tabTables([row('varve', 1, { place: 'frame' })], []);
  expect(table?.note).toContain('frames of one page');
});

test('a failover is told by its median and its worst pause', () => {
  const failover = {
    engine: 'varve',
    cause: 'close',
    place: 'tab',
    hasLeader: true,
    tabs: 3,
    pauses_ms: [40, 50, 60, 900],
    fromCommand_ms: [45, 55, 65, 950],
  } as const;
  expect(failoverLine(failover)).toBe('varve: its tab is closed, 2 times: writers pause 55.0 ms, at worst 900 ms');
  const [table] = tabTables([], [failover]);
  expect(table?.lines[0]?.cells).toEqual(['varve', 'its tab is closed', '2', '55.0 ms', '900 ms', '60.0 ms', '950 ms']);
});
