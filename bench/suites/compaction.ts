/**
 * The suite `compaction`: what a full compaction does to reads, to ranges, to files and to bytes (S0 of the workloads).
 *
 * Three phases, each before and after: gets and ranges of 50 over overlapping tables; tables of the same keys that become
 * one; tombstones and older versions that go. Each batch is larger than a memtable, so it becomes a table of its own. Seven such
 * tables may lie in level 0 for ever; with the eighth a compaction is due, which begins between two turns. So the rest is written
 * inside one turn, in which the engine flushes what it must and merges nothing before it has twenty.
 *
 * Invariant: every get and range is compared with what was written, before and after; after a compaction the tables hold
 * exactly one entry for each live key, which is counted and walked.
 */

import { now, timerStepMs, turn } from '../core/clock.ts';
import type { Engine, StoreNumbers, SyncSession } from '../core/engine.ts';
import { bytes } from '../core/figures.ts';
import { at, KEY_CHARS, makeDataset } from '../core/generator.ts';
import { groupFor, type Round, roundOf } from '../core/measure.ts';
import type { Row, RowHead } from '../core/row.ts';
import { Stage } from '../core/stage.ts';
import { type Context, type Count, count, register, report } from '../core/suite.ts';
import { makeTask } from '../core/tasks/make.ts';
import { entriesOf } from '../core/tasks/task.ts';
import { ABSENT, liveInOrder } from '../core/trace.ts';
import type { Work } from '../core/work.ts';
import { varveSync } from '../peers/varve-sync.ts';

const NAME = 'compaction';
const VALUE_BYTES = 100;
/** Varve's least `memory`, so that tables are small. */
const MEMORY_BYTES = 1 << 20;
/** Entries of a batch that is larger than a memtable, which is an eighth of the memory, and no more than 4 MiB. */
const batchOf = (memoryBytes: number): number =>
  Math.ceil((1.1 * Math.min(4 << 20, memoryBytes / 8)) / (KEY_CHARS + VALUE_BYTES));
/** Tables that the engine leaves alone in level 0. */
const TABLES_KEPT = 7;
/** One less than the number at which the engine merges inside the turn. */
const TABLES_MAX = 19;
/** Flushes of the same keys with turns in between, in which the engine merges as it likes. */
const FLUSHES = count(12, 100);
const RANGE = 50;
const REHEARSAL_GROUP = 20;
const WAIT_MS_MAX = 20_000;
const READS: readonly {
  readonly title: string;
  readonly unit: Row['unit'];
  readonly work: Work;
  readonly calls: Count;
}[] = [
  { title: 'gets', unit: 'ops', work: { kind: 'points', mix: 'get', order: 'uniform' }, calls: count(1000, 5000) },
  { title: `ranges of ${RANGE}`, unit: 'ranges', work: { kind: 'ranges', size: RANGE }, calls: count(40, 200) },
];

/** One batch: for each key the number of a value, or ABSENT to delete it. */
interface Part {
  readonly numbers: readonly number[];
  readonly value: (number: number) => number;
}

export async function runCompaction(context: Context, engine: Engine = varveSync): Promise<void> {
  const { plan, step } = context;
  const { memoryBytes = MEMORY_BYTES } = plan.custom;
  const batch = batchOf(memoryBytes);
  const dataset = makeDataset('random', TABLES_MAX * batch, VALUE_BYTES, { seed: plan.seed });
  const phases: Readonly<Record<string, (on: Compaction) => Promise<void>>> = {
    'overlapping tables': overlapping,
    'tables of the same keys': (on) => sameKeys(on, batch),
    'flushes of the same keys': (on) => flushes(on, batch, FLUSHES[plan.mode]),
    tombstones: (on) => tombstones(on, batch),
  };
  for (const [phase, run] of Object.entries(phases)) {
    step(`${NAME}: ${phase}`);
    const options = { durability: 'relaxed', load: 'nothing', memoryBytes } as const;
    const stage = await Stage.open({ engine, name: `bench-${NAME}`, dataset, ...options });
    try {
      await run(new Compaction(context, stage));
    } finally {
      await stage.close();
    }
  }
}

async function overlapping(on: Compaction): Promise<void> {
  const every = Array.from({ length: TABLES_MAX }, (_, part) => on.every(TABLES_MAX, part));
  const parts = every.map((numbers): Part => ({ numbers, value: (number) => number % 1000 }));
  for (const part of parts.slice(0, TABLES_KEPT)) await on.flushed(part);
  for (const part of parts.slice(TABLES_KEPT)) on.write(part);
  // No await before these: the tables are as the burst left them.
  const numbers = on.numbers();
  const before = READS.map(({ work, calls }) => on.rounds(work, calls));
  const over = `over ${runsOf(await numbers)} overlapping tables`;
  const wrong = await on.merge(`merging ${over}`);
  const after = READS.map(({ work, calls }) => on.rounds(work, calls));
  for (const [when, made] of Object.entries({ before, after })) {
    for (const [i, { title, unit }] of READS.entries()) {
      on.row({ phase: `${title} ${over}, ${when}`, unit }, at(made, i), wrong);
    }
  }
}

async function sameKeys(on: Compaction, batch: number): Promise<void> {
  const numbers = Array.from({ length: batch }, (_, i) => i);
  for (let table = 0; table < TABLES_KEPT; table++) await on.flushed({ numbers, value: () => table });
  for (let table = TABLES_KEPT; table < TABLES_MAX; table++) on.write({ numbers, value: () => table });
  await on.merge(`${runsOf(await on.numbers())} tables of the same keys`);
}

