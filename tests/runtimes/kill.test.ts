// A process that writes a store in files is killed with SIGKILL at any moment, over and over: what was acknowledged is
// there, and what is there is a prefix of history. Rounds take turns between `varve` and `varve/sync`, and some processes
// are killed while they recover. `VARVE_KILL_ROUNDS` sets how many rounds, `VARVE_SEED` which, `VARVE_RUNTIME` where.

import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, test } from 'vitest';
import { type Found, History, type Plan } from '../support/history.ts';
import { randomFrom } from '../support/random.ts';
import { numberFrom, runSeed } from '../support/seed.ts';
import { bundleProgram, RUNTIMES, type Runtime, start } from './support/runtimes.ts';

const ROUNDS = numberFrom('VARVE_KILL_ROUNDS', 4);
/** A round: a process start, reading some thousand entries, writing for less than a second. */
const ROUND_MS = 20_000;
/** Times between which a process is killed, counted from when it has read its store, and from its start. */
const WRITING_MS = 700;
const RECOVERING_MS = 250;

const seed = runSeed('runtimes', 'kill');
let directory: string;
let program: string;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'varve-kill-'));
  program = await bundleProgram('kill.ts');
});

afterAll(() => rmSync(directory, { recursive: true, force: true }));

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** What one runtime went through. */
class Loop {
  readonly #runtime: Runtime;
  readonly #history = new History();
  readonly #directory: string;
  readonly #random: (below: number) => number;
  /** What the last process that wrote was writing, until the next one tells what is left of it. */
  #pending: { plan: Plan; acknowledged: number } = { plan: { seed, round: -1, sequence: 0 }, acknowledged: 0 };

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
    this.#directory = join(directory, runtime.name);
    this.#random = randomFrom(seed, runtime.name.length);
  }

  /** Starts a process, has it killed, and judges what the one before it left. */
  async round(round: number): Promise<string> {
    const api = this.#random(2) === 0 ? 'varve' : 'varve/sync';
    const running = start(this.#runtime, program, directory, { directory: this.#directory, api, seed, round });
    if (this.#random(4) === 0) await pause(this.#random(RECOVERING_MS));
    else {
      await running.line('found');
      await pause(this.#random(WRITING_MS));
    }
    running.process.kill('SIGKILL');
    const { signal, errors } = await running.ended;
    if (signal !== 'SIGKILL') throw new Error(`${api} in ${this.#runtime.name} ended by itself: ${errors}`);
    const file = join(this.#directory, `found-${round}.json`);
    if (!running.lines.includes('found') || !existsSync(file)) return `${api}: killed before it was open`;
    const found = JSON.parse(readFileSync(file, 'utf8')) as Found;
    const { plan, acknowledged } = this.#pending;
    const groups = this.#history.survive(plan, acknowledged, found);
    const [, told] = running.lines.findLast((line) => line.startsWith('acknowledged'))?.split(' ') ?? [];
    this.#pending = { plan: { seed, round, sequence: found.sequence }, acknowledged: Number(told ?? 0) };
    const size = this.#history.size;
    return `${api}: found ${groups} groups of ${acknowledged} acknowledged (${found.state}), ${size} entries; wrote ${told ?? 0}`;
  }
}

test.each(RUNTIMES)(
  'on $name, what was acknowledged before the process was killed is there, and what is there is a prefix of history',
  async (runtime) => {
    const loop = new Loop(runtime);
    // Rounds that were killed before anything was written prove little: two that wrote there must be.
    let wrote = 0;
    for (let round = 0; round < ROUNDS || wrote < 2; round++) {
      const what = await loop.round(round);
      console.log(`${runtime.name}, round ${round}, ${what}`);
      if (/found .*wrote [1-9]/.test(what)) wrote++;
    }
  },
  60_000 + ROUNDS * ROUND_MS,
);
