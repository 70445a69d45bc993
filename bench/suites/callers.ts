/**
 * Suites of several callers at once: `concurrent` (2 writers and 10 readers) and `readwhilewriting` (4 readers, 1 writer).
 *
 * Callers are loops in the page; each awaits its call before it makes the next (a closed loop). After those rounds readers
 * go on with an open loop: gets are due at fixed times, half as often as the closed loop managed, and the latency of each counts
 * from when it was due, not from when a held-up caller came to make it. So a stall counts for every call that it delays,
 * which a closed loop would leave out (coordinated omission).
 *
 * Invariant: writers have keys of their own, which readers read as well. A read must deliver one of the values that its key had
 * while the read was under way; afterwards the whole store is walked.
 */

import { now, turn } from '../core/clock.ts';
import type { AsyncSession, Durability, Engine } from '../core/engine.ts';
import { at, type Dataset, makeDataset, Random, salted, sameBytes } from '../core/generator.ts';
import { Latencies } from '../core/latency.ts';
import { rotated } from '../core/loops.ts';
import type { Round } from '../core/measure.ts';
import { budgetMs } from '../core/plan.ts';
import { headOf, makeRow, type Row } from '../core/row.ts';
import { Stage } from '../core/stage.ts';
import { type Context, register } from '../core/suite.ts';
import { emptyTally } from '../core/tasks/task.ts';

/** Who calls. */
interface Callers {
  readonly suite: string;
  readonly writers: number;
  readonly readers: number;
}

const DURABILITY: Durability = 'relaxed';
const ENTRIES = { quick: 10_000, full: 50_000 };
const VALUE_BYTES = 100;
/** How much of the closed loop's rate the open loop asks for. */
const OPEN_SHARE = 0.5;

/** The engines that can be called from the page and read what they were just given. */
function callable(engines: readonly Engine[]): Engine[] {
  return engines.filter(
    ({ accesses, abilities, durabilities, echo, only }) =>
      accesses.includes('page') &&
      durabilities.includes(DURABILITY) &&
      (['batch', 'mixed'] as const).every((ability) => abilities.includes(ability)) &&
      echo !== true &&
      only === undefined,
  );
}

/** What one engine's calls came to, in rounds. */
interface Measured {
  readonly reads: Round[];
  readonly writes: Round[];
  readonly open: Round[];
  /** Gets a second that the open loop asks for. */
  asked: number;
}

/** Runs the suite, engine by engine within each round. A plan's `threads` are the readers. */
async function runCallers(context: Context, usual: Callers): Promise<void> {
  const { plan, engines, step, emit } = context;
  const callers = { ...usual, readers: plan.custom.threads ?? usual.readers };
  const { seed, scale, custom, mode, rounds } = plan;
  const entries = custom.entries ?? Math.round(ENTRIES[mode] * scale);
  const valueBytes = custom.valueBytes ?? VALUE_BYTES;
  const dataset = makeDataset('random', entries, valueBytes, { seed, keyBytes: custom.keyBytes });
  const where = { memoryBytes: custom.memoryBytes, storage: custom.storage };
  const houses: { stage: Stage; measured: Measured }[] = [];
  try {
    for (const engine of callable(engines)) {
      step(`${engine.name} loads`);
      const name = `bench-callers-${engine.name}`;
      const choice = { engine, name, dataset, durability: DURABILITY, load: 'anywhere', seed, ...where } as const;
      houses.push({ stage: await Stage.open(choice), measured: { reads: [], writes: [], open: [], asked: 0 } });
    }
    for (let round = 0; round < rounds; round++) {
      for (const { stage, measured } of rotated(houses, round)) {
        step(`${stage.engine.name}, round ${round + 1} of ${rounds}`);
        await runRound(context, callers, stage, measured, round);
      }
    }
    for (const { stage, measured } of houses) {
      const wrong = await stage.verify(true);
      const title = `${callers.suite} (page) on ${stage.engine.name}`;
      if (wrong !== undefined) emit({ type: 'problem', text: `${title}: ${wrong}` });
      for (const row of rowsOf(callers, stage, measured, wrong === undefined)) {
        if (!row.verified && wrong === undefined) {
          emit({ type: 'problem', text: `${title}: a read gave something that was never there.` });
        }
        emit({ type: 'row', row });
      }
    }
  } finally {
    for (const { stage } of houses) await stage.close();
  }
}

async function runRound(
  { plan, signal }: Context,
  { writers, readers }: Callers,
  stage: Stage,
  measured: Measured,
  round: number,
): Promise<void> {
  const budget_ms = budgetMs(plan);
  const salt = salted(round, plan.seed);
  const closed = new Spell(stage, budget_ms, signal, salt);
  const began = now();
  await Promise.all([
    ...Array.from({ length: writers }, (_, writer) => closed.write(writer, writers)),
    ...Array.from({ length: readers }, (_, reader) => closed.read(reader)),
  ]);
  const elapsed_ms = now() - began;
  measured.reads.push(closed.reads.round(elapsed_ms));
  measured.writes.push(closed.writes.round(elapsed_ms));
  measured.asked = Math.max(1, ((closed.reads.tally.ops * 1000) / elapsed_ms) * OPEN_SHARE);
  const opened = new Spell(stage, budget_ms, signal, salt + 1);
  const from = now();
  await Promise.all([
    ...Array.from({ length: writers }, (_, writer) => opened.write(writer, writers)),
    opened.readAtRate(measured.asked),
  ]);
  measured.open.push(opened.reads.round(now() - from));
}

/** Counts the calls of one kind. */
class Count {
  readonly tally = emptyTally();
  readonly #latencies = new Latencies();

