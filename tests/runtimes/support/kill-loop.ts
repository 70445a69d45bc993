// The kill loop of one runtime. A process writes a history until it is killed with SIGKILL at any point. The next process reads what it
// left, and the test judges that.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Found, History, type Plan } from '../../support/history.ts';
import { randomFrom } from '../../support/random.ts';
import { type Runtime, start } from '../../support/runtimes.ts';

/** Times between which a process is killed, counted from when it has read its store, and from its start. */
const WRITING_MS = 700;
const RECOVERING_MS = 250;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** The program to kill. */
export interface KillPlan {
  readonly runtime: Runtime;
  /** The bundled program. */
  readonly program: string;
  /** Where its stores are. */
  readonly directory: string;
  readonly seed: number;
  /** The APIs to write through, one of them each round. */
  readonly apis: readonly string[];
}

/** The kill loop of one runtime, with its results. */
export class KillLoop {
  readonly #plan: KillPlan;
  readonly #history = new History();
  readonly #random: (below: number) => number;
  /** The writes of the last writing process, until the next one reports which of them are left. */
  #pending: { plan: Plan; acknowledged: number };

  constructor(plan: KillPlan) {
    this.#plan = plan;
    this.#random = randomFrom(plan.seed, plan.runtime.name.length);
    this.#pending = { plan: { seed: plan.seed, round: -1, sequence: 0 }, acknowledged: 0 };
  }

  /** Runs rounds until there were so many, and two that wrote: rounds that are killed before they write prove little. */
  async run(rounds: number): Promise<void> {
    let wrote = 0;
    for (let round = 0; round < rounds || wrote < 2; round++) {
      const what = await this.#round(round);
      console.log(`${this.#plan.runtime.name}, round ${round}, ${what}`);
      if (/found .*wrote [1-9]/.test(what)) wrote++;
    }
  }

  /** Starts a process, kills it, and judges what the one before it left. */
  async #round(round: number): Promise<string> {
    const { runtime, program, directory, seed, apis } = this.#plan;
    const api = apis[this.#random(apis.length)];
    const running = start(runtime, program, directory, { directory, api, seed, round });
    if (this.#random(4) === 0) await pause(this.#random(RECOVERING_MS));
    else {
      await running.line('found');
      await pause(this.#random(WRITING_MS));
    }
    running.process.kill('SIGKILL');
    const { signal, errors } = await running.ended;
    if (signal !== 'SIGKILL') throw new Error(`${api} in ${runtime.name} ended by itself: ${errors}`);
    const file = join(directory, `found-${round}.json`);
    if (!running.lines.includes('found') || !existsSync(file)) return `${api}: killed before it was open`;
    const found = JSON.parse(readFileSync(file, 'utf8')) as Found;
    const { plan, acknowledged } = this.#pending;
    const groups = this.#history.survive(plan, acknowledged, found);
    const [, count] = running.lines.findLast((line) => line.startsWith('acknowledged'))?.split(' ') ?? [];
    this.#pending = { plan: { seed, round, sequence: found.sequence }, acknowledged: Number(count ?? 0) };
    const size = this.#history.size;
    return `${api}: found ${groups} groups of ${acknowledged} acknowledged (${found.state}), ${size} entries; wrote ${count ?? 0}`;
  }
}
