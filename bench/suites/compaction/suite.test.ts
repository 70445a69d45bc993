import { expect, test } from 'vitest';
import { wasm } from '../../../tests/node/support/engine.ts';
import type { RunEvent } from '../../core/plan.ts';
import type { Row } from '../../core/rows.ts';
import { compactionTables } from './report.ts';
import { runCompaction } from './suite.ts';

test('a compaction leaves one entry for each live key, and says what it did', async () => {
  const rows: Row[] = [];
  const problems: string[] = [];
  const emit = (event: RunEvent): void => {
    if (event.type === 'row') rows.push(event.row);
    if (event.type === 'problem') problems.push(event.text);
  };
  await runCompaction(
    {
      plan: {
        mode: 'quick',
        suites: ['compaction'],
        engines: ['varve-sync'],
        accesses: ['worker'],
        rounds: 1,
        seed: 1,
        scale: 1,
        custom: { storage: 'memory' },
      },
      engines: [],
      access: 'worker',
      emit,
      signal: new AbortController().signal,
      step: () => undefined,
    },
    { compactor: false, wasm },
  );
  expect(problems).toEqual([]);
  expect(rows.every(({ verified }) => verified)).toBe(true);
  const overlapping = rows.find(({ phase }) => phase?.startsWith('merging'));
  // The engine leaves seven tables alone; a burst in one turn adds to them.
  expect(overlapping?.compaction?.before.files).toBeGreaterThan(7);
  expect(overlapping?.compaction?.after.files).toBe(1);
  const same = rows.find(({ phase }) => phase?.endsWith('tables of the same keys'));
  expect(same?.compaction?.after.bytes).toBeLessThan((same?.compaction?.before.bytes ?? 0) / 5);
  const tombstones = rows.find(({ phase }) => phase === 'tombstones and older versions');
  const { before, after } = tombstones?.compaction ?? {};
  expect(before?.entries).toBe(Math.round(((after?.entries ?? 0) * 7) / 2));
  const titles = compactionTables(rows).map(({ title, lines }) => [title, lines.length]);
  expect(titles).toEqual([
    ['compaction: reads', 2],
    ['compaction: files', 4],
  ]);
}, 300_000);
