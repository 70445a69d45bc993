/**
 * Suites of several callers at once: `concurrent` (2 writers and 10 readers) and `readwhilewriting` (4 readers, 1 writer).
 *
 * Callers are loops in the page (core/load.ts). After the rounds of a closed loop, gets are due at fixed times, half as often as
 * the closed loop managed.
 *
 * Invariant: writers have keys of their own, which readers read as well. A read must deliver one of the values that its key had
 * while the read was under way; afterwards the whole store is walked.
 */

import { turn } from '../core/clock.ts';
import type { AsyncSession, Durability, Engine } from '../core/engine.ts';
import { percent } from '../core/figures.ts';
import { at, makeDataset, Random, salted, sameBytes } from '../core/generator.ts';
import { median } from '../core/latency.ts';
import { type Caller, type LoadOptions, runLoad } from '../core/load.ts';
import { rotated } from '../core/loops.ts';
import { type Round, roundOf } from '../core/measure.ts';
import { budgetMs } from '../core/plan.ts';
import { Stage } from '../core/stage.ts';
import { type Context, type Count, count, register, report } from '../core/suite.ts';
import { emptyTally } from '../core/tasks/task.ts';

interface Callers {
  readonly suite: string;
  readonly writers: number;
  readonly readers: number;
  readonly entries: Count;
  readonly keyBytes?: number;
  readonly valueBytes: number;
}

const DURABILITY: Durability = 'relaxed';
const OPEN_SHARE = 0.5;

/** The engines that can be called from the page and read their newest writes. */
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

interface Subject {
  readonly stage: Stage;
  readonly reads: Round[];
  readonly writes: Round[];
  readonly readsAlone: Round[];
  readonly writesAlone: Round[];
  readonly open: Round[];
  asked: number;
}

async function runCallers(context: Context, callers: Callers): Promise<void> {
  const { plan, engines, step, say } = context;
  const { seed, scale, custom, mode, rounds } = plan;
  const entries = custom.entries ?? Math.round(callers.entries[mode] * scale);
  const valueBytes = custom.valueBytes ?? callers.valueBytes;
  const dataset = makeDataset('random', entries, valueBytes, { seed, keyBytes: callers.keyBytes });
  const { memoryBytes } = custom;
  const subjects: Subject[] = [];
  try {
    for (const engine of callable(engines)) {
      step(`${engine.name} loads`);
      const name = `bench-callers-${engine.name}`;
      const loading = (part: number): void => say(`${engine.name} loads, ${part} %`);
      const choice = { engine, name, dataset, durability: DURABILITY, load: 'anywhere', seed, memoryBytes } as const;
      const rounds = { reads: [], writes: [], readsAlone: [], writesAlone: [], open: [] };
      subjects.push({ stage: await Stage.open({ ...choice, loading }), asked: 0, ...rounds });
    }
    for (let round = 0; round < rounds; round++) {
      for (const subject of rotated(subjects, round)) {
        step(`${subject.stage.engine.name}, round ${round + 1} of ${rounds}`);
        await runRound(context, callers, subject, salted(round, seed));
      }
    }
    for (const subject of subjects) conclude(context, callers, subject, await subject.stage.verify(true));
  } finally {
    for (const { stage } of subjects) await stage.close();
  }
}

async function runRound({ plan, signal }: Context, callers: Callers, subject: Subject, salt: number): Promise<void> {
  const { stage } = subject;
  const seconds = budgetMs(plan) / 1000;
  subject.readsAlone.push((await spell(stage, { ...callers, writers: 0 }, { seconds }, salt + 2, { signal })).reads);
  subject.writesAlone.push((await spell(stage, { ...callers, readers: 0 }, { seconds }, salt + 3, { signal })).writes);
  const closed = await spell(stage, callers, { seconds }, salt, { signal });
  subject.reads.push(closed.reads);
  subject.writes.push(closed.writes);
  subject.asked = Math.max(1, ((closed.reads.tally.ops * 1000) / closed.reads.elapsedMs) * OPEN_SHARE);
  const pace = { perSecond: subject.asked, seconds };
  // A timer of a page comes too late: gets that are due begin at the next turn.
  const how = { signal, unbounded: true, rest: turn };
  subject.open.push((await spell(stage, { ...callers, readers: 1 }, pace, salt + 1, how)).reads);
}

