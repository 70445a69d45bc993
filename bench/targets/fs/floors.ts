/**
 * `varve/synchronous` on files in Node, beside bare file calls of the same bytes in the same folder.
 *
 * Invariant: a row and its floor take turns, round by round, so that a busy machine is equally busy for both; each figure is
 * the median of its rounds. The floor of a write is what the same durability costs without any store: one write call for
 * each append, one fdatasync for each strict write. Reads are beside one read call of a value whose place is known.
 */

import * as fs from 'node:fs';
import { join } from 'node:path';
import { files } from 'varve/fs';
import { open, type SyncStore } from 'varve/synchronous';
import { duration, rate, times } from '../../core/figures.ts';
import { Random } from '../../core/generator.ts';
import { Latencies, median, type Percentiles } from '../../core/latency.ts';

type Store = SyncStore<string, Uint8Array>;

const KEYS = 100_000;
const VALUE_BYTES = 100;
/** A key of 16 characters, a value, and about what a record adds to them. */
const RECORD_BYTES = 16 + VALUE_BYTES + 28;
/** Sets of one turn where they are grouped: about 64 KiB, which is logged at once. */
const GROUP = 455;
const ROUND_MS = 300;
/** The bare file begins again when it has grown so long. */
const FLOOR_BYTES_MAX = 64 << 20;
/** Sets of the run that looks at pauses: enough for level 0 to be merged several times. */
const PAUSE_SETS = 400_000;
const PAUSE_BURST = 64;

const random = new Random(1);
const value = Uint8Array.from({ length: VALUE_BYTES }, () => random.below(256));
const keyOf = (number: number): string => String(number * 7919).padStart(16, '0');
const anyKey = (): string => keyOf(random.below(KEYS));

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** The file of the floor. */
class Bare {
  readonly #file: number;
  readonly #record = new Uint8Array(RECORD_BYTES).fill(7);
  readonly #group = new Uint8Array(RECORD_BYTES * GROUP).fill(7);
  #end = 0;

  constructor(directory: string) {
    this.#file = fs.openSync(join(directory, 'bare'), fs.constants.O_RDWR | fs.constants.O_CREAT);
  }

  append(): void {
    this.#write(this.#record);
  }

  appendGroup(): void {
    this.#write(this.#group);
  }

