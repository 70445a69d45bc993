// Node in mixed use for a long time, over files and over memory. Memory, handles and the objects that the engine has open stay flat. So
// does the time of calls, relative to turns of the thread. `VARVE_SOAK_MINUTES` sets the time for all four storages of the soak together
// (`npm run test:soak`), `VARVE_SEED` the data.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { growthOf, type Lap, lastOf } from '../support/flat.ts';
import { bundleProgram, type Runtime, start } from '../support/runtimes.ts';
import { numberFrom, runSeed } from '../support/seed.ts';
import { FORGOTTEN, OPENS, type SoakPlan } from '../support/soak.ts';

const MINUTES = numberFrom('VARVE_SOAK_MINUTES', 1);
/** A quarter of the time, and of the openings: 2,000 in ten minutes. */
const MS = (MINUTES * 60_000) / 4;
const OPENINGS = (MINUTES * 200) / 4;
/** A lap takes a second or so, more on a busy machine. */
const TIMEOUT = 600_000 + 10 * MS + 2000 * OPENINGS;

const node: Runtime = { name: 'node', command: process.execPath, arguments: () => ['--expose-gc'] };
const seed = runSeed('runtimes', 'soak');
let parent: string;
let program: string;

beforeAll(async () => {
  parent = mkdtempSync(join(tmpdir(), 'varve-soak-'));
  program = await bundleProgram('soak.ts');
});

afterAll(() => rmSync(parent, { recursive: true, force: true }));

interface Time {
  readonly ms: number;
  readonly opens: number;
}

async function soak(storage: 'files' | 'memory', time: Time, plan: SoakPlan): Promise<Lap[]> {
  const directory = mkdtempSync(join(parent, storage));
  const running = start(node, program, directory, { storage, ...time, ...plan });
  const { code, errors } = await running.ended;
  if (code !== 0 || !running.lines.includes('ended')) throw new Error(`The soak ended with ${code}: ${errors}`);
  return running.lines
    .filter((line) => line.startsWith('lap '))
    .map((line) => JSON.parse(line.slice('lap '.length)) as Lap);
}

test.for(['files', 'memory'] as const)('a soak over %s stays flat', { timeout: TIMEOUT }, async (storage) => {
  const laps = await soak(storage, { ms: MS, opens: OPENINGS }, { seed });
  console.log(`${storage}: ${laps.length} laps, ${laps.length * OPENS} openings; at the end ${lastOf(laps)}`);
  expect(growthOf(laps)).toEqual([]);
});

test.for(FORGOTTEN)('a soak that keeps %s does not stay flat', { timeout: 600_000 }, async (leak) => {
  const laps = await soak('memory', { ms: 0, opens: 0 }, { seed, leak });
  expect(growthOf(laps).join('; ')).toContain(`forgotten ${leak}`);
});

test('a soak that leaves stores open does not stay flat', { timeout: 600_000 }, async () => {
  const laps = await soak('files', { ms: 0, opens: 0 }, { seed, leak: 'closing' });
  expect(growthOf(laps).join('; ')).toContain('openFiles');
});