/** The values of a key in a spell: the one before, then those that were set, and how many of them it surely has. */
interface History {
  readonly values: number[];
  done: number;
}

/** Some time in which callers call one store: writers in a closed loop, readers too, or at a fixed rate. */
async function spell(
  stage: Stage,
  { writers, readers }: Callers,
  length: { readonly seconds: number; readonly perSecond?: number },
  salt: number,
  options: LoadOptions,
): Promise<{ reads: Round; writes: Round }> {
  const { state, dataset } = stage;
  const { keys, pool, keyBytes, valueBytes } = dataset;
  const session = stage.session as AsyncSession;
  const [reads, writes] = [emptyTally(), emptyTally()];
  const histories = new Map<number, History>();
  const historyOf = (number: number): History => {
    const history = histories.get(number) ?? { values: [at(state, number)], done: 0 };
    histories.set(number, history);
    return history;
  };
  const writer = (index: number): Caller => {
    const random = new Random(salted(0x3217e + index, salt));
    const own = Math.floor((keys.length - index - 1) / writers) + 1;
    return async () => {
      const number = index + writers * random.below(own);
      const value = random.below(pool.length);
      const history = historyOf(number);
      history.values.push(value);
      await session.set(at(keys, number), at(pool, value));
      state[number] = value;
      history.done++;
      writes.ops++;
      writes.bytes += keyBytes + valueBytes;
    };
  };
  const reader = (index: number): Caller => {
    const random = new Random(salted(0x4ead + index, salt));
    return async () => {
      const number = random.below(keys.length);
      const history = historyOf(number);
      const { done } = history;
      const value = await session.get(at(keys, number));
      reads.ops++;
      reads.reads++;
      reads.bytes += keyBytes + valueBytes;
      if (value !== undefined) reads.hits++;
      // Its value when the get began, or any value that it was given since.
      const possible = history.values.slice(done).map((one) => at(pool, one));
      if (value === undefined || !possible.some((one) => sameBytes(value, one))) reads.wrong++;
    };
  };
  const all = <T>(count: number, make: (index: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i));
  const [wrote, read] = await Promise.all([
    runLoad(all(writers, writer), { seconds: length.seconds }, options),
    runLoad(all(readers, reader), length, options),
  ]);
  const elapsedMs = Math.max(wrote.elapsedMs, read.elapsedMs);
  return { reads: roundOf(reads, elapsedMs, read.latencies), writes: roundOf(writes, elapsedMs, wrote.latencies) };
}

function conclude(context: Context, { writers, readers, suite }: Callers, subject: Subject, wrong?: string): void {
  const { stage, reads, writes, readsAlone, writesAlone, open, asked } = subject;
  const row = (phase: string, note: string, rounds: readonly Round[]): void =>
    report(context, stage.engine, { suite, durability: DURABILITY, phase, note }, rounds, wrong);
  const beside = `${writers} ${writers === 1 ? 'writer' : 'writers'}`;
  const perMs = (rounds: readonly Round[]): number =>
    median(rounds.map(({ tally, elapsedMs }) => tally.ops / elapsedMs));
  const kept = (both: Round[], alone: Round[]): string =>
    `closed loop, ${percent(perMs(both) / perMs(alone))} of alone`;
  row(`${readers} readers alone`, 'closed loop', readsAlone);
  row(`${beside} alone`, 'closed loop', writesAlone);
  row(`${readers} readers beside ${beside}`, kept(reads, readsAlone), reads);
  row(`${beside} beside ${readers} readers`, kept(writes, writesAlone), writes);
  const rate = `open loop at ${Math.round(asked)}/s (coordinated omission corrected)`;
  row(`reads at a fixed rate beside ${beside}`, rate, open);
}

function registerCallers(callers: Callers, title: string): void {
  register({
    ...{ name: callers.suite, title, accesses: ['page'] },
    steps: (plan, engines) => callable(engines).length * (plan.rounds + 1),
    run: (context) => runCallers(context, callers),
  });
}

const pairs = { entries: count(10_000, 2_000_000), keyBytes: 32, valueBytes: 32 };
const few = { entries: count(10_000, 50_000), valueBytes: 100 };
registerCallers({ suite: 'concurrent', writers: 2, readers: 10, ...pairs }, '2 writers, 10 readers, from the page');
registerCallers({ suite: 'readwhilewriting', writers: 1, readers: 4, ...few }, '4 readers, a writer, from the page');
