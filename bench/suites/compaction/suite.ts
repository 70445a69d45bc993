/**
 * The suite `compaction`: what a full compaction does to reads, to ranges, to files and to bytes (S0 of the workloads).
 *
 * Three phases, each before and after: gets and ranges of 50 over overlapping tables; tables of the same keys that become
 * one; tombstones and older versions that go. S0 has 20 and 100 tables, which Varve would merge by itself: the suite measures
 * as many as can be there (tables.ts), and its rows say how many.
 *
 * Invariant: every get and range is compared with what was written, before and after; after a compaction the tables hold
 * exactly one entry for each live key, which is counted and walked.
 */

import { deleteStore, open } from 'varve/synchronous';
import { now, timerStepMs } from '../../core/clock.ts';
import { bytes } from '../../core/figures.ts';
import { KEY_CHARS, type Key, makeDataset } from '../../core/generator.ts';
import { groupFor, type Round, roundOf } from '../../core/measure.ts';
import type { RowHead } from '../../core/row.ts';
import { type Context, type Count, hasSync, register, report, SYNC } from '../../core/suite.ts';
import { makeTask } from '../../core/tasks/make.ts';
import type { Task } from '../../core/tasks/task.ts';
import { ABSENT, liveInOrder } from '../../core/trace.ts';
import { verifyStore } from '../../core/verify.ts';
import type { Work } from '../../core/work.ts';
import {
  batchOf,
  MEMORY_BYTES_MIN,
  type OnDisk,
  type Opening,
  type Part,
  TABLES_KEPT,
  TABLES_MAX,
  Tables,
} from './tables.ts';

const NAME = 'compaction';
const RANGE = 50;
const VALUE_BYTES = 100;
const GET: Work = { kind: 'points', mix: 'get', order: 'uniform' };
const RANGES: Work = { kind: 'ranges', size: RANGE };
/** Gets and ranges of a round. */
const GETS = { quick: 1000, full: 5000 };
const RANGE_CALLS = { quick: 40, full: 200 };
/** Calls timed as one at first. */
const REHEARSAL_GROUP = 20;
/** Flushes of the same keys with turns in between, in which the engine merges as it likes. */
const FLUSHES = { quick: 12, full: 100 };
/** Steps of progress. */
const STEPS = 3;

/** Runs the suite on `varve/synchronous`. */
export async function runCompaction(context: Context, opening: Opening = {}): Promise<void> {
  const name = 'bench-compaction';
  const { plan } = context;
  const storage = plan.custom.storage === 'memory' ? 'memory' : undefined;
  const memoryBytes = plan.custom.memoryBytes ?? MEMORY_BYTES_MIN;
  const entries = TABLES_MAX * batchOf(memoryBytes, KEY_CHARS + VALUE_BYTES);
  const dataset = makeDataset('random', entries, VALUE_BYTES, { seed: plan.seed });
  if (storage === undefined) await deleteStore(name);
  const tables = new Tables(
    name,
    await open<Key, Uint8Array>(name, { memoryBytes, storage, ...opening }),
    dataset,
    memoryBytes,
  );
  try {
    const suite = new Compaction(context, tables);
    await suite.overlapping();
    await suite.sameKeys();
    await suite.tombstones();
  } finally {
    await tables.store.close();
    if (storage === undefined) await deleteStore(name);
  }
}

class Compaction {
  readonly #step_ms = timerStepMs();

  constructor(
    private readonly context: Context,
    private readonly tables: Tables,
  ) {}

