/**
 * `npm run bench -- http`: the fetch handler under load on Node, Deno and workerd, over real sockets.
 *
 * Invariant: servers are processes of their own, and none outlives the command. A wrong answer fails the run, and so does a
 * store that differs from what was acknowledged; a missed threshold does not.
 */

import { join } from 'node:path';
import { duration, percent, rate } from '../../core/figures.ts';
import type { Emit } from '../../core/plan.ts';
import { atLeast, atMost, type FigureOf, registerThresholds } from '../../core/targets.ts';
import { namesOf, numberOf, runTarget, versionOf } from '../command.ts';
import { type Extent, Runner, runPhases, SECONDS } from './runner.ts';
import { RUNTIMES, type RuntimeName } from './server.ts';
import { BATCH, FIND, LEVEL, LOAD, SINGLE, SUITES, type SuiteName } from './suites.ts';

const QUICK: Extent = { seconds: 0.15, rounds: 1, connections: [25] };
const FULL: Extent = { seconds: SECONDS, rounds: 3, connections: [10, 25, 50, 100] };

const underLoad =
  (figure: 'errors' | 'p95' | 'opsPerSecond'): FigureOf =>
  ({ suite, errors = 0, ops, ...row }) => {
    if (suite !== 'http-load' && suite !== 'durability') return undefined;
    return figure === 'errors' ? errors / (errors + ops) : row[figure];
  };
/** Those of S4. */
registerThresholds(
  atMost('errors under load', 0.01, percent, underLoad('errors')),
  atMost('p95 under load', 500_000, duration, underLoad('p95')),
  atLeast('operations a second under load', 100, rate, underLoad('opsPerSecond')),
);

/** Runs suites on one runtime, on one store. Resolves with the versions of the runtime. */
async function onRuntime(runtime: RuntimeName, suites: SuiteName[], extent: Extent, folder: string, emit: Emit) {
  const durability = runtime === 'workerd' || runtime === 'deno-kv' ? 'strict' : 'relaxed';
  const runner = await Runner.start(runtime, { directory: join(folder, runtime), durability });
  try {
    const single = runtime === 'workerd' ? SINGLE : [...SINGLE, ...FIND];
    for (const [name, works] of Object.entries({ 'http-single': single, 'http-batch': BATCH })) {
      const phases = extent.connections.flatMap((connections) => works.map((work) => ({ ...work, connections })));
      if (suites.includes(name as SuiteName)) await runPhases(name, [runner], phases, extent, emit);
    }
    if (suites.includes('http-load')) await runPhases('http-load', [runner], LOAD, { ...extent, rounds: 1 }, emit);
    return runner.server.versions;
  } finally {
    await runner.server.stop();
  }
}

/** Runs the three levels side by side, on Node; a power cut is impossible here, the death of the server is not. */
async function levels(folder: string, extent: Extent, emit: Emit): Promise<void> {
  const runners: Runner[] = [];
  try {
    for (const durability of ['memory', 'relaxed', 'strict'] as const) {
      runners.push(await Runner.start('node', { directory: join(folder, durability), durability }));
    }
    await runPhases('durability', runners, [LEVEL], extent, emit, (runner) =>
      runner.options.durability === 'memory' ? runner.store.compare() : runner.compareAfterDeath(),
    );
  } finally {
    await Promise.all(runners.map(({ server }) => server.stop()));
  }
}

await runTarget({
  name: 'http',
  place: 'over HTTP',
  flags: {
    suite: ['--suite <list>', `of ${SUITES.join(', ')} (default: all)`],
    quick: ['--quick', 'short rows by 25 connections, and short phases: about a minute for everything'],
    rounds: ['--rounds <number>', 'interleaved rounds (default 3, quick 1)'],
    runtime: ['--runtime <list>', `of ${RUNTIMES.join(', ')} (default: all)`],
    seconds: [
      '--seconds <number>',
      `of each row, all its rounds together (default ${SECONDS}); the phases of http-load are scaled with it`,
    ],
  },
  async run(values, folder, emit) {
    const usual = values.quick ? QUICK : FULL;
    const rounds = Math.ceil(numberOf('rounds', values.rounds ?? String(usual.rounds)));
    const seconds = numberOf('seconds', values.seconds ?? String(usual.seconds));
    const extent: Extent = { ...usual, rounds, seconds };
    const suites = namesOf('suite', values.suite, SUITES);
    const { node } = process.versions;
    const versions: Record<string, string> = { varve: versionOf('..'), node, undici: versionOf('undici') };
    for (const runtime of namesOf('runtime', values.runtime, RUNTIMES)) {
      if (suites.every((suite) => suite === 'durability')) break;
      versions[runtime] = await onRuntime(runtime, suites, extent, folder, emit);
    }
    if (suites.includes('durability')) await levels(folder, extent, emit);
    return { versions };
  },
});
