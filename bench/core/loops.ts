/**
 * Suites that are a loop of one kind of call: what such a suite is, which engines can run it, and how its rounds go.
 *
 * Invariant: a loop is data. The engines of a suite take turns, round by round, each round in another order: what disturbs
 * the machine meets all of them, and shows as spread between rounds instead of as a ratio. A rehearsal, not counted, comes
 * first: it warms the code up and finds how many calls must be timed as one.
 */

import { now, timerStepMs, turn } from './clock.ts';
import { type Ability, type Access, type Durability, type Engine, IN_FLIGHT, type Place } from './engine.ts';
import { rate } from './figures.ts';
import type { KeyKind } from './generator.ts';
import { groupFor, measure, type Round } from './measure.ts';
import { budgetMs, type Plan } from './plan.ts';
import { caseName, type Row } from './row.ts';
import type { Fixture, Stage } from './stage.ts';
import { type Context, type Count, explain, register, report, type Suite } from './suite.ts';
import { makeTask } from './tasks/make.ts';
import type { Task } from './tasks/task.ts';
import type { Work } from './work.ts';

const REHEARSAL_MS = 40;
const FILLING_MS = 1000;
const SAID_MS = 1000;
const REHEARSAL_PART = 0.2;
/** Calls timed as one in a rehearsal, of engines that answer at once. */
const REHEARSAL_GROUP = 64;
/** Groups of a mix are so many times as large: each has reads and writes that both last long enough for the timer. */
const MIX_GROUPS = 4;

export interface Loop {
  readonly accesses: readonly Access[];
  readonly durability: Durability;
  readonly keys: KeyKind;
  readonly valueBytes: number;
  readonly load: 'nothing' | Place;
  readonly fresh: boolean;
  readonly entries: Count;
  readonly calls: Count;
  readonly work: Work;
  /** Keys of the dataset that are not loaded: there is room for so many inserts. */
  readonly reserve?: Count;
  readonly phase?: string;
  readonly storage?: Fixture['storage'];
  readonly cache?: Fixture['cache'];
  readonly note?: string;
  /** Characters of a string key. Default: as the generator makes them. */
  readonly keyBytes?: number | undefined;
  /** A round makes all its calls, however long they take. */
  readonly whole?: true;
  /** The store is closed and opened before each round. */
  readonly reopened?: true;
  readonly beside?: Beside;
}

/** Something that goes on beside the calls of a round, such as another tab. It leaves the content of the store as it is. */
export interface Beside {
  can(engine: Engine): boolean;
  begin(stage: Stage): Promise<() => Promise<void>>;
}

type About = Pick<Suite, 'name' | 'title' | 'quick' | 'asked'>;

export function registerLoops(about: About, ...loops: readonly Loop[]): void {
  const withAccess = (access: Access): readonly Loop[] => loops.filter(({ accesses }) => accesses.includes(access));
  register({
    ...about,
    accesses: [...new Set(loops.flatMap(({ accesses }) => accesses))],
    steps: (plan, engines, access) =>
      withAccess(access).reduce((steps, loop) => {
        return steps + ableOf(engines, tailored(loop, plan), access).length * (plan.rounds + 1);
      }, 0),
    run: async (context) => {
      for (const loop of withAccess(context.access)) {
        await new LoopRun(context, about.name, tailored(loop, context.plan)).run();
      }
    },
  });
}

/** A loop as a plan wants it: its counts by mode and scale, and what the plan sets in place of the loop's own. */
interface Tailored extends Omit<Loop, 'entries' | 'calls' | 'reserve' | 'keyBytes'>, Omit<Fixture, 'suite'> {
  readonly calls: number;
}

/** The loop with the options of the plan in place of its own. An option that the plan does not have keeps the loop's value. */
export function tailored(loop: Loop, plan: Plan): Tailored {
  const { custom, mode, scale } = plan;
  const scaled = (count: Count): number => Math.max(1, Math.round(count[mode] * scale));
  // Counts of calls alone also bound what suites write into new stores, so that their loads stay as small.
  const fewer = loop.fresh ? custom.calls : undefined;
  return {
    ...loop,
    work: workOf(loop.work, plan),
    valueBytes: custom.valueBytes ?? loop.valueBytes,
    durability: loop.phase === undefined ? (custom.durability ?? loop.durability) : loop.durability,
    entries: custom.entries ?? fewer ?? scaled(loop.entries),
    reserve: loop.reserve === undefined ? 0 : scaled(loop.reserve),
    calls: callsOf(loop, plan, scaled),
    keyBytes: loop.keyBytes,
  };
}

