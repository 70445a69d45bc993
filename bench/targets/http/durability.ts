/**
 * `durability`: the three levels side by side under the CRUD mix of 100 clients over HTTP, on Node over files. (Sets that are
 * awaited one by one at each level are the suite `durability` of `npm run bench -- fs`.)
 *
 * Invariant: the levels take turns round by round. What was acknowledged is read back in the end; for `relaxed` after the
 * server was killed (SIGKILL), which is what it promises to survive, and for `strict` likewise: a power cut cannot be had here.
 */

import { join } from 'node:path';
import type { Durability } from 'varve';
import type { Row } from '../../core/row.ts';
import { Ledger } from './ledger.ts';
import { type Extent, Runner, rowsOf, type ServerRound } from './runner.ts';
import { type Server, startServer } from './server.ts';
import { RemoteStore } from './store.ts';
import { CRUD } from './suites.ts';

const LEVELS: readonly Durability[] = ['memory', 'relaxed', 'strict'];
const CLIENTS = 100;
const KEYS = 20_000;
/** The published load test by level: 100 clients, 1 min 45 s, of another store on another machine. */
const PUBLISHED: Readonly<Record<Durability, string>> = {
  memory: '1,585 req/s, p95 1.82 s, 0% errors',
  relaxed: '795 req/s, p95 1.35 s, 1.1% errors',
  strict: '795 req/s, p95 1.35 s, 1.1% errors',
};

interface Level {
  readonly level: Durability;
  readonly server: Server;
  readonly store: RemoteStore;
  readonly runner: Runner;
  readonly rounds: ServerRound[];
}

async function startLevel(directory: string, level: Durability, extent: Extent): Promise<Level> {
  const server = await startServer('node', { directory: join(directory, level), durability: level });
  try {
    const store = new RemoteStore(server.url, new Ledger(KEYS));
    await store.load();
    const runner = new Runner(store, { runtime: 'node', durability: level }, extent);
    await runner.warmUp(CRUD);
    return { level, server, store, runner, rounds: [] };
  } catch (error) {
    await server.stop();
    throw error;
  }
}

/** What the pass over the store finds, after its server was killed and another one has opened it. */
async function differenceOf(directory: string, { level, server, store }: Level): Promise<string | undefined> {
  if (level === 'memory') return store.compare();
  await server.kill();
  const next = await startServer('node', { directory: join(directory, level), durability: level });
  try {
    return await store.at(next.url).compare();
  } finally {
    await next.stop();
  }
}

/** Runs the suite on stores in files below `directory`. */
export async function durability(directory: string, extent: Extent): Promise<Row[]> {
  const levels: Level[] = [];
  try {
    for (const level of LEVELS) levels.push(await startLevel(directory, level, extent));
    for (let round = 0; round < extent.rounds; round++) {
      for (const { runner, rounds } of levels) {
        rounds.push(await runner.round(CRUD, CLIENTS, { seconds: extent.seconds / extent.rounds }));
      }
    }
    const rows: Row[] = [];
    for (const one of levels) {
      const { level, rounds } = one;
      const head = { suite: 'durability', title: `CRUD mix over HTTP, ${level}`, runtime: 'node', durability: level };
      const work = { ...head, connections: CLIENTS, published: PUBLISHED[level], rounds };
      rows.push(...rowsOf(work, await differenceOf(directory, one)));
    }
    return rows;
  } finally {
    await Promise.all(levels.map(({ server }) => server.stop()));
  }
}
