/**
 * Runs suites in the thread it is called in: the worker for access `worker`, the page for the others.
 *
 * Invariant: the engines of a suite take turns, round by round, each round in another order: what disturbs the machine
 * meets all of them, and shows as spread between rounds instead of as a ratio. A rehearsal, not counted, comes first:
 * it warms the code up and finds how many calls must be timed as one.
 */

import { GROUP_STEPS, timerStepMs } from './clock.ts';
import { type Access, type Durability, type Engine, IN_FLIGHT } from './engine.ts';
import { bytes } from './figures.ts';
import { KEY_CHARS } from './generator.ts';
import { measure, type Round } from './measure.ts';
import { type Memory, memoryOf } from './memory.ts';
import { budgetMs, type Emit, type Plan } from './plan.ts';
import { makeRow, type Row, type Unit } from './rows.ts';
import { SPECIALS, type SpecialContext } from './special.ts';
import type { Stage } from './stage.ts';
import { Stages } from './stages.ts';
import { amplificationOf } from './storage.ts';
import { type Tailored, tailored } from './tailor.ts';
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
  memory: Memory | undefined;
  readonly rounds: Round[];
}

/** How many steps of progress a run of these suites takes: rounds, and the rehearsal before them. */
export function stepsOf(plan: Plan, engines: readonly Engine[], accesses: readonly Access[]): number {
  const loops = pairsOf(plan, accesses).reduce((steps, [{ suite }, access]) => {
    return steps + ableOf(plan, engines, suite, access).length * (plan.rounds + 1);
  }, 0);
  return specialsOf(plan, accesses).reduce(
    (steps, [special, access]) => steps + special.steps(plan, engines, access),
    loops,
  );
}

/** The suites of a plan, as it wants them, with each of these ways in. */
function pairsOf(plan: Plan, accesses: readonly Access[]): (readonly [Tailored, Access])[] {
  const chosen = SUITES.filter(({ name }) => plan.suites.includes(name)).map((suite) => tailored(suite, plan));
  return chosen.flatMap((one) => waysOf(plan, accesses, one.suite).map((access) => [one, access] as const));
}

function specialsOf(plan: Plan, accesses: readonly Access[]): (readonly [(typeof SPECIALS)[number], Access])[] {
  const chosen = SPECIALS.filter(({ name }) => plan.suites.includes(name));
  return chosen.flatMap((special) => waysOf(plan, accesses, special).map((access) => [special, access] as const));
}

function waysOf(plan: Plan, accesses: readonly Access[], suite: Pick<Suite, 'accesses'>): Access[] {
  return accesses.filter((access) => plan.accesses.includes(access) && suite.accesses.includes(access));
}

/** The engines that can run the suite, with their levels. */
function ableOf(plan: Plan, engines: readonly Engine[], suite: Suite, access: Access): [Engine, Durability][] {
  return engines.flatMap((engine): [Engine, Durability][] => {
    if (!isWhereAsked(plan, engine, suite)) return [];
    const durability = levelOf(engine, suite, access);
    return durability === undefined ? [] : [[engine, durability]];
  });
}

/** Whether the plan's choice of Varve's storage leaves this engine something to run on. */
function isWhereAsked({ custom: { storage } }: Plan, { role, name, accesses }: Engine, suite: Suite): boolean {
  if (storage === undefined || role !== 'varve') return true;
  // A store in memory is gone when it closes, so there is nothing to open.
  if (storage === 'memory' && suite.work.kind === 'open') return false;
  // Engines with the name of a storage are of that one; the synchronous API has no storage that answers later.
  if (name.endsWith('indexeddb')) return storage === 'indexeddb';
  return storage !== 'indexeddb' || accesses.includes('page');
}

/** Runs what a plan asks for, in one thread. */
export class SuiteRunner {
  readonly #plan: Plan;
  readonly #engines: readonly Engine[];
  readonly #emit: Emit;
  readonly #signal: AbortSignal;
  readonly #step_ms = timerStepMs();
  readonly #stages: Stages;
  readonly #started = performance.now();
  #done = 0;

  constructor(plan: Plan, engines: readonly Engine[], emit: Emit, signal: AbortSignal) {
    this.#plan = plan;
    this.#engines = engines.filter(({ name }) => plan.engines.includes(name));
    this.#emit = emit;
    this.#signal = signal;
    this.#stages = new Stages(plan, emit);
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
      await this.#stages.release();
    }
    for (const [special, access] of specialsOf(this.#plan, accesses)) {
      this.#signal.throwIfAborted();
      await this.#runSpecial(special, access, total);
    }
  }

