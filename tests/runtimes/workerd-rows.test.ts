// The cost of opening in a real workerd, counted as the platform bills it, and as README and docs/benchmarks.md state it.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import type { TestStore } from './fixtures/object-worker.ts';
import { bundleWorker, Workerd } from './support/workerd.ts';

const folder = mkdtempSync(join(tmpdir(), 'varve-workerd-rows-'));
const script = await bundleWorker('object-worker.ts');
let workerd: Workerd | undefined;

/** Constructs the object in a new process; returns it and the number of rows that this wrote. */
async function construct(): Promise<{ store: TestStore; rows: number }> {
  await workerd?.stop();
  workerd = new Workerd({ script, folder });
  const store = await workerd.object<TestStore>('one');
  return { store, rows: (await store.state()).rows };
}

afterAll(async () => {
  await workerd?.stop();
  rmSync(folder, { recursive: true, force: true });
});

test('opening costs 5 rows the first time, 4 where there is a log to replay, else 2', async () => {
  const made = await construct();
  expect(made.rows).toBeGreaterThan(0);
  expect(made.rows).toBeLessThanOrEqual(5);
  await made.store.run([['set', 'a', 1]]);
  const written = await construct();
  expect(written.rows).toBeLessThanOrEqual(4);
  const idle = await construct();
  expect(idle.rows).toBeLessThanOrEqual(2);
  for (let round = 0; round < 4; round++) await idle.store.fill(10_000, 300, 500, round);
  await expect.poll(() => idle.store.isAtRest(), { timeout: 30_000 }).toBe(true);
  expect((await idle.store.state()).tables).toBeGreaterThan(1);
  // Opening may turn the log into a table, and that may make a merge due. The merge is no part of the opening.
  const { store } = await construct();
  await expect.poll(() => store.isAtRest(), { timeout: 30_000 }).toBe(true);
  await store.run([['set', 0, 'again']]);
  expect((await construct()).rows).toBeLessThanOrEqual(4);
  expect((await construct()).rows).toBeLessThanOrEqual(2);
});
