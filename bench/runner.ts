/**
 * Runs suites in the thread it is called in: the worker for access `worker`, the page for the others.
 *
 * Invariant: the engines of a suite take turns, round by round, each round in another order: what disturbs the machine
 * meets all of them, and shows as spread between rounds instead of as a ratio. A rehearsal, not counted, comes first:
 * it warms the code up and finds how many calls must be timed as one.
 */

import { GROUP_STEPS, timerStepMs } from './clock.ts';
import { type Access, type Durability, type Engine, IN_FLIGHT } from './engine.ts';
import { type Dataset, makeDataset } from './generator.ts';
import { measure, type Round } from './measure.ts';
import { budgetMs, type Emit, type Plan } from './plan.ts';
import { makeRow, type Unit } from './rows.ts';
import { Stage } from './stage.ts';
import { storageReport } from './storage.ts';
import { makeTask } from './tasks/make.ts';
import { levelOf, SUITES, type Suite, writesOf } from './workloads.ts';

const REHEARSAL_MS = 40;
/** Share of the calls that a rehearsal makes at most. */
const REHEARSAL_PART = 0.2;
/** Calls timed as one in a rehearsal, of engines that answer at once. */
const REHEARSAL_GROUP = 64;

/** One engine's part in a suite. */
interface Runner {
  readonly engine: Engine;
  readonly durability: Durability;
  stage: Stage | undefined;
  /** Loading or running failed; the engine sits out the rest of the suite. */
  failed: boolean;
  storeVerified: boolean;
  group: number;
  readonly rounds: Round[];
}

/** How many steps of progress a run of these suites takes: rounds, and the rehearsal before them. */
export function stepsOf(plan: Plan, engines: readonly Engine[], accesses: readonly Access[]): number {
  return pairsOf(plan, accesses).reduce((steps, [suite, access]) => {
    const able = engines.filter((engine) => levelOf(engine, suite, access) !== undefined);
    return steps + able.length * (plan.rounds + 1);
  }, 0);
}

/** The suites of a plan with each of these ways in. */
function pairsOf(plan: Plan, accesses: readonly Access[]): (readonly [Suite, Access])[] {
  const chosen = SUITES.filter(({ name }) => plan.suites.includes(name));
  return chosen.flatMap((suite) =>
    accesses
      .filter((access) => plan.accesses.includes(access) && suite.accesses.includes(access))
      .map((access) => [suite, access] as const),
  );
}

/** Runs what a plan asks for, in one thread. */
export class SuiteRunner {
  readonly #plan: Plan;
  readonly #engines: readonly Engine[];
  readonly #emit: Emit;
  readonly #signal: AbortSignal;
  readonly #step_ms = timerStepMs();
  /** Loaded stages that the next suite may use again, by engine and fixture. */
  readonly #kept = new Map<string, { stage: Stage; suite: Suite }>();
  #dataset: { key: string; dataset: Dataset } | undefined;
  #done = 0;
  #stores = 0;

  constructor(plan: Plan, engines: readonly Engine[], emit: Emit, signal: AbortSignal) {
    this.#plan = plan;
    this.#engines = engines.filter(({ name }) => plan.engines.includes(name));
    this.#emit = emit;
    this.#signal = signal;
  }

