// A short run of the HTTP benchmark against the real servers: its measurements must be right, and any fault it finds is a bug.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, onTestFinished, test } from 'vitest';
import { Runner } from '../../bench/targets/http/runner.ts';
import { RUNTIMES, type RuntimeName } from '../../bench/targets/http/server.ts';
import { CRUD, FIND, SINGLE } from '../../bench/targets/http/suites.ts';

const KEYS = 300;
/** A busy machine must not fail the test. */
const PATIENCE_MS = 180_000;

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

async function serve(runtime: RuntimeName) {
  const directory = mkdtempSync(join(tmpdir(), 'varve-http-bench-'));
  folders.push(directory);
  const options = { directory: join(directory, 'store'), durability: 'relaxed' } as const;
  const runner = await Runner.start(runtime, options, KEYS);
  const { server, store } = runner;
  onTestFinished(() => server.stop());
  return { runner, store };
}

test.each(RUNTIMES)(
  '%s: each request, and the CRUD mix, closed and open, without an error; the store has what was acknowledged',
  async (runtime) => {
    const { runner, store } = await serve(runtime);
    for (const { title, kind } of runtime === 'workerd' ? SINGLE : [...SINGLE, ...FIND]) {
      const { outcomes } = await runner.round(kind, 2, { requests: 6 });
      expect([title, outcomes]).toMatchObject([title, { requests: 6, failed: 0, problem: undefined }]);
    }
    const closed = await runner.round(CRUD, 10, { requests: 100 });
    expect(closed.outcomes).toMatchObject({ requests: 100, failed: 0, problem: undefined, tally: { wrong: 0 } });
    const open = await runner.round(CRUD, 10, { perSecond: 100, seconds: 0.5 });
    expect(open.outcomes).toMatchObject({ requests: 50, failed: 0, problem: undefined, tally: { wrong: 0 } });
    expect(await store.compare()).toBe(undefined);
  },
  PATIENCE_MS,
);

test('a server that is killed has lost nothing that it acknowledged', { timeout: PATIENCE_MS }, async () => {
  const { runner } = await serve('node');
  await runner.round(CRUD, 10, { requests: 100 });
  expect(await runner.compareAfterDeath()).toBe(undefined);
});

test('a store with other contents than acknowledged is found', async () => {
  const { store } = await serve('node');
  const count = store.ledger.count();
  await fetch(`${store.url}/kv/k000000007`, { method: 'DELETE' });
  expect(await store.compare()).toBe(`The store holds ${count - 1} of ${count} acknowledged keys.`);
});
