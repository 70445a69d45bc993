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
import { GROUP_STEPS, now, timerStepMs } from '../../core/clock.ts';
import { bytes } from '../../core/figures.ts';
import {
  at,
  compareKeys,
  type Dataset,
  KEY_CHARS,
  type Key,
  makeDataset,
  Random,
  salted,
  sameBytes,
} from '../../core/generator.ts';
import { Latencies } from '../../core/latency.ts';
import { type Round, roundOf } from '../../core/measure.ts';
import type { RowHead } from '../../core/row.ts';
import { type Context, hasSync, register, report, SYNC } from '../../core/suite.ts';
import { emptyTally } from '../../core/tasks/task.ts';
import { ABSENT, liveInOrder } from '../../core/trace.ts';
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
/** Gets and ranges of a round. */
const GETS = { quick: 1000, full: 5000 };
const RANGES = { quick: 40, full: 200 };
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
    const before = { gets: this.#rounds('get'), ranges: this.#rounds('range'), disk: tables.onDisk() };
    const seconds = (await tables.compact()) / 1000;
    const after = { gets: this.#rounds('get'), ranges: this.#rounds('range'), disk: tables.onDisk() };
    const verified = this.#verify(after.disk);
    const change = { seconds, before: before.disk, after: after.disk };
    const over = `over ${runs} overlapping tables`;
    for (const [when, { gets, ranges }] of [['before', before] as const, ['after', after] as const]) {
      this.#row({ phase: `gets ${over}, ${when}`, unit: 'ops' }, gets, verified);
      this.#row({ phase: `ranges of ${RANGE} ${over}, ${when}`, unit: 'ranges' }, ranges, verified);
    }
    this.#change(`merging ${over}`, change, verified);
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
    this.#change(phase, { seconds, before, after }, this.#verify(after));
    await tables.clear();
  }

  /** Every `of`-th key in key order, from `part` on, of the first `below` numbers. */
  #every(of: number, part: number, below = this.#dataset.keys.length): number[] {
    const inOrder = this.#dataset.sorted.filter((number) => number < below);
    return Array.from(inOrder).filter((_, place) => place % of === part);
  }

  /** Rounds of gets or ranges, all in this turn, each compared with the state. */
  #rounds(kind: 'get' | 'range'): Round[] {
    const { mode, rounds, seed } = this.context.plan;
    const calls = (kind === 'get' ? GETS : RANGES)[mode];
    const live = liveInOrder(this.#dataset, this.tables.state);
    return Array.from({ length: rounds + 1 }, (_, round) =>
      this.#round(kind, live, new Random(salted(0xc03 + round, seed)), calls),
    ).slice(1);
  }

  /** One round; a group lasts long enough for the timer. */
  #round(kind: 'get' | 'range', live: Uint32Array, random: Random, calls: number): Round {
    const tally = emptyTally();
    const latencies = new Latencies();
    let elapsed = 0;
    for (let done = 0; done < calls; ) {
      const places: number[] = [];
      const found: (Uint8Array | undefined)[] = [];
      const start = now();
      let end = start;
      while (done + places.length < calls && end - start < GROUP_STEPS * this.#step_ms) {
        const place = random.below(Math.max(1, live.length - RANGE));
        places.push(place);
        found.push(kind === 'get' ? this.#get(at(live, place)) : this.#range(live, place));
        end = now();
      }
      elapsed += end - start;
      latencies.add(((end - start) * 1000) / places.length);
      done += places.length;
      places.forEach((place, i) => {
        const number = at(live, kind === 'get' ? place : place + RANGE - 1);
        const value = found[i];
        const read = kind === 'get' ? 1 : RANGE;
        tally.ops++;
        tally.reads += read;
        if (value !== undefined) tally.hits += read;
        tally.bytes += read * (this.#dataset.keyBytes + VALUE_BYTES);
        const wanted = at(this.#dataset.pool, at(this.tables.state, number));
        if (value === undefined || !sameBytes(value, wanted)) tally.wrong++;
      });
    }
    return roundOf(tally, elapsed, latencies);
  }

  #get(number: number): Uint8Array | undefined {
    return this.tables.store.get(at(this.#dataset.keys, number));
  }

  /** The last value of a range, if it has all its entries. */
  #range(live: Uint32Array, place: number): Uint8Array | undefined {
    const gte = at(this.#dataset.keys, at(live, place));
    let count = 0;
    let last: Uint8Array | undefined;
    for (const [, value] of this.tables.store.entries({ gte, limit: RANGE })) {
      count++;
      last = value;
    }
    return count === RANGE ? last : undefined;
  }

  /** Walks the store, and sees that the tables hold nothing but its live entries. */
  #verify(after: OnDisk): boolean {
    const { store, state } = this.tables;
    const live = liveInOrder(this.#dataset, state);
    let place = 0;
    for (const [key, value] of store.entries()) {
      const number = live[place++];
      if (number === undefined || compareKeys(key, at(this.#dataset.keys, number)) !== 0) return false;
      if (!sameBytes(value, at(this.#dataset.pool, at(state, number)))) return false;
    }
    return place === live.length && after.entries === live.length;
  }

  /** A row of the merge itself: entries that went in, and what became of them. */
  #change(phase: string, { seconds, before, after }: Change, verified: boolean): void {
    const made = { ops: before.entries, bytes: before.bytes };
    const files = `${before.files} files of ${bytes(before.bytes)} became ${after.files} of ${bytes(after.bytes)}`;
    const note = `${files}; ${before.entries} entries, ${after.entries} after`;
    const round = roundOf(made, seconds * 1000, [seconds * 1e6]);
    this.#row({ phase, unit: 'entries', note }, [round], verified);
  }

  #row(head: Pick<RowHead, 'phase' | 'unit' | 'note'>, rounds: readonly Round[], verified: boolean): void {
    const wrong = verified ? undefined : 'something else was found than was written.';
    report(this.context, SYNC, { suite: NAME, ...head }, rounds, wrong);
  }

  get #dataset(): Dataset {
    return this.tables.dataset;
  }
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