function callsOf({ work, calls, entries }: Loop, { custom, mode }: Plan, scaled: (count: Count) => number): number {
  // Each call of a scan and of an opening is long: they are as many as they are.
  if (work.kind === 'scan' || work.kind === 'open') return calls[mode];
  // A loop that has a call for each entry keeps that.
  const chosen = custom.calls ?? (calls === entries ? custom.entries : undefined);
  if (chosen === undefined) return scaled(calls);
  return work.kind === 'batches' || work.kind === 'reads' ? Math.ceil(chosen / work.size) : chosen;
}

function workOf(work: Work, { custom: { distribution, readRatio } }: Plan): Work {
  if (work.kind !== 'points') return work;
  const { mix } = work;
  const reads = typeof mix === 'object' && readRatio !== undefined ? { ...mix, reads: readRatio } : mix;
  return { ...work, order: distribution ?? work.order, mix: reads };
}

type Kind = Pick<Loop, 'work' | 'load' | 'keys' | 'accesses' | 'durability' | 'reopened'>;

function needsOf({ work, load, keys, reopened }: Kind): readonly Ability[] {
  // Loading is not measured: it asks for no call that puts many entries at once.
  const needs: Ability[] = load === 'nothing' ? [] : ['set'];
  if (keys === 'tuple') needs.push('tuple');
  if (work.kind === 'batches') needs.push('batch');
  if (work.kind === 'ranges' || work.kind === 'scan') needs.push('range');
  if (work.kind === 'open') needs.push('open', 'get');
  if (work.kind === 'reads') needs.push('get');
  if (reopened) needs.push('open');
  if (work.kind === 'transactions') needs.push('transaction');
  if (work.kind === 'points') needs.push(typeof work.mix === 'object' ? 'mixed' : work.mix);
  if (scansOf(work)) needs.push('range');
  return needs;
}

const scansOf = (work: Work): boolean => work.kind === 'points' && typeof work.mix === 'object' && !!work.mix.scans;

function writesOf(work: Work): 'points' | 'batches' | undefined {
  if (work.kind === 'batches') return 'batches';
  if (work.kind === 'transactions') return 'points';
  return work.kind === 'points' && work.mix !== 'get' && work.mix !== 'miss' ? 'points' : undefined;
}

/** The level at which the engine runs the loop, or undefined when it cannot run it. */
function levelOf(engine: Engine, loop: Kind, access: Access): Durability | undefined {
  const { work, durability } = loop;
  if (!loop.accesses.includes(access) || !engine.accesses.includes(access)) return undefined;
  if (!needsOf(loop).every((ability) => engine.abilities.includes(ability))) return undefined;
  if (engine.echo && !['points', 'batches', 'open'].includes(work.kind)) return undefined;
  // A floor sorts its keys once, when it is loaded: it has no ranges over what was inserted since.
  if (engine.role === 'floor' && scansOf(work)) return undefined;
  const writes = writesOf(work);
  const parts = { opens: work.kind === 'open', writes: writes !== undefined, 'point writes': writes === 'points' };
  if (engine.only !== undefined && !parts[engine.only]) return undefined;
  if (engine.durabilities.includes(durability)) return durability;
  return engine.durabilities.includes('memory') && durability !== 'strict' ? 'memory' : undefined;
}

function ableOf(engines: readonly Engine[], loop: Tailored, access: Access): [Engine, Durability][] {
  return engines.flatMap((engine): [Engine, Durability][] => {
    // Varve's engines with the name of a storage are of that one.
    if (loop.storage !== undefined && engine.name.endsWith('indexeddb')) return [];
    if (loop.beside?.can(engine) === false) return [];
    const durability = levelOf(engine, loop, access);
    return durability === undefined ? [] : [[engine, durability]];
  });
}

interface Runner {
  readonly engine: Engine;
  readonly durability: Durability;
  readonly rounds: Round[];
  stage?: Stage | undefined;
  failed?: boolean;
  wrong?: string | undefined;
  group?: number;
}

class LoopRun {
  readonly #fixture: Fixture;
  readonly #title: string;
  readonly #stepMs = timerStepMs();

  constructor(
    private readonly context: Context,
    private readonly suite: string,
    private readonly loop: Tailored,
  ) {
    this.#fixture = { ...loop, suite };
    this.#title = caseName({ suite, ...loop, access: context.place });
  }

