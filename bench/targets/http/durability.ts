/**
 * `durability`: the three levels side by side, on Node over files: sets awaited one by one, 100 in flight, and the CRUD mix of
 * 100 clients over HTTP.
 *
 * Invariant: the levels take turns round by round. What was acknowledged is read back in the end; for `relaxed` after the
 * server was killed (SIGKILL), which is what it promises to survive, and for `strict` likewise: a power cut cannot be had here.
 */

import { join } from 'node:path';
import { type Durability, open } from 'varve';
import { files } from 'varve/fs';
import { Random } from '../../core/generator.ts';
import { Latencies } from '../../core/latency.ts';
import { keyOf, Ledger } from './ledger.ts';
import { type HttpRow, makeRow, type Round, type RowHead } from './row.ts';
import { type Extent, type OnRow, Runner } from './runner.ts';
import { type Server, startServer } from './server.ts';
import { noOutcomes } from './session.ts';
import { RemoteStore } from './store.ts';
import { CRUD } from './suites.ts';
import { judge, PUBLISHED } from './thresholds.ts';

const LEVELS: readonly Durability[] = ['memory', 'relaxed', 'strict'];
const IN_FLIGHT = [1, 100] as const;
const CLIENTS = 100;
const KEYS = 20_000;
const VALUE_BYTES = 100;

/** Sets at one level on a store that this process has open. */
class DirectSets {
  readonly level: Durability;
  readonly rounds = new Map<number, Round[]>(IN_FLIGHT.map((many) => [many, []]));
  readonly #name: string;
  readonly #directory: string;
  readonly #random = new Random(11);
  /** The number that was last acknowledged for a key; its value is made of it. */
  readonly #acknowledged = new Map<number, number>();
  #written = 0;
  #store: Awaited<ReturnType<typeof DirectSets.open>> | undefined;

  constructor(directory: string, level: Durability) {
    this.level = level;
    this.#directory = directory;
    this.#name = `sets-${level}`;
  }

  static open(name: string, directory: string, level: Durability) {
    return open<string, Uint8Array>(name, { storage: files(directory), durability: level });
  }

  async start(): Promise<void> {
    this.#store = await DirectSets.open(this.#name, this.#directory, this.level);
  }

  /** Sets for a while, so many in flight. */
  async round(in_flight: number, seconds: number): Promise<void> {
    const latencies = new Latencies();
    const outcomes = noOutcomes();
    const started = performance.now();
    const one = async (): Promise<void> => {
      const number = this.#random.below(KEYS);
      const version = ++this.#written;
      const sent = performance.now();
      await this.#store?.set(keyOf(number), valueBytes(version));
      latencies.add((performance.now() - sent) * 1000);
      this.#acknowledged.set(number, Math.max(version, this.#acknowledged.get(number) ?? 0));
      outcomes.requests++;
      outcomes.operations++;
    };
    while (performance.now() - started < seconds * 1000) await Promise.all(Array.from({ length: in_flight }, one));
    this.rounds.get(in_flight)?.push({ outcomes, latencies, seconds: (performance.now() - started) / 1000 });
  }

  /** Reads all of it back, at `relaxed` and `strict` from a store that was closed and opened again. */
  async compare(): Promise<string | undefined> {
    if (this.level !== 'memory') {
      await this.#store?.close();
      await this.start();
    }
    let count = 0;
    for await (const [key, value] of this.#store?.entries() ?? []) {
      const version = this.#acknowledged.get(Number(key.slice(1)));
      if (version === undefined || !sameValue(value, version)) return `The store holds another value of ${key}.`;
      count++;
    }
    await this.#store?.close();
    const expected = this.#acknowledged.size;
    return count === expected ? undefined : `The store holds ${count} of ${expected} acknowledged keys.`;
  }
}

function valueBytes(version: number): Uint8Array {
  const value = new Uint8Array(VALUE_BYTES).fill(version);
  new DataView(value.buffer).setUint32(0, version);
  return value;
}

function sameValue(value: Uint8Array, version: number): boolean {
  return Buffer.compare(value, valueBytes(version)) === 0;
}

const HEAD = { suite: 'durability', runtime: 'node', engine: 'varve' } as const;

async function direct(directory: string, { rounds, seconds }: Extent): Promise<HttpRow[]> {
  const all = LEVELS.map((level) => new DirectSets(directory, level));
  for (const sets of all) await sets.start();
  for (let round = 0; round < rounds; round++) {
    for (const in_flight of IN_FLIGHT) {
      for (const sets of all) await sets.round(in_flight, seconds / rounds);
    }
  }
  const rows: HttpRow[] = [];
  for (const sets of all) {
    const problem = await sets.compare();
    for (const in_flight of IN_FLIGHT) {
      const work = in_flight === 1 ? 'set, awaited one by one' : `set, ${in_flight} in flight`;
      const head: RowHead = { ...HEAD, work, durability: sets.level, loop: 'calls', connections: in_flight };
      const row = makeRow(head, sets.rounds.get(in_flight) ?? []);
      rows.push(problem === undefined ? row : { ...row, verified: false, problem });
    }
  }
  return rows;
}

interface Level {
  readonly level: Durability;
  readonly server: Server;
  readonly store: RemoteStore;
  readonly runner: Runner;
  readonly rounds: Round[];
}

async function startLevel(directory: string, level: Durability, extent: Extent): Promise<Level> {
  const server = await startServer('node', { directory: join(directory, level), durability: level });
  try {
    const store = new RemoteStore(server.url, new Ledger(KEYS));
    await store.load();
    const runner = new Runner(store, { runtime: 'node', durability: level }, extent, () => undefined);
    await runner.warmUp(CRUD);
    return { level, server, store, runner, rounds: [] };
  } catch (error) {
    await server.stop();
    throw error;
  }
}

async function overHttp(directory: string, extent: Extent): Promise<HttpRow[]> {
  const levels: Level[] = [];
  try {
    for (const level of LEVELS) levels.push(await startLevel(directory, level, extent));
    for (let round = 0; round < extent.rounds; round++) {
      for (const { runner, rounds } of levels) {
        rounds.push(await runner.round(CRUD, CLIENTS, { seconds: extent.seconds / extent.rounds }));
      }
    }
    const rows: HttpRow[] = [];
    for (const level of levels) rows.push(await finished(directory, level));
    return rows;
  } finally {
    await Promise.all(levels.map(({ server }) => server.stop()));
  }
}

/** The row of a level, after its server was killed and another one found its store. */
async function finished(directory: string, { level, server, store, rounds }: Level): Promise<HttpRow> {
  const published = PUBLISHED[level];
  const head = {
    ...HEAD,
    work: 'CRUD mix over HTTP',
    durability: level,
    loop: 'closed',
    connections: CLIENTS,
  } as const;
  const row = makeRow({ ...head, published }, rounds);
  const problem = level === 'memory' ? await store.compare() : await afterKill(directory, level, server, store);
  const judged = { ...row, verdict: judge(row) };
  return problem === undefined ? judged : { ...judged, verified: false, problem };
}

async function afterKill(
  directory: string,
  level: Durability,
  server: Server,
  store: RemoteStore,
): Promise<string | undefined> {
  await server.kill();
  const next = await startServer('node', { directory: join(directory, level), durability: level });
  try {
    return await store.at(next.url).compare();
  } finally {
    await next.stop();
  }
}

/** Runs the suite on stores in files below `directory`. */
export async function durability(directory: string, extent: Extent, onRow: OnRow): Promise<HttpRow[]> {
  const rows = [...(await direct(directory, extent)), ...(await overHttp(directory, extent))];
  for (const row of rows) onRow(row);
  return rows;
}
