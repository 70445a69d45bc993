/**
 * The suite `micro`: nanoseconds of single operations of the wasm build through `varve/synchronous`, in memory, in a browser and in
 * Node. Node also reports by how much its heap grew. Allocations of the core are reported by the native bench alone
 * (`npm run bench:native -- micro`): wasm has nothing to count them with.
 *
 * Invariant: the rows are those of the native `micro` (crates/varve-bench), with the same keys and values, end to end: the
 * key is encoded, the value delivered. Storage is memory, so no system call is in it; a flush or compaction that falls due
 * runs on the same thread, in slices between turns.
 */

import { open, type SyncStore } from 'varve/synchronous';
import { GROUP_STEPS, now, timerStepMs, turn } from '../core/clock.ts';
import { Random } from '../core/generator.ts';
import { median } from '../core/latency.ts';
import { type Round, roundOf } from '../core/measure.ts';
import { budgetMs } from '../core/plan.ts';
import { type Context, hasSync, register, report, SYNC } from '../core/suite.ts';

type Store = SyncStore<Uint8Array, Uint8Array>;

/** Operations of one burst, between two turns. */
const BURST = 1000;
/** Keys that writes choose from. */
const KEYS = 200_000;

/** One operation. */
interface MicroRow {
  readonly title: string;
  /** Nanoseconds that S3 of the workloads published, native and on another machine. */
  readonly published: number;
  /** Entries loaded before, and whether they lie in one table then. */
  readonly load: number;
  readonly compacted: boolean;
  readonly valueBytes: number;
  readonly run: (store: Store, key: Uint8Array, value: Uint8Array) => void;
  /** Keys come in order. */
  readonly inOrder?: boolean;
}

const set: MicroRow['run'] = (store, key, value) => void store.set(key, value);
const get: MicroRow['run'] = (store, key) => {
  if (store.get(key) === undefined) throw new Error('A key is missing.');
};
const write = { load: 0, compacted: false, valueBytes: 100, run: set };
const read = { compacted: false, valueBytes: 100, run: get };

const ROWS: readonly MicroRow[] = [
  { ...write, title: 'put', published: 354 },
  { ...read, title: 'get, memtable', published: 93, load: 10_000 },
  { ...read, title: 'get, SSTable', published: 132, load: 100_000, compacted: true },
  {
    ...write,
    title: 'put + get',
    published: 532,
    run: (store, key, value) => {
      store.set(key, value);
      get(store, key, value);
    },
  },
  { ...write, title: 'sequential write', published: 420, inOrder: true },
  { ...read, title: 'random read', published: 212, load: KEYS },
  { ...write, title: 'delete', published: 348, load: KEYS, run: (store, key) => void store.delete(key) },
  { ...write, title: 'large values (4 KB)', published: 4900, valueBytes: 4096 },
  { ...write, title: 'small values (8 B)', published: 438, valueBytes: 8 },
];

const keyWords = new Uint32Array(4);
const keyBytes = new Uint8Array(keyWords.buffer);

/** The key of `number`, in a buffer that the next one uses again: the store copies it at once. */
function keyOf(number: number, inOrder: boolean): Uint8Array {
  let word = number;
  for (let at = 0; at < 4; at++) {
    word = Math.imul(word + 0x9e37_79b9, 0x21f0_aaad);
    word ^= word >>> 15;
    keyWords[at] = word;
  }
  if (inOrder) for (let at = 0; at < 4; at++) keyBytes[at] = number >>> (24 - 8 * at);
  return keyBytes;
}

/** Loads what a row needs. Returns a function that makes BURST operations. */
async function burstOf(row: MicroRow, store: Store): Promise<() => void> {
  const random = new Random(3);
  const value = Uint8Array.from({ length: row.valueBytes }, () => random.below(256));
  for (let number = 0; number < row.load; number++) store.set(keyOf(number, false), value);
  if (row.compacted) await store.compact();
  const keys = row.load === 0 ? KEYS : row.load;
  let number = 0;
  const next = row.inOrder ? () => keyOf(number++, true) : () => keyOf(random.below(keys), false);
  return () => {
    for (let done = 0; done < BURST; done++) row.run(store, next(), value);
  };
}

/** Of Node; browsers report nothing as fine. */
function heapBytes(): number {
  const memory = globalThis.process?.memoryUsage();
  return memory === undefined ? Number.NaN : memory.heapUsed + memory.arrayBuffers;
}

/** Bursts until the time is up. A get that finds nothing throws, so what is counted was found. */
async function timed(
  burst: () => void,
  entryBytes: number,
  bursts: number,
  budget_ms: number,
  growths: number[] = [],
): Promise<Round> {
  const latencies: number[] = [];
  const operations = bursts * BURST;
  let elapsed = 0;
  do {
    const heap = heapBytes();
    const start = now();
    for (let made = 0; made < bursts; made++) burst();
    const took = now() - start;
    const grown = heapBytes() - heap;
    // A collection came between.
    if (grown >= 0) growths.push(grown / operations);
    elapsed += took;
    latencies.push((took * 1000) / operations);
    const left = now();
    await turn();
    elapsed += now() - left;
  } while (elapsed < budget_ms);
  const ops = operations * latencies.length;
  return roundOf({ ops, bytes: ops * entryBytes }, elapsed, latencies);
}

/** Runs the rows, one after another. */
async function run(context: Context): Promise<void> {
  const { plan, step } = context;
  const bursts = Math.max(1, Math.ceil((GROUP_STEPS * timerStepMs() * 1e6) / (BURST * 100)));
  for (const row of ROWS) {
    step(`micro: ${row.title}`);
    const options = { storage: 'memory', memoryBytes: 64 << 20, compactor: false } as const;
    await using store = await open<Uint8Array, Uint8Array>(`micro ${row.title}`, options);
    const burst = await burstOf(row, store);
    const entryBytes = keyBytes.length + row.valueBytes;
    await timed(burst, entryBytes, 1, 0);
    const rounds: Round[] = [];
    const growths: number[] = [];
    for (let round = 0; round < plan.rounds; round++) {
      rounds.push(await timed(burst, entryBytes, bursts, budgetMs(plan) / 4, growths));
    }
    const heap = growths.length === 0 ? '' : `, ${Math.round(median(growths))} bytes of heap`;
    const each = median(rounds.map(({ tally, elapsed_ms }) => (elapsed_ms * 1e6) / tally.ops));
    const note = `${Math.round(each)} ns${heap}; published, native: ${row.published} ns`;
    const head = { suite: 'micro', phase: row.title, durability: 'memory', groupSize: BURST * bursts, note } as const;
    report(context, SYNC, head, rounds);
  }
}

register({
  name: 'micro',
  title: 'single operations in memory, wasm',
  accesses: ['worker'],
  steps: (_, engines) => (hasSync(engines) ? ROWS.length : 0),
  run,
});
