/**
 * `durability`: the three levels side by side under the CRUD mix of 100 clients over HTTP, on Node over files. (Sets that are
 * awaited one by one at each level are the suite `durability` of `npm run bench -- fs`.)
 *
 * Invariant: the levels take turns round by round. Acknowledged writes are read back in the end, for `relaxed` and `strict`
 * after the server was killed (SIGKILL), which `relaxed` promises to survive. A power cut is impossible here.
 */

import { join } from 'node:path';
import type { Durability } from 'varve';
import type { Emit } from '../../core/plan.ts';
import { type Extent, Runner, reportWork, type ServerRound } from './runner.ts';
import { startServer } from './server.ts';
import { CRUD } from './suites.ts';

const CLIENTS = 100;
/** The published load test by level: 100 clients, 1 min 45 s, of another store on another machine. */
const PUBLISHED = {
  memory: '1,585 req/s, p95 1.82 s, 0% errors',
  relaxed: '795 req/s, p95 1.35 s, 1.1% errors',
  strict: '795 req/s, p95 1.35 s, 1.1% errors',
} as const satisfies Record<Durability, string>;

interface Level {
  readonly level: keyof typeof PUBLISHED;
  readonly options: { readonly directory: string; readonly durability: Durability };
  readonly runner: Runner;
  readonly rounds: ServerRound[];
}

/** Kills the server, and compares the store after another one has opened it. */
async function differenceOf({ level, options, runner: { server, store } }: Level): Promise<string | undefined> {
  if (level === 'memory') return store.compare();
  await server.kill();
  const next = await startServer('node', options);
  try {
    return await store.at(next.url).compare();
  } finally {
    await next.stop();
  }
}

/** Runs the suite on stores in files below `directory`. */
export async function durability(directory: string, extent: Extent, emit: Emit): Promise<void> {
  const levels: Level[] = [];
  try {
    for (const level of ['memory', 'relaxed', 'strict'] as const) {
      const options = { directory: join(directory, level), durability: level };
      levels.push({ level, options, runner: await Runner.start('node', options, extent), rounds: [] });
    }
    for (let round = 0; round < extent.rounds; round++) {
      for (const { runner, rounds } of levels) {
        rounds.push(await runner.round(CRUD, CLIENTS, { seconds: extent.seconds / extent.rounds }));
      }
    }
    for (const one of levels) {
      const { level, rounds } = one;
      const head = { suite: 'durability', title: `CRUD mix over HTTP, ${level}`, runtime: 'node', durability: level };
      const work = { ...head, connections: CLIENTS, published: PUBLISHED[level], rounds };
      reportWork(emit, work, await differenceOf(one));
    }
  } finally {
    await Promise.all(levels.map(({ runner }) => runner.server.stop()));
  }
}