  /** Runs the suites with these ways in. Stores are removed at the end, also when it is cancelled. */
  async run(accesses: readonly Access[]): Promise<void> {
    const total = stepsOf(this.#plan, this.#engines, accesses);
    try {
      for (const [suite, access] of pairsOf(this.#plan, accesses)) {
        this.#signal.throwIfAborted();
        await this.#runSuite(suite, access, total);
      }
    } finally {
      await this.#release(() => true);
    }
  }

  async #runSuite(suite: Suite, access: Access, total: number): Promise<void> {
    const fixture = this.#fixtureOf(suite);
    await this.#release((key) => !key.endsWith(`|${fixture}`));
    const dataset = this.#datasetOf(suite);
    const runners = this.#engines.flatMap((engine): Runner[] => {
      const durability = levelOf(engine, suite, access);
      if (durability === undefined) return [];
      return [{ engine, durability, stage: undefined, failed: false, storeVerified: true, group: 1, rounds: [] }];
    });
    for (let round = -1; round < this.#plan.rounds; round++) {
      // Another engine goes first in each round.
      const order = runners.map((_, i) => runners[(i + Math.max(round, 0)) % runners.length] as Runner);
      for (const runner of order) {
        this.#done++;
        if (runner.failed) continue;
        const what = round < 0 ? 'prepares' : `round ${round + 1} of ${this.#plan.rounds}`;
        const text = `${suite.name} (${access}): ${runner.engine.name} ${what}`;
        this.#emit({ type: 'progress', done: this.#done - 1, total, text });
        this.#signal.throwIfAborted();
        try {
          await this.#runRound(suite, access, dataset, runner, round);
        } catch (error) {
          this.#signal.throwIfAborted();
          runner.failed = true;
          this.#emit({
            type: 'problem',
            text: `${suite.name} (${access}) on ${runner.engine.name}: ${explain(error)}`,
          });
          await this.#drop(runner, fixture);
        }
      }
    }
    for (const runner of runners) {
      if (!runner.failed) await this.#conclude(suite, access, runner, fixture);
    }
  }

  async #runRound(suite: Suite, access: Access, dataset: Dataset, runner: Runner, round: number): Promise<void> {
    const rehearsal = round < 0;
    runner.stage ??= await this.#stageFor(suite, dataset, runner);
    const { stage, engine } = runner;
    if (suite.work.kind === 'points' && suite.work.mix === 'delete') await stage.restore();
    const together = engine.grouped !== undefined || access === 'inflight';
    const calls = this.#callsOf(suite);
    const task = makeTask(suite, stage, { access, calls, round: Math.max(round, 0) });
    const synchronous = stage.session.kind === 'sync' && suite.work.kind === 'points';
    const joined = engine.grouped ?? IN_FLIGHT;
    const group = rehearsal ? (synchronous ? REHEARSAL_GROUP : 1) : runner.group;
    const work = (): Promise<Round> =>
      measure(task, {
        group: together ? joined : group,
        budget_ms: rehearsal ? REHEARSAL_MS : budgetMs(this.#plan),
        calls_max: rehearsal ? Math.max(together ? joined : 1, Math.ceil(calls * REHEARSAL_PART)) : calls,
        together,
        signal: this.#signal,
        sample: rehearsal ? undefined : (at_ms, ops) => this.#sample(suite, access, engine, round, at_ms, ops),
      });
    let result: Round | undefined;
    if (suite.work.kind === 'open') {
      await stage.reopen(async () => {
        result = await work();
      });
    } else result = await work();
    if (result === undefined) throw new Error('A round came to nothing.');
    if (rehearsal) runner.group = together ? joined : this.#groupFor(result);
    else runner.rounds.push(result);
    if (suite.fresh) {
      // The next round begins anew, so this store must be verified now.
      if (!rehearsal) await this.#verify(suite, access, runner);
      runner.stage = undefined;
      await stage.close();
    }
  }

  #sample(suite: Suite, access: Access, engine: Engine, round: number, at_ms: number, ops: number): void {
    this.#emit({ type: 'sample', suite: suite.name, engine: engine.name, access, round, at_ms, ops });
  }

  /** How many calls last long enough for the timer. */
  #groupFor(rehearsal: Round): number {
    const call_us = rehearsal.latencies.percentiles().p50;
    return Math.max(1, Math.ceil((GROUP_STEPS * this.#step_ms * 1000) / Math.max(call_us, 0.01)));
  }

  async #conclude(suite: Suite, access: Access, runner: Runner, fixture: string): Promise<void> {
    if (runner.stage !== undefined) {
      await this.#verify(suite, access, runner);
      this.#kept.set(`${runner.engine.name}|${runner.durability}|${fixture}`, { stage: runner.stage, suite });
    }
    const { engine, durability } = runner;
    const head = {
      suite: suite.name,
      engine: engine.name,
      role: engine.role,
      access,
      durability,
      unit: unitOf(suite),
      groupSize: runner.group,
      ...(engine.version !== undefined && { engineVersion: engine.version }),
    };
    const row = makeRow(head, runner.rounds, runner.storeVerified);
    if (!row.verified && runner.storeVerified) {
      this.#emit({
        type: 'problem',
        text: `${suite.name} (${access}) on ${engine.name}: a read gave something else than was written.`,
      });
    }
    this.#emit({ type: 'row', row });
  }

  async #verify(suite: Suite, access: Access, runner: Runner): Promise<void> {
    const wrong = await runner.stage?.verify(writesOf(suite) !== undefined);
    if (wrong === undefined) return;
    runner.storeVerified = false;
    this.#emit({ type: 'problem', text: `${suite.name} (${access}) on ${runner.engine.name}: ${wrong}` });
  }

  async #stageFor(suite: Suite, dataset: Dataset, runner: Runner): Promise<Stage> {
    const key = `${runner.engine.name}|${runner.durability}|${this.#fixtureOf(suite)}`;
    const kept = this.#kept.get(key);
    if (kept !== undefined && !suite.fresh) {
      this.#kept.delete(key);
      return kept.stage;
    }
    const { engine, durability } = runner;
    const name = `bench-${engine.name}-${this.#stores++}`;
    return Stage.open({ engine, name, dataset, durability, load: suite.load });
  }

  /** Closes the kept stages that no suite will use again. */
  async #release(which: (key: string) => boolean): Promise<void> {
    for (const [key, { stage, suite }] of this.#kept) {
      if (!which(key)) continue;
      this.#kept.delete(key);
      const storage = await storageReport(stage, suite);
      if (storage !== undefined) this.#emit({ type: 'storage', storage });
    }
  }

  /** Lets go of the stage of an engine that failed, as well as it can be. */
  async #drop(runner: Runner, fixture: string): Promise<void> {
    const { stage } = runner;
    runner.stage = undefined;
    this.#kept.delete(`${runner.engine.name}|${runner.durability}|${fixture}`);
    await stage?.close().catch((error: unknown) => {
      this.#emit({ type: 'problem', text: `${runner.engine.name} could not be closed: ${explain(error)}` });
    });
  }

  /** Suites with the same fixture use the same stage, one after the other. */
  #fixtureOf(suite: Suite): string {
    return `${suite.load} ${this.#datasetKey(suite)}`;
  }

  #datasetKey(suite: Suite): string {
    return `${suite.keys} ${this.#entriesOf(suite)} ${suite.valueBytes}`;
  }

  #datasetOf(suite: Suite): Dataset {
    const key = this.#datasetKey(suite);
    if (this.#dataset?.key !== key) {
      this.#dataset = { key, dataset: makeDataset(suite.keys, this.#entriesOf(suite), suite.valueBytes) };
    }
    return this.#dataset.dataset;
  }

  #callsOf(suite: Suite): number {
    const { custom, mode, scale } = this.#plan;
    if (suite.work.kind === 'scan' || suite.work.kind === 'open') return suite.calls[mode];
    if (custom.calls === undefined) return scaled(suite.calls[mode], scale);
    return suite.work.kind === 'batches' ? Math.ceil(custom.calls / suite.work.size) : custom.calls;
  }

  #entriesOf(suite: Suite): number {
    const { custom, mode, scale } = this.#plan;
    return custom.entries ?? (suite.fresh ? custom.calls : undefined) ?? scaled(suite.entries[mode], scale);
  }
}

/** A count by the factor of the plan, never nothing. */
function scaled(count: number, scale: number): number {
  return Math.max(1, Math.round(count * scale));
}

function unitOf({ work }: Suite): Unit {
  if (work.kind === 'ranges') return 'ranges';
  return work.kind === 'batches' || work.kind === 'scan' ? 'entries' : 'ops';
}

function explain(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}
