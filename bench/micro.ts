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

/** Keys of 16 bytes in one buffer, that of `number` at 16 times its number. */
function keysOf(count: number, inOrder: boolean): Uint8Array[] {
  const random = new Random(1);
  return Array.from({ length: count }, (_, number) => {
    const key = new Uint8Array(16);
    const words = new DataView(key.buffer);
    for (let at = 0; at < 16; at += 4) words.setUint32(at, random.next());
    if (inOrder) words.setUint32(0, number);
    return key;
  });
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
  /** What JavaScript's heap grew by for each operation; undefined when a collection came between. */
  readonly bytes: number | undefined;
}

class Subject {
  readonly row: Row;
  readonly rounds: Figures[] = [];
  readonly #store: Store;
  readonly #keys: Uint8Array[];
  readonly #value: Uint8Array;
  readonly #random = new Random(2);
  #number = 0;

  private constructor(row: Row, store: Store, keys: Uint8Array[], value: Uint8Array) {
    this.row = row;
    this.#store = store;
    this.#keys = keys;
    this.#value = value;
  }

  static async make(row: Row): Promise<Subject> {
    const store = await open<Uint8Array, Uint8Array>(`micro ${row.title}`, {
      storage: 'memory',
      memory: 64 << 20,
      compactor: false,
    });
    const keys = keysOf(row.load === 0 ? KEYS : row.load, row.inOrder === true);
    const random = new Random(3);
    const value = Uint8Array.from({ length: row.valueBytes }, () => random.below(256));
    for (let number = 0; number < row.load; number++) {
      await patiently(store, () => void store.set(keys[number] as Uint8Array, value));
    }
    if (row.compacted) await store.compact();
    return new Subject(row, store, keys, value);
  }

  async round(): Promise<void> {
    let ops = 0;
    let ms = 0;
    const growths: number[] = [];
    while (ms < ROUND_MS) {
      const before = process.memoryUsage();
      const started = performance.now();
      await this.#burst();
      ms += performance.now() - started;
      const after = process.memoryUsage();
      const growth = after.heapUsed + after.arrayBuffers - before.heapUsed - before.arrayBuffers;
      if (growth >= 0) growths.push(growth / BURST);
      ops += BURST;
    }
    this.rounds.push({ ns: (ms * 1e6) / ops, bytes: growths.length > 0 ? median(growths) : undefined });
  }

  async close(): Promise<void> {
    await this.#store.close();
    await deleteStore(this.#store.name);
  }

  async #burst(): Promise<void> {
    const store = this.#store;
    for (let done = 0; done < BURST; done++) {
      const at = this.row.inOrder ? this.#number++ % this.#keys.length : this.#random.below(this.#keys.length);
      const key = this.#keys[at] as Uint8Array;
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
    '| wasm in Node, varve/sync in memory | ns | bytes of heap | published, ns |',
    '| --- | --: | --: | --: |',
  ];
  for (const row of ROWS) {
    const subject = await Subject.make(row);
    // One that warms up.
    for (let round = 0; round <= Number(values.rounds); round++) await subject.round();
    const rounds = subject.rounds.slice(1);
    const grown = rounds.map(({ bytes }) => bytes).filter((bytes) => bytes !== undefined);
    const ns = median(rounds.map((round) => round.ns));
    const heap = grown.length > 0 ? Math.round(median(grown)) : '-';
    lines.push(`| ${row.title} | ${Math.round(ns)} | ${heap} | ${row.published} |`);
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
