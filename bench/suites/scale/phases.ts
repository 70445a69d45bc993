/**
 * The `scale` run: millions of pairs in `varve/synchronous`, phase by phase, and reads while a compaction runs.
 *
 * Invariant: every read is checked, every phase lets go of its turn each 16 ms as a worker of an application does, and the
 * time of the turns belongs to the phase. Writes are grouped: logged every 64 KiB and at the end of a turn.
 */

import { deleteStore, open, type StoreStats, type SyncStore } from 'varve/synchronous';
import { now, turn } from '../../core/clock.ts';
import { heldBytes } from '../../core/memory.ts';
import { storeFiles } from '../../peers/varve-files.ts';
import { isValueFor, keyOf, PAIR_BYTES, randomBelow, valueFor } from './pairs.ts';
import { readsBesideCompaction } from './reads.ts';

/** What is to be run. */
export interface ScalePlan {
  readonly pairs: number;
}

/** One line of the result. */
export interface ScaleRow {
  readonly phase: string;
  readonly ops: number;
  readonly seconds: number;
  /** Whatever else was measured, by name. */
  readonly more: Readonly<Record<string, number | string>>;
}

/** What the worker tells. */
export type ScaleEvent =
  | { readonly type: 'progress'; readonly text: string }
  | { readonly type: 'row'; readonly row: ScaleRow }
  | { readonly type: 'ended'; readonly error: string | undefined };

type Store = SyncStore<Uint8Array, Uint8Array>;
type Emit = (event: ScaleEvent) => void;

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

/** Runs a step for every number below `count`, lets go of the turn now and then, and tells how much is done. */
async function each(count: number, step: (number: number) => void, told: (percent: number) => void): Promise<void> {
  const every = sampleOf(count);
  let since = now();
  for (let number = 0; number < count; number++) {
    if (number % every === every - 1) told(Math.round((number * 100) / count));
    step(number);
    if (number % BURST === BURST - 1 && now() - since > TURN_MS) {
      await turn();
      since = now();
    }
  }
}

function expect(what: string, found: number, wanted: number): void {
  if (found !== wanted) throw new Error(`${what}: ${found} found, ${wanted} expected.`);
}

/** One run. */
class Run {
  readonly #pairs: number;
  readonly #emit: Emit;
  #memoryMax = 0;
  #memoryBudget = 0;

  constructor(pairs: number, emit: Emit) {
    this.#pairs = pairs;
    this.#emit = emit;
  }

