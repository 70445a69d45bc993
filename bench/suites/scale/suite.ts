/**
 * The suite `scale`: millions of pairs in `varve/synchronous`, phase by phase, and reads while a compaction runs. 2 million pairs of
 * 32 + 32 random bytes, or as many as `--entries` or `--scale` say (S2 of the workloads has 2, 4, 10 and 30 million).
 *
 * Invariant: every read is checked, every phase lets go of its turn each 16 ms as a worker of an application does, and the
 * time of the turns belongs to the phase. Writes are grouped: logged every 64 KiB and at the end of a turn.
 */

import { deleteStore, open, type StoreStats, type SyncStore } from 'varve/synchronous';
import { now, turn } from '../../core/clock.ts';
import { bytes, duration, rate } from '../../core/figures.ts';
import { percentilesOf } from '../../core/latency.ts';
import { roundOf } from '../../core/measure.ts';
import { heldBytes, writtenBytes } from '../../core/storage.ts';
import { type Context, hasSync, register, report, SYNC } from '../../core/suite.ts';
import { isValueFor, keyOf, PAIR_BYTES, randomBelow, valueFor } from './pairs.ts';
import { readsBesideCompaction, type Spell } from './reads.ts';

type Store = SyncStore<Uint8Array, Uint8Array>;

const PAIRS = { quick: 20_000, full: 2_000_000 };
const NAME = 'bench-scale';
const TRANSACTION = 10_000;
const SCANNED = 500_000;
const RANGE = 100;
const READS_PER_WRITE = 5;
const WRITES_BESIDE = 400_000;
/** Operations between two looks at the clock. */
const BURST = 256;
const TURN_MS = 16;
const SAMPLES = 50;

/** How many operations lie between two samples of a phase. */
function sampleOf(count: number): number {
  return Math.max(1, Math.floor(count / SAMPLES));
}

function expect(what: string, found: number, wanted: number): void {
  if (found !== wanted) throw new Error(`${what}: ${found} found, ${wanted} expected.`);
}

/** One run. */
class Run {
  #memoryMax = 0;

  constructor(
    private readonly pairs: number,
    private readonly context: Context,
  ) {}