  async run(): Promise<void> {
    const { plan, engines, access, stages, step, signal } = this.context;
    await stages.prepare(this.#fixture);
    const able = ableOf(engines, this.loop, access);
    const runners = able.map(([engine, durability]): Runner => ({ engine, durability, rounds: [] }));
    for (let round = -1; round < plan.rounds; round++) {
      // Another engine goes first in each round.
      for (const runner of rotated(runners, Math.max(round, 0))) {
        if (runner.failed) continue;
        const when = round < 0 ? 'prepares' : `round ${round + 1} of ${plan.rounds}`;
        const text = `${this.#title}: ${runner.engine.name} ${when}`;
        step(text);
        try {
          await this.#round(runner, round, text);
        } catch (error) {
          signal.throwIfAborted();
          runner.failed = true;
          this.#problem(runner, explain(error));
          await this.#drop(runner);
        }
      }
    }
    for (const runner of runners) if (!runner.failed) await this.#conclude(runner);
  }

  async #round(runner: Runner, round: number, text: string): Promise<void> {
    const { plan, access, stages, signal, say } = this.context;
    const { work, calls, fresh, reserve, whole, reopened, beside, cache } = this.loop;
    const isRehearsal = round < 0;
    const loading = (percent: number): void => say(`${text}, ${percent} % loaded`);
    runner.stage ??= await stages.take(this.#fixture, runner.engine, runner.durability, loading);
    const { stage, engine } = runner;
    if (work.kind === 'points' && work.mix === 'delete') await stage.restore();
    if (reopened) await stage.reopen(turn);
    const choice = { access, calls, round: Math.max(round, 0), seed: plan.seed, hasReserve: reserve > 0 };
    const together = engine.grouped !== undefined || access === 'inflight';
    const joined = engine.grouped ?? IN_FLIGHT;
    const answersAtOnce = stage.session.kind === 'sync' && work.kind === 'points';
    const group = runner.group ?? (answersAtOnce ? REHEARSAL_GROUP : 1);
    // A floor makes its calls as they were drawn.
    const isApart = !together && engine.role !== 'floor';
    const task = makeTask(work, stage, { ...choice, group: isApart ? group : undefined });
    const rehearsalMs = cache ? FILLING_MS : REHEARSAL_MS;
    const longestMs = whole ? Number.POSITIVE_INFINITY : budgetMs(plan);
    let saidMs = now();
    const progress = async (): Promise<void> => {
      if (now() - saidMs < SAID_MS) return;
      saidMs = now();
      say(`${text}, ${rate(task.tally.ops)} done`);
    };
    const timed = (): Promise<Round> =>
      measure(task, {
        group: together ? joined : group,
        budgetMs: isRehearsal ? rehearsalMs : longestMs,
        callsMax: isRehearsal ? Math.max(together ? joined : 1, Math.ceil(calls * REHEARSAL_PART)) : calls,
        together,
        signal,
        sample: whole && progress,
      });
    const end = await beside?.begin(stage);
    const made = work.kind === 'open' ? stage.reopen(timed) : timed();
    const result = await made.finally(end);
    if (isRehearsal) runner.group = together ? joined : this.#groupFor(task, result);
    else runner.rounds.push(result);
    if (!fresh) return;
    // The next round begins anew, so this store must be verified now.
    if (!isRehearsal) await this.#verify(runner);
    runner.stage = undefined;
    await stage.close();
  }

  /** Calls that are timed as one. Of a mix more: its reads and its writes are timed apart. */
  #groupFor({ isRead }: Task, { latencies }: Round): number {
    const group = groupFor(latencies, this.#stepMs);
    return isRead && group > 1 ? group * MIX_GROUPS : group;
  }

  async #conclude(runner: Runner): Promise<void> {
    const { phase, work, entries, note = work.kind === 'open' ? `${entries} keys` : undefined } = this.loop;
    const { engine, durability, stage, group = 1, rounds } = runner;
    if (stage !== undefined) {
      await this.#verify(runner);
      this.context.stages.keep(this.#fixture, stage);
    }
    const optional = { ...(phase && { phase }), ...(note && { note }) };
    const head = { suite: this.suite, durability, unit: unitOf(work), groupSize: group, ...optional };
    report(this.context, engine, head, rounds, runner.wrong);
  }

  async #verify(runner: Runner): Promise<void> {
    runner.wrong ??= await runner.stage?.verify(writesOf(this.loop.work) !== undefined);
  }

  async #drop(runner: Runner): Promise<void> {
    const { stage } = runner;
    runner.stage = undefined;
    await stage?.close().catch((error: unknown) => this.#problem(runner, `it could not be closed: ${explain(error)}`));
  }

  #problem({ engine }: Runner, text: string): void {
    this.context.emit({ type: 'problem', text: `${this.#title} on ${engine.name}: ${text}` });
  }
}

export function rotated<T>(list: readonly T[], by: number): T[] {
  const first = list.length === 0 ? 0 : by % list.length;
  return [...list.slice(first), ...list.slice(0, first)];
}

function unitOf({ kind }: Work): Row['unit'] {
  if (kind === 'ranges') return 'ranges';
  return kind === 'batches' || kind === 'scan' || kind === 'reads' ? 'entries' : 'ops';
}