  async points(): Promise<void> {
    let store = await open<Uint8Array, Uint8Array>(NAME);
    await this.#load(store);
    await this.#read('read', store);
    await this.#phase('close and open', 1, async () => {
      await store.close();
      store = await open<Uint8Array, Uint8Array>(NAME);
      expect('open', Number(isValueFor(store.get(keyOf(0)), 0)), 1);
      return {};
    });
    await this.#read('read after reopen', store);
    await this.#scans(store);
    await this.#beside(store);
    for (const row of await readsBesideCompaction(store, this.#pairs, (text) => this.#progress(text))) this.#row(row);
    await this.#phase('compact', this.#pairs, async () => {
      await store.compact();
      await store.close();
      const { bytes } = await storeFiles(NAME);
      store = await open<Uint8Array, Uint8Array>(NAME);
      return { file_bytes: bytes, space: bytes / (this.#pairs * PAIR_BYTES) };
    });
    await this.#read('read after compact', store);
    await this.#phase('delete', this.#pairs, async () => {
      await this.#each('delete', this.#pairs, (number) => void store.delete(keyOf(number)));
      store.commit();
      expect('delete', store.count(), 0);
      return {};
    });
    this.#row({
      phase: 'memory',
      ops: 0,
      seconds: 0,
      more: { memory_max: this.#memoryMax, memory_budget: this.#memoryBudget },
    });
    await store.close();
  }

  async transactions(): Promise<void> {
    const store = await open<Uint8Array, Uint8Array>(NAME);
    await this.#phase('transactions: write', this.#pairs, async () => {
      for (let from = 0; from < this.#pairs; from += TRANSACTION) {
        const end = Math.min(from + TRANSACTION, this.#pairs);
        const batch = store.batch();
        for (let number = from; number < end; number++) batch.set(keyOf(number), valueFor(number));
        batch.commit({ durability: 'relaxed' });
        this.#done('transactions: write', end);
        await turn();
      }
      return {};
    });
    await this.#phase('transactions: read', this.#pairs, async () => {
      const random = randomBelow(this.#pairs, 7);
      for (let from = 0; from < this.#pairs; from += TRANSACTION) {
        const snapshot = store.snapshot();
        const end = Math.min(from + TRANSACTION, this.#pairs);
        try {
          let found = 0;
          for (let number = from; number < end; number++) found += Number(snapshot.get(keyOf(random())) !== undefined);
          expect('transactions: read', found, end - from);
        } finally {
          snapshot.close();
        }
        this.#done('transactions: read', end);
        await turn();
      }
      return {};
    });
    await store.close();
  }

  async #load(store: Store): Promise<void> {
    const logical = this.#pairs * PAIR_BYTES;
    let spaceMax = 0;
    await this.#phase('write', this.#pairs, async () => {
      const every = sampleOf(this.#pairs);
      await this.#each('write', this.#pairs, (number) => {
        if (number % every === every - 1) {
          const diskBytes = this.#look(store).disk.bytes;
          // The first few MiB are rather what an empty store weighs.
          if (number > this.#pairs / 4) spaceMax = Math.max(spaceMax, diskBytes / (number * PAIR_BYTES));
        }
        store.set(keyOf(number), valueFor(number));
      });
      store.commit();
      return { space_max: spaceMax };
    });
    await this.#phase('background work after it', 0, async () => {
      await settled(store);
      const {
        log: { writtenBytes: walBytes },
        flush: { writtenBytes: flushBytes },
        compaction: { writtenBytes: compactionBytesWritten },
        disk: { bytes: diskBytes },
      } = store.stats();
      const written = walBytes + flushBytes + compactionBytesWritten;
      return { write_amplification: written / logical, file_bytes: diskBytes, space: diskBytes / logical };
    });
  }

  async #read(phase: string, store: Store): Promise<void> {
    await this.#phase(phase, this.#pairs, async () => {
      const random = randomBelow(this.#pairs, 3);
      let wrong = 0;
      await this.#each(phase, this.#pairs, () => {
        const number = random();
        if (!isValueFor(store.get(keyOf(number)), number)) wrong++;
      });
      expect(`${phase}, wrong`, wrong, 0);
      this.#look(store);
      return {};
    });
  }

  async #scans(store: Store): Promise<void> {
    const wanted = Math.min(SCANNED, this.#pairs);
    await this.#phase('iterate', wanted, async () => {
      let found = 0;
      for (const _ of store.entries({ limit: wanted })) found++;
      expect('iterate', found, wanted);
      return {};
    });
    await this.#phase('range', wanted, async () => {
      const random = randomBelow(this.#pairs, 5);
      await this.#each('range', wanted / RANGE, () => {
        for (const _ of store.entries({ gte: keyOf(random()), limit: RANGE }));
      });
      return {};
    });
  }

  async #beside(store: Store): Promise<void> {
    const writes = Math.min(WRITES_BESIDE, this.#pairs / READS_PER_WRITE);
    await this.#phase('read while writing', writes * (1 + READS_PER_WRITE), async () => {
      const random = randomBelow(this.#pairs, 9);
      let wrong = 0;
      await this.#each('read while writing', writes, (i) => {
        const number = (i * 7919) % this.#pairs;
        for (let read = 0; read < READS_PER_WRITE; read++) {
          const asked = random();
          if (!isValueFor(store.get(keyOf(asked)), asked)) wrong++;
        }
        store.set(keyOf(number), valueFor(number));
      });
      store.commit();
      expect('read while writing, wrong', wrong, 0);
      return { writes, reads: writes * READS_PER_WRITE };
    });
    await settled(store);
  }

  async #phase(phase: string, ops: number, work: () => Promise<ScaleRow['more']>): Promise<void> {
    this.#progress(phase);
    const started = now();
    const more = await work();
    this.#row({ phase, ops, seconds: (now() - started) / 1000, more });
  }

  #row(row: ScaleRow): void {
    this.#emit({ type: 'row', row });
  }

  /** Whoever waits hears of a phase again before it takes them for dead. */
  #each(phase: string, count: number, step: (number: number) => void): Promise<void> {
    return each(count, step, (percent) => this.#progress(`${phase} ${percent}%`));
  }

  #done(phase: string, pairs: number): void {
    this.#progress(`${phase} ${Math.round((pairs * 100) / this.#pairs)}%`);
  }

  #progress(text: string): void {
    this.#emit({ type: 'progress', text });
  }

  #look(store: Store): StoreStats {
    const stats = store.stats();
    this.#memoryMax = Math.max(this.#memoryMax, heldBytes(stats));
    this.#memoryBudget = 32 * 1024 * 1024;
    return stats;
  }
}

/** Waits until no flush and no compaction was installed for a while. */
async function settled(store: Store): Promise<void> {
  const QUIET_MS = 500;
  let seen = '';
  let since = now();
  while (now() - since < QUIET_MS) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    const {
      flush: { count: flushes },
      compaction: { count: compactions, movedTables: moves },
      memtable: { frozen },
    } = store.stats();
    const state = `${flushes} ${compactions} ${moves} ${frozen}`;
    if (state !== seen || frozen > 0) since = now();
    seen = state;
  }
}

/** Removes what a run that was ended has left. */
export async function removeScaleStore(): Promise<void> {
  await deleteStore(NAME);
}

/** Runs all phases, each store in turn. */
export async function runScale(plan: ScalePlan, emit: Emit): Promise<void> {
  await deleteStore(NAME);
  const run = new Run(plan.pairs, emit);
  await run.points();
  await deleteStore(NAME);
  await run.transactions();
  await deleteStore(NAME);
}