  async points(): Promise<void> {
    let store = await open<Uint8Array, Uint8Array>(NAME);
    await this.#load(store);
    await this.#read('read', store);
    await this.#phase('close and open', 1, async () => {
      await store.close();
      store = await open<Uint8Array, Uint8Array>(NAME);
      expect('open', Number(isValueFor(store.get(keyOf(0)), 0)), 1);
    });
    await this.#read('read after reopen', store);
    await this.#scans(store);
    await this.#beside(store);
    const say = (text: string): void => this.context.say(`scale: ${text}`);
    for (const spell of await readsBesideCompaction(store, this.pairs, say)) this.#spell(spell);
    await this.#phase('compact', this.pairs, async () => {
      await store.compact();
      const diskBytes = store.stats().disk.bytes;
      return `${spaceText(diskBytes, this.pairs)}, memory max ${bytes(this.#memoryMax)}`;
    });
    await this.#read('read after compact', store);
    await this.#phase('delete', this.pairs, async () => {
      await this.#each('delete', this.pairs, (number) => void store.delete(keyOf(number)));
      store.commit();
      expect('delete', store.count(), 0);
    });
    await store.close();
  }

  async transactions(): Promise<void> {
    const store = await open<Uint8Array, Uint8Array>(NAME);
    await this.#transactions('transactions: write', (from, end) => {
      const batch = store.batch();
      for (let number = from; number < end; number++) batch.set(keyOf(number), valueFor(number));
      batch.commit({ durability: 'relaxed' });
    });
    const random = randomBelow(this.pairs, 7);
    await this.#transactions('transactions: read', (from, end) => {
      const snapshot = store.snapshot();
      try {
        let found = 0;
        for (let number = from; number < end; number++) found += Number(snapshot.get(keyOf(random())) !== undefined);
        expect('transactions: read', found, end - from);
      } finally {
        snapshot.close();
      }
    });
    await store.close();
  }

  /** A phase of transactions over all pairs, each in a turn of its own. */
  async #transactions(phase: string, run: (from: number, end: number) => void): Promise<void> {
    await this.#phase(phase, this.pairs, async () => {
      for (let from = 0; from < this.pairs; from += TRANSACTION) {
        const end = Math.min(from + TRANSACTION, this.pairs);
        run(from, end);
        this.#done(phase, end);
        await turn();
      }
    });
  }

  async #load(store: Store): Promise<void> {
    let spaceMax = 0;
    await this.#phase('write', this.pairs, async () => {
      const every = sampleOf(this.pairs);
      await this.#each('write', this.pairs, (number) => {
        if (number % every === every - 1) {
          const diskBytes = this.#look(store).disk.bytes;
          // The first few MiB are rather what an empty store weighs.
          if (number > this.pairs / 4) spaceMax = Math.max(spaceMax, diskBytes / (number * PAIR_BYTES));
        }
        store.set(keyOf(number), valueFor(number));
      });
      store.commit();
      return `space max ${spaceMax.toFixed(2)}`;
    });
    await this.#phase('background work after it', 1, async () => {
      await settled(store);
      const stats = store.stats();
      const amplification = (writtenBytes(stats) / (this.pairs * PAIR_BYTES)).toFixed(2);
      return `write amplification ${amplification}, ${spaceText(stats.disk.bytes, this.pairs)}`;
    });
  }

  async #read(phase: string, store: Store): Promise<void> {
    await this.#phase(phase, this.pairs, async () => {
      const random = randomBelow(this.pairs, 3);
      let wrong = 0;
      await this.#each(phase, this.pairs, () => {
        const number = random();
        if (!isValueFor(store.get(keyOf(number)), number)) wrong++;
      });
      expect(`${phase}, wrong`, wrong, 0);
      this.#look(store);
    });
  }

  async #scans(store: Store): Promise<void> {
    const wanted = Math.min(SCANNED, this.pairs);
    await this.#phase('iterate', wanted, async () => {
      let found = 0;
      for (const _ of store.entries({ limit: wanted })) found++;
      expect('iterate', found, wanted);
    });
    await this.#phase('range', wanted, async () => {
      const random = randomBelow(this.pairs, 5);
      await this.#each('range', wanted / RANGE, () => {
        for (const _ of store.entries({ gte: keyOf(random()), limit: RANGE }));
      });
    });
  }

  async #beside(store: Store): Promise<void> {
    const writes = Math.min(WRITES_BESIDE, this.pairs / READS_PER_WRITE);
    await this.#phase('read while writing', writes * (1 + READS_PER_WRITE), async () => {
      const random = randomBelow(this.pairs, 9);
      let wrong = 0;
      await this.#each('read while writing', writes, (i) => {
        const number = (i * 7919) % this.pairs;
        for (let read = 0; read < READS_PER_WRITE; read++) {
          const asked = random();
          if (!isValueFor(store.get(keyOf(asked)), asked)) wrong++;
        }
        store.set(keyOf(number), valueFor(number));
      });
      store.commit();
      expect('read while writing, wrong', wrong, 0);
      return `${rate(writes)} writes, ${rate(writes * READS_PER_WRITE)} reads`;
    });
    await settled(store);
  }

  async #phase(phase: string, ops: number, work: () => Promise<string | undefined>): Promise<void> {
    this.context.say(`scale: ${phase}`);
    const started = now();
    const note = await work();
    const seconds = (now() - started) / 1000;
    // A phase is timed as a whole: the percentiles are its mean.
    this.#row(phase, ops, seconds, [(seconds * 1e6) / ops], ops, note);
  }

  #spell({ phase, gets, turns }: Spell): void {
    const seconds = gets.reduce((sum, ms) => sum + ms, 0) / 1000;
    const { p50, p99 } = percentilesOf(turns.map((ms) => ms * 1000));
    const note = `turn p50 ${duration(p50)}, turn p99 ${duration(p99)}`;
    const microseconds = gets.map((ms) => ms * 1000);
    this.#row(phase, gets.length, seconds, microseconds, 1, note);
  }

  #row(name: string, ops: number, seconds: number, microseconds: readonly number[], groupSize: number, note = '') {
    const round = roundOf({ ops, bytes: ops * PAIR_BYTES }, seconds * 1000, microseconds);
    const phase = `${name}, ${this.pairs} pairs`;
    report(this.context, SYNC, { suite: 'scale', phase, groupSize, note }, [round]);
  }

  /** Runs a step for every number below `count`, lets go of the turn now and then, and reports how much is done. */
  async #each(phase: string, count: number, step: (number: number) => void): Promise<void> {
    const every = sampleOf(count);
    let since = now();
    for (let number = 0; number < count; number++) {
      if (number % every === every - 1) this.#done(phase, number, count);
      step(number);
      if (number % BURST === BURST - 1 && now() - since > TURN_MS) {
        await turn();
        since = now();
      }
    }
  }

  #done(phase: string, done: number, count = this.pairs): void {
    this.context.say(`scale: ${phase} ${Math.round((done * 100) / count)}%`);
  }

  #look(store: Store): StoreStats {
    const stats = store.stats();
    this.#memoryMax = Math.max(this.#memoryMax, heldBytes(stats));
    return stats;
  }
}

/** The files of a store of so many pairs. */
function spaceText(diskBytes: number, pairs: number): string {
  return `file ${bytes(diskBytes)}, space ${(diskBytes / (pairs * PAIR_BYTES)).toFixed(2)}`;
}

/** Waits until no flush and no compaction was installed for a while. */
async function settled(store: Store): Promise<void> {
  const QUIET_MS = 500;
  let seen = '';
  let since = now();
  while (now() - since < QUIET_MS) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    const { flush, compaction, memtable } = store.stats();
    const state = `${flush.count} ${compaction.count} ${compaction.movedTables} ${memtable.frozen}`;
    if (state !== seen || memtable.frozen > 0) since = now();
    seen = state;
  }
}

/** All phases, each store in turn. They end with an error where anything was found that was not written. */
async function run(context: Context): Promise<void> {
  const { plan, step } = context;
  const pairs = plan.custom.entries ?? Math.round(PAIRS[plan.mode] * plan.scale);
  step(`scale: ${pairs} pairs`);
  const one = new Run(pairs, context);
  try {
    await deleteStore(NAME);
    await one.points();
    await deleteStore(NAME);
    await one.transactions();
  } finally {
    await deleteStore(NAME);
  }
}

register({
  name: 'scale',
  title: '2 million pairs in the worker, phase by phase (--entries or --scale for more)',
  asked: true,
  accesses: ['worker'],
  steps: (_, engines) => (hasSync(engines) ? 1 : 0),
  run,
});