  flush(): void {
    fs.fdatasyncSync(this.#file);
  }

  /** Makes the file as long as the values that `read` reads. */
  fill(): void {
    fs.writeSync(this.#file, new Uint8Array(KEYS * RECORD_BYTES), 0, KEYS * RECORD_BYTES, 0);
  }

  read(number: number): Uint8Array {
    const bytes = new Uint8Array(VALUE_BYTES);
    fs.readSync(this.#file, bytes, 0, VALUE_BYTES, number * RECORD_BYTES);
    return bytes;
  }

  close(): void {
    fs.closeSync(this.#file);
  }

  #write(bytes: Uint8Array): void {
    if (this.#end + bytes.length > FLOOR_BYTES_MAX) {
      this.#end = 0;
      fs.ftruncateSync(this.#file, 0);
    }
    this.#end += fs.writeSync(this.#file, bytes, 0, bytes.length, this.#end);
  }
}

interface Row {
  readonly title: string;
  readonly floorTitle: string;
  /** Operations that one call does. */
  readonly each: number;
  /** Whether it runs on a store that nothing else writes to, loaded and merged. */
  readonly reads?: boolean;
  readonly run: (store: Store) => void;
  readonly floor: (bare: Bare) => void;
}

const ROWS: readonly Row[] = [
  {
    title: 'set, grouped (64 KiB a turn)',
    floorTitle: 'one write of 64 KiB',
    each: GROUP,
    run: (store) => {
      for (let i = 0; i < GROUP; i++) store.set(anyKey(), value);
      store.commit();
    },
    floor: (bare) => bare.appendGroup(),
  },
  {
    title: 'set, one append each',
    floorTitle: 'one write each',
    each: 1,
    run: (store) => {
      store.set(anyKey(), value);
      store.commit();
    },
    floor: (bare) => bare.append(),
  },
  {
    title: 'set, strict',
    floorTitle: 'one write and fdatasync each',
    each: 1,
    run: (store) => void store.set(anyKey(), value, { durability: 'strict' }),
    floor: (bare) => {
      bare.append();
      bare.flush();
    },
  },
  {
    title: 'get, random of 100k',
    floorTitle: 'one read each, its place known',
    each: 1,
    reads: true,
    run: (store) => {
      if (store.get(anyKey()) === undefined) throw new Error('A key is missing.');
    },
    floor: (bare) => void bare.read(random.below(KEYS)),
  },
  {
    title: 'range of 100 entries',
    floorTitle: '100 reads, their places known',
    each: 1,
    reads: true,
    run: (store) => {
      let count = 0;
      for (const _ of store.entries({ gte: keyOf(random.below(KEYS - 200)), limit: 100 })) count++;
      if (count === 0) throw new Error('A range is empty.');
    },
    floor: (bare) => {
      const from = random.below(KEYS - 100);
      for (let i = 0; i < 100; i++) bare.read(from + i);
    },
  },
];

/** Calls for a while; answers operations a second. The work between turns, slices of merges, is in it. */
async function measure(call: () => Promise<void> | void, each: number): Promise<number> {
  const started = performance.now();
  let ms = 0;
  let calls = 0;
  while (ms < ROUND_MS) {
    const turnEnds = performance.now() + 8;
    do {
      await call();
      calls++;
    } while (performance.now() < turnEnds);
    await turn();
    ms = performance.now() - started;
  }
  return (calls * each * 1000) / ms;
}

async function openAt(directory: string, name: string): Promise<Store> {
  return open<string, Uint8Array>(name, { storage: files(directory) });
}

async function load(store: Store): Promise<void> {
  for (let number = 0; number < KEYS; number++) store.set(keyOf(number), value);
  await store.compact();
}

async function rows(directory: string, rounds: number): Promise<string[]> {
  const lines = [
    '| varve/synchronous on files, Node | operations a second | the floor | a second | ratio |',
    '| --- | --: | --- | --: | --: |',
  ];
  for (const row of ROWS) {
    const store = await openAt(directory, `rows ${row.title.replace(/\W+/g, ' ')}`);
    const bare = new Bare(directory);
    if (row.reads) {
      await load(store);
      bare.fill();
    }
    const found: { own: number; floor: number }[] = [];
    for (let round = 0; round <= rounds; round++) {
      const own = await measure(() => row.run(store), row.each);
      const floor = await measure(() => row.floor(bare), row.each);
      // The first warms up.
      if (round > 0) found.push({ own, floor });
    }
    const own = median(found.map((one) => one.own));
    const floor = median(found.map((one) => one.floor));
    const cells = [row.title, rate(own), row.floorTitle, rate(floor), times(own / floor)];
    lines.push(`| ${cells.join(' | ')} |`);
    console.log(lines.at(-1));
    await store.close();
    bare.close();
  }
  return lines;
}

/** How long the thread is kept from other work, while sets go on and tables are flushed and merged. */
async function pauses(directory: string): Promise<string[]> {
  const store = await openAt(directory, 'pauses');
  const bursts = new Latencies(PAUSE_SETS / PAUSE_BURST);
  const between = new Latencies(PAUSE_SETS / PAUSE_BURST);
  for (let done = 0; done < PAUSE_SETS; done += PAUSE_BURST) {
    const started = performance.now();
    for (let i = 0; i < PAUSE_BURST; i++) store.set(anyKey(), value);
    const ended = performance.now();
    await turn();
    bursts.add((ended - started) * 1000);
    between.add((performance.now() - ended) * 1000);
  }
  const {
    flush: { count: flushes },
    compaction: { count: compactions, writeAmplification },
  } = store.stats();
  await store.close();
  const line = (title: string, { p50, p99, max }: Percentiles): string =>
    `| ${title} | ${duration(p50)} | ${duration(p99)} | ${duration(max)} |`;
  return [
    `${PAUSE_SETS.toLocaleString('en-US')} sets, ${PAUSE_BURST} a turn; ${flushes} flushes and ${compactions} merges meanwhile, write amplification ${writeAmplification.toFixed(1)}.`,
    '',
    '| | p50 | p99 | longest |',
    '| --- | --: | --: | --: |',
    line(`${PAUSE_BURST} sets`, bursts.percentiles()),
    line('until the turn comes back', between.percentiles()),
  ];
}

/** Runs all of it in a folder; answers the tables. */
export async function floors(directory: string, rounds: number): Promise<string> {
  const lines = [...(await rows(directory, rounds)), '', ...(await pauses(directory))];
  return `${lines.join('\n')}\n`;
}