  /** Gets and ranges over tables that each span all keys. */
  async overlapping(): Promise<void> {
    const { tables } = this;
    this.context.step('compaction: overlapping tables');
    const value = (number: number): number => number % 1000;
    const parts = Array.from(
      { length: TABLES_MAX },
      (_, part): Part => ({ numbers: this.#every(TABLES_MAX, part), value }),
    );
    for (const part of parts.slice(0, TABLES_KEPT)) await tables.flushed(part);
    const runs = tables.burst(parts.slice(TABLES_KEPT));
    // No await before these: the tables are as the burst left them.
    const before = { gets: this.#rounds(GET, GETS), ranges: this.#rounds(RANGES, RANGE_CALLS), disk: tables.onDisk() };
    const seconds = (await tables.compact()) / 1000;
    const after = { gets: this.#rounds(GET, GETS), ranges: this.#rounds(RANGES, RANGE_CALLS), disk: tables.onDisk() };
    const wrong = await this.#verify(after.disk);
    const change = { seconds, before: before.disk, after: after.disk };
    const over = `over ${runs} overlapping tables`;
    for (const [when, { gets, ranges }] of [['before', before] as const, ['after', after] as const]) {
      this.#row({ phase: `gets ${over}, ${when}`, unit: 'ops' }, gets, wrong);
      this.#row({ phase: `ranges of ${RANGE} ${over}, ${when}`, unit: 'ranges' }, ranges, wrong);
    }
    this.#change(`merging ${over}`, change, wrong);
    await tables.clear();
  }

  /** As many tables of the same keys as can be there, then as many flushes as S0 has tables. */
  async sameKeys(): Promise<void> {
    const tables = this.tables;
    this.context.step('compaction: tables of the same keys');
    const numbers = Array.from({ length: tables.batchEntries }, (_, i) => i);
    const parts = Array.from({ length: TABLES_MAX }, (_, table): Part => ({ numbers, value: () => table }));
    for (const part of parts.slice(0, TABLES_KEPT)) await tables.flushed(part);
    const runs = tables.burst(parts.slice(TABLES_KEPT));
    await this.#merged(`${runs} tables of the same keys`);
    const flushes = FLUSHES[this.context.plan.mode];
    for (let flush = 0; flush < flushes; flush++) await tables.flushed({ numbers, value: () => flush });
    await this.#merged(`${flushes} flushes of the same keys`);
  }

  /** Half of the keys deleted and a quarter written again: the deleted are gone from disk, the others there once. */
  async tombstones(): Promise<void> {
    const tables = this.tables;
    this.context.step('compaction: tombstones');
    const loaded = 4 * tables.batchEntries;
    for (let part = 0; part < 4; part++) {
      await tables.flushed({ numbers: this.#every(4, part, loaded), value: (number) => number % 1000 });
    }
    const numbers = Array.from({ length: loaded }, (_, i) => i).filter((number) => number % 4 !== 3);
    await tables.flushed({
      numbers,
      value: (number) => (number % 2 === 0 ? ABSENT : 1000 + (number % 1000)),
    });
    await this.#merged('tombstones and older versions');
  }

  /** Merges what is there, reports it, and empties the store. */
  async #merged(phase: string): Promise<void> {
    const tables = this.tables;
    const before = tables.onDisk();
    const seconds = (await tables.compact()) / 1000;
    const after = tables.onDisk();
    this.#change(phase, { seconds, before, after }, await this.#verify(after));
    await tables.clear();
  }

  /** Every `of`-th key in key order, from `part` on, of the first `below` numbers. */
  #every(of: number, part: number, below = this.tables.dataset.keys.length): number[] {
    const inOrder = this.tables.dataset.sorted.filter((number) => number < below);
    return Array.from(inOrder).filter((_, place) => place % of === part);
  }

  /** Rounds of calls, all in this turn; the first one finds how many calls last long enough for the timer. */
  #rounds(work: Work, calls: Count): Round[] {
    const { mode, rounds, seed } = this.context.plan;
    let group = REHEARSAL_GROUP;
    const made: Round[] = [];
    for (let round = 0; round <= rounds; round++) {
      const choice = { access: 'worker', calls: calls[mode], round, seed, hasReserve: false } as const;
      made.push(measureNow(makeTask(work, this.tables, choice), group));
      if (round === 0) group = groupFor((made.pop() as Round).latencies, this.#step_ms);
    }
    return made;
  }

  /** Walks the store, and sees that the tables hold nothing but its live entries. */
  async #verify(after: OnDisk): Promise<string | undefined> {
    const { engine, session, dataset, state } = this.tables;
    if (after.entries !== liveInOrder(dataset, state).length) return 'the tables hold more than the live entries.';
    return verifyStore(engine, session, dataset, state);
  }

  /** A row of the merge itself: entries that went in, and what became of them. */
  #change(phase: string, { seconds, before, after }: Change, wrong: string | undefined): void {
    const made = { ops: before.entries, bytes: before.bytes };
    const files = `${before.files} files of ${bytes(before.bytes)} became ${after.files} of ${bytes(after.bytes)}`;
    const note = `${files}; ${before.entries} entries, ${after.entries} after`;
    const round = roundOf(made, seconds * 1000, [seconds * 1e6]);
    this.#row({ phase, unit: 'entries', note }, [round], wrong);
  }

  #row(head: Pick<RowHead, 'phase' | 'unit' | 'note'>, rounds: readonly Round[], wrong: string | undefined): void {
    report(this.context, SYNC, { suite: NAME, ...head }, rounds, wrong);
  }
}

/** As `measure` does, within the turn. */
function measureNow(task: Task, group: number): Round {
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
  return roundOf(task.tally, elapsed, latencies);
}

/** One compaction. */
interface Change {
  readonly seconds: number;
  readonly before: OnDisk;
  readonly after: OnDisk;
}

register({
  name: NAME,
  title: 'before and after a full compaction',
  accesses: ['worker'],
  steps: (_, engines) => (hasSync(engines) ? STEPS : 0),
  run: (context) => runCompaction(context),
});
