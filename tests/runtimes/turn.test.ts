// One synchronous turn of any size over files. A process loads, or overwrites, without a pause. It is killed with SIGKILL in the middle of
// it. `VARVE_TURN_MEGABYTES` sets the size (2,000 with `npm run test:turn`), `VARVE_SEED` the data.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, test } from 'vitest';
import { bundleProgram, type Runtime, run, start } from '../support/runtimes.ts';
import { numberFrom, runSeed } from '../support/seed.ts';
import type { TurnFound, TurnReport } from '../support/turn.ts';
import { liveTurn, type TurnDriver, turnsOf } from '../support/turn-judge.ts';

const MEGABYTES = numberFrom('VARVE_TURN_MEGABYTES', 500);
const TIMEOUT = 120_000 + 1000 * MEGABYTES;

const node: Runtime = { name: 'node', command: process.execPath, arguments: () => [] };
const seed = runSeed('runtimes', 'turn');
let parent: string;
let program: string;

beforeAll(async () => {
  parent = mkdtempSync(join(tmpdir(), 'varve-turn-'));
  program = await bundleProgram('turn.ts');
});

afterAll(() => rmSync(parent, { recursive: true, force: true }));

/** A separate process for each turn. */
function driverIn(directory: string): TurnDriver {
  return {
    async write(plan, isEnough) {
      const running = start(node, program, directory, { ...plan, does: 'write' });
      const reports: TurnReport[] = [];
      for (;;) {
        const line = await running.lineAt(reports.length);
        const last = JSON.parse(line.slice('report '.length)) as TurnReport;
        reports.push(last);
        if (isEnough(last)) break;
      }
      running.process.kill('SIGKILL');
      await running.ended;
      return running.lines.map((line) => JSON.parse(line.slice('report '.length)) as TurnReport);
    },
    read: (plan) => run<TurnFound>(node, program, directory, { ...plan, does: 'read' }),
  };
}

test.for(turnsOf(seed, MEGABYTES))(
  '%s in one turn, killed in the middle, is there again',
  {
    timeout: TIMEOUT,
  },
  async ([name, plan]) => {
    const directory = mkdtempSync(join(parent, 'store-'));
    await liveTurn(driverIn(directory), `files, ${name}`, plan);
    rmSync(directory, { recursive: true });
  },
);