  /** A call that began, or was due, at `since`. */
  done(since: number, bytes: number): void {
    this.#latencies.add((now() - since) * 1000);
    this.tally.ops++;
    this.tally.bytes += bytes;
  }

  round(elapsed_ms: number): Round {
    const { tally } = this;
    return { tally, elapsed_ms, latencies: this.#latencies, timeline: [[elapsed_ms, tally.ops]] };
  }
}

/** Some time in which callers call one store. */
class Spell {
  readonly reads = new Count();
  readonly writes = new Count();
  readonly #stage: Stage;
  readonly #session: AsyncSession;
  readonly #dataset: Dataset;
  readonly #end: number;
  readonly #signal: AbortSignal;
  readonly #salt: number;
  /** Of each key that was set: what it held before, then the values that it was given, and how many of them it surely has. */
  readonly #histories = new Map<number, { values: number[]; done: number }>();

  constructor(stage: Stage, budget_ms: number, signal: AbortSignal, salt: number) {
    if (stage.session.kind !== 'async') throw new Error('Callers of the page need a session that answers later.');
    this.#stage = stage;
    this.#session = stage.session;
    this.#dataset = stage.dataset;
    this.#end = now() + budget_ms;
    this.#signal = signal;
    this.#salt = salt;
  }

  /** Sets keys of the writer's own, one after the other. */
  async write(writer: number, writers: number): Promise<void> {
    const { keys, pool, keyBytes, valueBytes } = this.#dataset;
    const random = new Random(salted(0x3217e + writer, this.#salt));
    const own = Math.floor((keys.length - writer - 1) / writers) + 1;
    while (now() < this.#end) {
      this.#signal.throwIfAborted();
      const number = writer + writers * random.below(own);
      const value = random.below(pool.length);
      const history = this.#historyOf(number);
      history.values.push(value);
      const since = now();
      await this.#session.set(at(keys, number), at(pool, value));
      this.writes.done(since, keyBytes + valueBytes);
      this.#stage.state[number] = value;
      history.done++;
    }
  }

  /** Gets random keys, one after the other. */
  async read(reader: number): Promise<void> {
    const random = new Random(salted(0x4ead + reader, this.#salt));
    while (now() < this.#end) {
      this.#signal.throwIfAborted();
      await this.#get(random.below(this.#dataset.keys.length), now());
    }
  }

  /** Begins gets at fixed times, whether or not those before are done; the latency of each counts from its time. */
  async readAtRate(perSecond: number): Promise<void> {
    const random = new Random(salted(0x09e4, this.#salt));
    const began = now();
    const calls: Promise<void>[] = [];
    const dueAt = (call: number): number => began + (call * 1000) / perSecond;
    for (let time = began; time < this.#end; time = now()) {
      this.#signal.throwIfAborted();
      // What became due while this thread was busy is made at once, and its wait counts.
      for (let due = dueAt(calls.length); due <= time; due = dueAt(calls.length)) {
        calls.push(this.#get(random.below(this.#dataset.keys.length), due));
      }
      await turn();
    }
    await Promise.all(calls);
  }

  async #get(number: number, since: number): Promise<void> {
    const { keys, keyBytes, valueBytes } = this.#dataset;
    const history = this.#historyOf(number);
    const { done } = history;
    const value = await this.#session.get(at(keys, number));
    this.reads.done(since, keyBytes + valueBytes);
    const { tally } = this.reads;
    tally.reads++;
    if (value !== undefined) tally.hits++;
    // What it had when the get began, or anything that it was given since.
    if (!this.#isOneOf(value, history.values.slice(done))) tally.wrong++;
  }

  #historyOf(number: number): { values: number[]; done: number } {
    let history = this.#histories.get(number);
    if (history === undefined) {
      history = { values: [at(this.#stage.state, number)], done: 0 };
      this.#histories.set(number, history);
    }
    return history;
  }

  #isOneOf(value: Uint8Array | undefined, numbers: readonly number[]): boolean {
    const { pool } = this.#dataset;
    return value !== undefined && numbers.some((number) => sameBytes(value, at(pool, number)));
  }
}

function rowsOf({ writers, readers, suite }: Callers, { engine }: Stage, measured: Measured, verified: boolean): Row[] {
  const head = { suite, ...headOf(engine), access: 'page', durability: DURABILITY, unit: 'ops', groupSize: 1 } as const;
  const row = (phase: string, note: string, rounds: readonly Round[]): Row =>
    makeRow({ ...head, phase, note }, rounds, verified);
  const beside = `${writers} ${writers === 1 ? 'writer' : 'writers'}`;
  const open = `open loop at ${Math.round(measured.asked)}/s (coordinated omission corrected)`;
  return [
    row(`${readers} readers beside ${beside}`, 'closed loop', measured.reads),
    row(`${beside} beside ${readers} readers`, 'closed loop', measured.writes),
    row(`reads at a fixed rate beside ${beside}`, open, measured.open),
  ];
}

function registerCallers(callers: Callers, title: string, family: 'S2' | 'beyond'): void {
  register({
    ...{ name: callers.suite, title, family, accesses: ['page'] },
    steps: (plan, engines) => callable(engines).length * (plan.rounds + 1),
    run: (context) => runCallers(context, callers),
  });
}

registerCallers(
  { suite: 'concurrent', writers: 2, readers: 10 },
  '2 writers and 10 readers at once, from the page',
  'S2',
);
registerCallers(
  { suite: 'readwhilewriting', writers: 1, readers: 4 },
  '4 readers beside a writer, from the page',
  'beyond',
);
