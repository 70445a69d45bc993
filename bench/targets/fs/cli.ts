/**
 * `npm run bench -- fs`: the suites of the worker in Node, on stores in files beside bare file calls, or with `--peers` beside
 * SQLite and LevelDB. `npm run bench -- micro` is its suite `micro`.
 *
 * Invariant: a store that gives something else than was written fails the run. A peer that is unavailable or fails is a problem
 * of the result, and the others continue.
 */

import type { Plan } from '../../core/plan.ts';
import { runSuites } from '../../core/runner.ts';
import { explain, suites } from '../../core/suite.ts';
import '../../suites/all.ts';
import { map } from '../../peers/map.ts';
import { namesOf, numberOf, runTarget } from '../command.ts';
import { bareFile, PEERS, varveEngines } from './engines.ts';

const LOOPS = 'write-seq,write-rand,write-batch,read-rand-disk,range-100,mixed-70,delete,strict-set,open,durability';
const LIVES = 'queue,rotate,counters,overwrite-steady,sessions';
const KNOWN = suites()
  .filter(({ accesses }) => accesses.includes('worker'))
  .map(({ name }) => name);
const ROUND_MS = { quick: 100, full: 1000 } as const;

await runTarget({
  name: 'fs',
  place: 'on Node',
  flags: {
    peers: ['--peers <list>', `of ${Object.keys(PEERS).join(', ')}, beside Varve (default: bare file calls)`],
    suite: ['--suite <list>', `of ${KNOWN.join(', ')} (default: ${LOOPS}; with peers also ${LIVES})`],
    quick: ['--quick', 'fewer calls and shorter rounds'],
    rounds: ['--rounds <number>', 'interleaved rounds (default 5; with --quick 3)'],
  },
  async run({ peers, suite, quick, rounds = quick ? '3' : '5' }, folder, emit) {
    const engines = varveEngines(folder);
    if (peers === undefined) engines.push(bareFile(folder), map);
    for (const name of peers === undefined ? [] : namesOf('peers', peers, Object.keys(PEERS))) {
      try {
        const engine = await PEERS[name]?.(folder);
        if (engine !== undefined) engines.push(engine);
      } catch (error) {
        emit({ type: 'problem', text: `${name}: ${explain(error)}` });
      }
    }
    const mode = quick ? 'quick' : 'full';
    const plan: Plan = {
      mode,
      suites: namesOf('suite', suite ?? (peers === undefined ? LOOPS : `${LOOPS},${LIVES}`), KNOWN),
      engines: engines.map(({ name }) => name),
      accesses: ['worker'],
      rounds: Math.ceil(numberOf('rounds', rounds)),
      seed: 1,
      scale: 1,
      custom: { round_ms: ROUND_MS[mode] },
    };
    const { signal } = new AbortController();
    await runSuites(plan, { engines, accesses: ['worker'], signal, place: 'node', emit });
    const versions = engines.flatMap(({ name, version }) => (version === undefined ? [] : [[name, version]]));
    return { engines, versions: { node: process.versions.node, ...Object.fromEntries(versions) } };
  },
});
