/**
 * `npm run bench -- micro`: single operations of the wasm build through `varve/sync`, in memory, in Node.
 *
 * Invariant: the rows are those of the native `micro` (crates/varve-bench), with the same keys and values, end to end: the
 * key is encoded, the value delivered. A row is the median of its rounds; rows take turns. Storage is memory, so no
 * system call is in it; a flush or compaction that falls due runs on the same thread, in slices between turns.
 */

import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { deleteStore, open, type SyncStore, VarveError } from 'varve/sync';
import { Random } from './generator.ts';
import { median } from './latency.ts';

const HELP = `npm run bench -- micro [options]

  --rounds N         rounds (default 5)
  --markdown FILE    writes the table that is printed`;

type Store = SyncStore<Uint8Array, Uint8Array>;

/** Operations of one burst, between two turns. */
const BURST = 1000;
/** A round of a row lasts at least so long. */
const ROUND_MS = 200;
const KEYS = 200_000;

interface Row {
  readonly title: string;
  readonly published: number;
  /** Entries loaded before, and whether they lie in one table then. */
  readonly load: number;
  readonly compacted: boolean;
  readonly valueBytes: number;
  readonly run: (store: Store, key: Uint8Array, value: Uint8Array) => void;
  /** Keys come in order. */
  readonly inOrder?: boolean;
}

const set: Row['run'] = (store, key, value) => void store.set(key, value);
const get: Row['run'] = (store, key) => {
  if (store.get(key) === undefined) throw new Error('A key is missing.');
};
const write = { load: 0, compacted: false, valueBytes: 100, run: set };
const read = { compacted: false, valueBytes: 100, run: get };

const ROWS: readonly Row[] = [
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

/** Makes a write; when the store is busy, waits and makes it again. */
async function patiently(store: Store, call: () => void): Promise<void> {
  for (;;) {
    try {
      call();
      return;
    } catch (error) {
      if (!(error instanceof VarveError) || error.code !== 'VARVE_BUSY') throw error;
      await store.room();
    }
  }
}

interface Figures {
  readonly ns: number;
  /** Of the processor, all threads of the process. */
  readonly cpu_ns: number;
  /** What JavaScript's heap grew by for each operation; undefined when a collection came between. */
  readonly bytes: number | undefined;
}

class Subject {
  readonly row: Row;
  readonly rounds: Figures[] = [];
  readonly #store: Store;
  readonly #keys: number;
  readonly #value: Uint8Array;
  readonly #random = new Random(2);
  #number = 0;

  private constructor(row: Row, store: Store, value: Uint8Array) {
    this.row = row;
    this.#store = store;
    this.#keys = row.load === 0 ? KEYS : row.load;
    this.#value = value;
  }

  static async make(row: Row): Promise<Subject> {
    const store = await open<Uint8Array, Uint8Array>(`micro ${row.title}`, {
      storage: 'memory',
      memory: 64 << 20,
      compactor: false,
    });
    const random = new Random(3);
    const value = Uint8Array.from({ length: row.valueBytes }, () => random.below(256));
    for (let number = 0; number < row.load; number++) {
      await patiently(store, () => void store.set(keyOf(number, false), value));
    }
    if (row.compacted) await store.compact();
    return new Subject(row, store, value);
  }

  async round(): Promise<void> {
    let ops = 0;
    let ms = 0;
    let cpu_us = 0;
    const growths: number[] = [];
    while (ms < ROUND_MS) {
      const before = process.memoryUsage();
      const started = performance.now();
      const working = process.cpuUsage();
      await this.#burst();
      ms += performance.now() - started;
      const { user, system } = process.cpuUsage(working);
      cpu_us += user + system;
      const after = process.memoryUsage();
      const growth = after.heapUsed + after.arrayBuffers - before.heapUsed - before.arrayBuffers;
      if (growth >= 0) growths.push(growth / BURST);
      ops += BURST;
    }
    this.rounds.push({
      ns: (ms * 1e6) / ops,
      cpu_ns: (cpu_us * 1e3) / ops,
      bytes: growths.length > 0 ? median(growths) : undefined,
    });
  }

  async close(): Promise<void> {
    await this.#store.close();
    await deleteStore(this.#store.name);
  }

  async #burst(): Promise<void> {
    const store = this.#store;
    const inOrder = this.row.inOrder === true;
    for (let done = 0; done < BURST; done++) {
      const key = inOrder ? keyOf(this.#number++, true) : keyOf(this.#random.below(this.#keys), false);
      try {
        this.row.run(store, key, this.#value);
      } catch (error) {
        if (!(error instanceof VarveError) || error.code !== 'VARVE_BUSY') throw error;
        await store.room();
      }
    }
  }
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      rounds: { type: 'string', default: '5' },
      markdown: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    console.log(HELP);
    return;
  }
  const lines = [
    '| wasm in Node, varve/sync in memory | ns | of the processor | bytes of heap | published, ns |',
    '| --- | --: | --: | --: | --: |',
  ];
  for (const row of ROWS) {
    const subject = await Subject.make(row);
    // One that warms up.
    for (let round = 0; round <= Number(values.rounds); round++) await subject.round();
    const rounds = subject.rounds.slice(1);
    const grown = rounds.map(({ bytes }) => bytes).filter((bytes) => bytes !== undefined);
    const ns = median(rounds.map((round) => round.ns));
    const cpu_ns = median(rounds.map((round) => round.cpu_ns));
    const heap = grown.length > 0 ? Math.round(median(grown)) : '-';
    lines.push(`| ${row.title} | ${Math.round(ns)} | ${Math.round(cpu_ns)} | ${heap} | ${row.published} |`);
    console.log(lines.at(-1));
    await subject.close();
  }
  const text = `${lines.join('\n')}\n`;
  console.log(`\n${text}`);
  if (values.markdown !== undefined) writeFileSync(values.markdown, text);
}

try {
  await main();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
