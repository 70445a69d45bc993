// A process writes a store in files and is killed with SIGKILL at any point, again and again. Acknowledged writes are there, and the store
// is a prefix of history. Rounds alternate between `varve` and `varve/synchronous`. Some processes are killed while they recover.
// `VARVE_KILL_ROUNDS` sets the number of rounds, `VARVE_SEED` their choices, `VARVE_RUNTIME` the runtime.

import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, test } from 'vitest';
import { bundleProgram, RUNTIMES } from '../support/runtimes.ts';
import { numberFrom, runSeed } from '../support/seed.ts';
import { KillLoop } from './support/kill-loop.ts';

const ROUNDS = numberFrom('VARVE_KILL_ROUNDS', 4);
/** Time for a round: a process start, reading some thousand entries, writing for less than a second. */
const ROUND_MS = 20_000;

const seed = runSeed('runtimes', 'kill');
let parent: string;
let program: string;

beforeAll(async () => {
  parent = mkdtempSync(join(tmpdir(), 'varve-kill-'));
  program = await bundleProgram('kill.ts');
});

afterAll(() => rmSync(parent, { recursive: true, force: true }));

test.each(RUNTIMES)(
  'on $name, acknowledged writes survive a kill of the process, and the store has a prefix of history',
  async (runtime) => {
    const directory = join(parent, runtime.name);
    mkdirSync(directory);
    await new KillLoop({ runtime, program, directory, seed, apis: ['varve', 'varve/synchronous'] }).run(ROUNDS);
  },
  60_000 + ROUNDS * ROUND_MS,
);
