import { open } from 'varve/synchronous';
import { expect, test } from 'vitest';
import { wasm } from '../../tests/node/support/engine.ts';
import { planOf } from '../core/fixture.ts';
import type { Key } from '../core/generator.ts';
import type { Emit } from '../core/plan.ts';
import { Gathered } from '../core/result.ts';
import { Stages } from '../core/stage.ts';
import { syncSession, varveSync } from '../peers/varve-sync.ts';
import { runCompaction } from './compaction.ts';

test('a compaction leaves one entry for each live key, and says what it did', async () => {
  const found = new Gathered();
  const { rows, problems } = found;
  const plan = planOf(['compaction'], { rounds: 1, custom: {} });
  // Tests have no workers.
  const options = { storage: 'memory', memoryBytes: 1 << 20, compactor: false, wasm } as const;
  const opened = async (name: string) => syncSession(await open<Key, Uint8Array>(name, options));
  const engine = { ...varveSync, open: opened, remove: async () => undefined };
  const emit: Emit = (event) => found.take(event);
  const quiet = { step: () => undefined, say: () => undefined, signal: new AbortController().signal };
  await runCompaction(
    { plan, engines: [], access: 'worker', place: 'worker', emit, ...quiet, stages: new Stages(plan, emit) },
    engine,
  );
  expect(problems).toEqual([]);
  expect(rows.every(({ verified }) => verified)).toBe(true);
  const noteOf = (phase: RegExp): number[] => {
    const note = rows.find((row) => row.note !== undefined && phase.test(row.phase ?? ''))?.note ?? '';
    const figures = /^(\d+) files of .* became (\d+) of .*; (\d+) entries, (\d+) after$/.exec(note) ?? [];
    return figures.slice(1).map(Number);
  };
  const [files = 0, left] = noteOf(/^merging/);
  // The engine leaves seven tables alone; a burst in one turn adds to them.
  expect(files).toBeGreaterThan(7);
  expect(left).toBe(1);
  const [, , all = 0, one = 0] = noteOf(/tables of the same keys$/);
  expect(one).toBeLessThan(all / 5);
  const [, , entries, living = 0] = noteOf(/^tombstones/);
  expect(entries).toBe(Math.round((living * 7) / 2));
  expect(rows.map(({ phase }) => phase?.replace(/\d+/g, 'n'))).toHaveLength(8);
});