/** As many flushes of the same keys as S0 has tables. */
async function flushes(on: Compaction, batch: number, times: number): Promise<void> {
  const numbers = Array.from({ length: batch }, (_, i) => i);
  for (let flush = 0; flush < times; flush++) await on.flushed({ numbers, value: () => flush });
  await on.merge(`${times} flushes of the same keys`);
}

/** Half of the keys deleted and a quarter written again: the deleted are gone from disk, the others there once. */
async function tombstones(on: Compaction, batch: number): Promise<void> {
  const loaded = 4 * batch;
  for (let part = 0; part < 4; part++) {
    await on.flushed({ numbers: on.every(4, part, loaded), value: (number) => number % 1000 });
  }
  const numbers = Array.from({ length: loaded }, (_, i) => i).filter((number) => number % 4 !== 3);
  await on.flushed({ numbers, value: (number) => (number % 2 === 0 ? ABSENT : 1000 + (number % 1000)) });
  await on.merge('tombstones and older versions');
}

class Compaction {
  readonly #stepMs = timerStepMs();
  readonly #session: SyncSession;

  constructor(
    private readonly context: Context,
    private readonly stage: Stage,
  ) {
    this.#session = stage.session as SyncSession;
  }

  /** Every `of`-th key in key order, from `part` on, of the first `below` numbers. */
  every(of: number, part: number, below = this.stage.dataset.keys.length): number[] {
    const inOrder = this.stage.dataset.sorted.filter((number) => number < below);
    return Array.from(inOrder).filter((_, place) => place % of === part);
  }

  write({ numbers, value }: Part): void {
    const { dataset, state } = this.stage;
    const sets = numbers.filter((number) => value(number) !== ABSENT);
    for (const number of numbers) if (value(number) === ABSENT) this.#session.delete(at(dataset.keys, number));
    const trace = { numbers: Uint32Array.from(sets), values: Uint16Array.from(sets, value) };
    this.#session.batch(entriesOf(dataset, trace));
    for (const number of numbers) state[number] = value(number);
  }

  /** Writes in a turn of its own, and waits until all of it lies in tables. */
  async flushed(part: Part): Promise<void> {
    this.write(part);
    const end = now() + WAIT_MS_MAX;
    for (let left = 1; left > 0; ) {
      await turn();
      const { memtable } = await this.numbers();
      left = memtable.frozen + memtable.entries;
      if (now() > end) throw new Error('The store did not flush what was written.');
    }
  }

  numbers(): Promise<StoreNumbers> {
    return this.#session.report?.() ?? Promise.reject(new Error('The engine reports nothing.'));
  }

  /** Rounds of calls, all in this turn; the first one finds how many calls last long enough for the timer. */
  rounds(work: Work, calls: Count): Round[] {
    const { mode, rounds, seed } = this.context.plan;
    let group = REHEARSAL_GROUP;
    const made: Round[] = [];
    for (let round = 0; round <= rounds; round++) {
      const choice = { access: 'worker', calls: calls[mode], round, seed, hasReserve: false } as const;
      const task = makeTask(work, this.stage, choice);
      const latencies: number[] = [];
      let elapsed = 0;
      for (let from = 0; from < task.calls; from += group) {
        const to = Math.min(from + group, task.calls);
        const start = now();
        void task.run(from, to);
        const took = now() - start;
        elapsed += took;
        latencies.push((took * 1000) / (to - from));
        void task.check(from, to);
      }
      if (round === 0) group = groupFor(latencies, this.#stepMs);
      else made.push(roundOf(task.tally, elapsed, latencies));
    }
    return made;
  }

  /** Merges what is there, and reports that; resolves with what is wrong then. */
  async merge(phase: string): Promise<string | undefined> {
    const { dataset, state } = this.stage;
    const before = onDisk(await this.numbers());
    const started = now();
    await this.#session.settle('tables', 0);
    const tookMs = now() - started;
    const after = onDisk(await this.numbers());
    const isExact = after.entries === liveInOrder(dataset, state).length;
    const wrong = isExact ? await this.stage.verify(true) : 'the tables hold more than the live entries.';
    const files = `${before.files} files of ${bytes(before.bytes)} became ${after.files} of ${bytes(after.bytes)}`;
    const note = `${files}; ${before.entries} entries, ${after.entries} after`;
    const made = { ops: before.entries, bytes: before.bytes };
    this.row({ phase, unit: 'entries', note }, [roundOf(made, tookMs, [tookMs * 1000])], wrong);
    return wrong;
  }

  row(head: Pick<RowHead, 'phase' | 'unit' | 'note'>, rounds: readonly Round[], wrong: string | undefined): void {
    report(this.context, varveSync, { suite: NAME, ...head }, rounds, wrong);
  }
}

/** Sorted runs over the same keys: tables of level 0, and memtables that wait for their flush. */
function runsOf({ levels, memtable }: StoreNumbers): number {
  return (levels[0]?.tables ?? 0) + memtable.frozen;
}

/** The tables on disk; older versions and tombstones count as entries. */
function onDisk({ levels }: StoreNumbers): { files: number; bytes: number; entries: number } {
  const sum = (of: (level: StoreNumbers['levels'][number]) => number): number =>
    levels.reduce((total, level) => total + of(level), 0);
  return { files: sum(({ tables }) => tables), bytes: sum((one) => one.bytes), entries: sum(({ entries }) => entries) };
}

register({
  name: NAME,
  title: 'before and after a full compaction',
  accesses: ['worker'],
  steps: (_, engines) => (engines.some(({ name }) => name === varveSync.name) ? 4 : 0),
  run: (context) => runCompaction(context),
});
