// Stores in Deno KV, with the built package in the real deno and the permissions that the guide states. The database is a file that
// several processes may have open.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { bundleProgram, RUNTIMES, run, start } from '../support/runtimes.ts';
import { numberFrom, runSeed } from '../support/seed.ts';
import { KillLoop } from './support/kill-loop.ts';

const ROUNDS = numberFrom('VARVE_KILL_ROUNDS', 4);
/** Time for a round: a process start, the rest of a lease, reading some thousand entries, writing for less than a second. */
const ROUND_MS = 25_000;
const LONG_MS = 180_000;

const seed = runSeed('runtimes', 'deno-kv');
let directory: string;

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'varve-deno-kv-'));
});

afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** Deno as for files, and with KV, which is behind a flag. */
const DENO = RUNTIMES.filter(({ name }) => name === 'deno').map((runtime) => ({
  ...runtime,
  arguments: (path: string) => [...runtime.arguments(path), '--unstable-kv'],
}));

describe.each(DENO)('on $name', (deno) => {
  test('a store is written, merged, closed, opened again and checked; open, it keeps no process alive', {
    timeout: LONG_MS,
  }, async () => {
    const report = await run(deno, await bundleProgram('kv.ts'), directory);
    expect(report).toEqual({
      kind: 'deno-kv',
      first: 'new',
      state: 'clean',
      count: 8001,
      wrong: 0,
      large: 3_000_000,
      problems: [],
      hasTables: true,
      refused: 'VARVE_LOCKED',
      secret: ['VARVE_KEY', 1],
      stores: ['other', 'store'],
      gone: true,
      left: ['store'],
      flushes: expect.any(Number),
    });
  });

  test('Deno KV keeps the contract of storages', { timeout: LONG_MS }, async () => {
    const program = await bundleProgram('kv-contract.ts');
    const { clauses, failures } = await run<{ clauses: number; failures: string[] }>(deno, program, directory);
    expect(failures).toEqual([]);
    expect(clauses).toBeGreaterThan(20);
  });

  test('acknowledged writes survive a kill of the process, and the store has a prefix of history', {
    timeout: 60_000 + ROUNDS * ROUND_MS,
  }, async () => {
    const killed = join(directory, 'killed');
    mkdirSync(killed);
    const program = await bundleProgram('kv-kill.ts');
    await new KillLoop({ runtime: deno, program, directory: killed, seed, apis: ['varve'] }).run(ROUNDS);
  });

  test('another process takes the store over from a frozen one, which changes nothing when it wakes up', {
    timeout: LONG_MS,
  }, async () => {
    const program = await bundleProgram('kv-zombie.ts');
    const zombie = start(deno, program, directory, { freezes: true });
    await zombie.line('written');
    // Waits until the lease of the frozen one is over.
    expect(await run(deno, program, directory, { freezes: false })).toEqual({ keys: ['first', 'heir'] });
    writeFileSync(join(directory, 'go on'), '');
    expect(JSON.parse(await zombie.line('{'))).toEqual({ code: 'VARVE_LOCKED' });
    await zombie.ended;
    expect(await run(deno, program, directory, { freezes: false })).toEqual({ keys: ['first', 'heir'] });
  });
});