  async #runSpecial(special: (typeof SPECIALS)[number], access: Access, total: number): Promise<void> {
    const before = this.#done;
    const context: SpecialContext = {
      plan: this.#plan,
      engines: this.#engines,
      access,
      emit: this.#emit,
      signal: this.#signal,
      step: (text) => {
        this.#signal.throwIfAborted();
        this.#emit({ type: 'progress', done: Math.min(this.#done++, total), total, text: `${special.name}: ${text}` });
      },
    };
    if (special.steps(this.#plan, this.#engines, access) === 0) return;
    try {
      await special.run(context);
    } catch (error) {
      this.#signal.throwIfAborted();
      this.#emit({ type: 'problem', text: `${special.name} (${access}): ${explain(error)}` });
    }
    this.#done = before + special.steps(this.#plan, this.#engines, access);
  }

  async #runSuite(one: Tailored, access: Access, total: number): Promise<void> {
    const { suite } = one;
    const { rounds } = this.#plan;
    await this.#stages.prepare(one);
    const able = ableOf(this.#plan, this.#engines, suite, access).filter(([engine]) => this.#fits(one, access, engine));
    const runners = able.map(([engine, durability]): Runner => {
      const fresh = { stage: undefined, failed: false, storeVerified: true, group: 1, memory: undefined };
      return { engine, durability, ...fresh, rounds: [] };
    });
    for (let round = -1; round < rounds; round++) {
      // Another engine goes first in each round.
      const order = runners.map((_, i) => runners[(i + Math.max(round, 0)) % runners.length] as Runner);
      for (const runner of order) {
        this.#done++;
        if (runner.failed) continue;
        const what = round < 0 ? 'prepares' : `round ${round + 1} of ${rounds}`;
        const text = `${titleOf(suite, access)}: ${runner.engine.name} ${what}`;
        const tell = (more: string): void => {
          this.#emit({ type: 'progress', done: this.#done - 1, total, text: text + more });
          this.#signal.throwIfAborted();
        };
        tell('');
        try {
          await this.#runRound(one, access, runner, round, (percent) => tell(`, ${percent} % loaded`));
        } catch (error) {
          this.#signal.throwIfAborted();
          runner.failed = true;
          this.#problem(suite, access, runner, explain(error));
          await this.#drop(runner, one);
        }
      }
    }
    for (const runner of runners) {
      if (!runner.failed) await this.#conclude(one, access, runner);
    }
  }

  async #runRound(
    one: Tailored,
    access: Access,
    runner: Runner,
    round: number,
    loading: (percent: number) => void,
  ): Promise<void> {
    const rehearsal = round < 0;
    const { suite, calls } = one;
    runner.stage ??= await this.#stages.take(one, runner.engine, runner.durability, loading);
    const { stage, engine } = runner;
    if (suite.work.kind === 'points' && suite.work.mix === 'delete') await stage.restore();
    const together = engine.grouped !== undefined || access === 'inflight';
    const task = makeTask(suite, stage, { access, calls, round: Math.max(round, 0), seed: this.#plan.seed });
    const synchronous = stage.session.kind === 'sync' && suite.work.kind === 'points';
    const joined = this.#joined(runner);
    const group = rehearsal ? (synchronous ? REHEARSAL_GROUP : 1) : runner.group;
    const work = (): Promise<Round> =>
      measure(task, {
        group: together ? joined : group,
        budget_ms: rehearsal ? REHEARSAL_MS : budgetMs(this.#plan),
        calls_max: rehearsal ? Math.max(together ? joined : 1, Math.ceil(calls * REHEARSAL_PART)) : calls,
        together,
        signal: this.#signal,
        sample: rehearsal ? undefined : (at_ms, ops) => this.#sample(suite, access, runner, round, at_ms, ops),
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
    if (round === this.#plan.rounds - 1) runner.memory = await memoryOf(stage.session);
    if (suite.fresh) {
      // The next round begins anew, so this store must be verified now.
      if (!rehearsal) await this.#verify(suite, access, runner);
      if (await stage.clear()) return;
      runner.stage = undefined;
      await stage.close();
    }
  }

  /** Calls that are under way together: an engine's own group, or as many as the plan says. */
  #joined({ engine }: Runner): number {
    return engine.grouped ?? this.#plan.custom.threads ?? IN_FLIGHT;
  }

  /** Tells throughput, and how a store of Varve's is doing; a session that answers at once is not waited for. */
  #sample(
    suite: Suite,
    access: Access,
    { engine, stage }: Runner,
    round: number,
    at_ms: number,
    ops: number,
  ): void | Promise<void> {
    this.#emit({ type: 'sample', suite: suite.name, engine: engine.name, access, round, at_ms, ops });
    if (stage === undefined || engine.role !== 'varve' || stage.session.report === undefined) return;
    const told = stage.session.report().then(
      (stats) => {
        const amplification = amplificationOf(stats, stage);
        const now_ms = performance.now() - this.#started;
        this.#emit({ type: 'amplification', engine: engine.name, at_ms: now_ms, ...amplification });
      },
      // A store that ended meanwhile tells nothing: the calls of the round say what is wrong with it.
      () => undefined,
    );
    return stage.session.kind === 'async' ? told : undefined;
  }

  /** How many calls last long enough for the timer. */
  #groupFor(rehearsal: Round): number {
    const call_us = rehearsal.latencies.percentiles().p50;
    return Math.max(1, Math.ceil((GROUP_STEPS * this.#step_ms * 1000) / Math.max(call_us, 0.01)));
  }

  async #conclude(one: Tailored, access: Access, runner: Runner): Promise<void> {
    const { suite } = one;
    const { engine, durability, memory } = runner;
    if (runner.stage !== undefined) {
      await this.#verify(suite, access, runner);
      this.#stages.keep(one, runner.stage);
    }
    const head = {
      suite: suite.name,
      engine: engine.name,
      role: engine.role,
      access,
      durability,
      unit: unitOf(suite),
      groupSize: runner.group,
      ...(suite.phase !== undefined && { phase: suite.phase }),
      ...(suite.work.kind === 'open' && { note: `${one.entries} keys` }),
      ...(memory !== undefined && { memory }),
      ...(engine.version !== undefined && { engineVersion: engine.version }),
    };
    const row: Row = makeRow(head, runner.rounds, runner.storeVerified);
    if (!row.verified && runner.storeVerified) {
      this.#problem(suite, access, runner, 'a read gave something else than was written.');
    }
    this.#emit({ type: 'row', row });
  }

  async #verify(suite: Suite, access: Access, runner: Runner): Promise<void> {
    const wrong = await runner.stage?.verify(writesOf(suite) !== undefined);
    if (wrong === undefined) return;
    runner.storeVerified = false;
    this.#problem(suite, access, runner, wrong);
  }

  /** Lets go of the stage of an engine that failed, as well as it can be. */
  async #drop(runner: Runner, one: Tailored): Promise<void> {
    const { stage } = runner;
    runner.stage = undefined;
    this.#stages.forget(one, runner.engine, runner.durability);
    await stage?.close().catch((error: unknown) => {
      this.#emit({ type: 'problem', text: `${runner.engine.name} could not be closed: ${explain(error)}` });
    });
  }

  /** Whether the engine has room for the entries of a suite; tells when it sits the suite out for want of it. */
  #fits(one: Tailored, access: Access, { name, bytesMax = Number.POSITIVE_INFINITY }: Engine): boolean {
    const { suite, entries, reserve, keyBytes = KEY_CHARS } = one;
    const needed = (entries + reserve) * (keyBytes + suite.valueBytes);
    if (needed <= bytesMax) return true;
    const room = `it has room for ${bytes(bytesMax)}, and the entries have ${bytes(needed)}`;
    this.#emit({ type: 'note', text: `${titleOf(suite, access)} is without ${name}: ${room}.` });
    return false;
  }

  #problem(suite: Suite, access: Access, { engine }: Runner, text: string): void {
    this.#emit({ type: 'problem', text: `${titleOf(suite, access)} on ${engine.name}: ${text}` });
  }
}

function titleOf({ name, phase }: Suite, access: Access): string {
  return `${name}${phase === undefined ? '' : `, ${phase}`} (${access})`;
}

function unitOf({ work }: Suite): Unit {
  if (work.kind === 'ranges') return 'ranges';
  return work.kind === 'batches' || work.kind === 'scan' || work.kind === 'reads' ? 'entries' : 'ops';
}

function explain(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}
