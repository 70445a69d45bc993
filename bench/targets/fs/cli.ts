/**
 * `npm run bench -- fs`: the suites of the worker in Node, on stores in files beside bare file calls, or with `--peers` beside
 * SQLite and LevelDB. `npm run bench -- micro` is its suite `micro`.
 *
 * Invariant: a store that holds something else than was written fails the run. A peer that cannot be had, or fails, is told,
 * and the others go on.
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';
import type { Plan } from '../../core/plan.ts';
import { Gathered, markdown } from '../../core/result.ts';
import { runSuites } from '../../core/runner.ts';
import { suites } from '../../core/suite.ts';
import '../../suites/all.ts';
import {
  command,
  failIfWrong,
  namesOf,
  numberOf,
  printer,
  provenance,
  provenanceText,
  type ServerResult,
  writeFiles,
} from '../command.ts';
import { bareFile, PEERS, peerEngine, varveEngines } from './engines.ts';

const LOOPS = 'write-seq,write-rand,write-batch,read-rand-disk,range-100,mixed-70,delete,strict-set,open,durability';
const LIVES = 'queue,rotate,counters,overwrite-steady,sessions';
const KNOWN = suites()
  .filter(({ accesses }) => accesses.includes('worker'))
  .map(({ name }) => name);

const HELP = `npm run bench -- fs [options]

  --peers LIST       of ${PEERS.join(', ')}, beside Varve (default: bare file calls)
  --suite LIST       of ${KNOWN.join(', ')}
                     (default: ${LOOPS}; with peers also ${LIVES})
  --quick            fewer calls and shorter rounds
  --rounds N         (default 5; with --quick 3)
  --directory PATH   where the files are (default: the system's folder for temporary ones)
  --json FILE        writes the result
  --markdown FILE    writes the tables that are printed`;

const ROUND_MS = { quick: 100, full: 1000 } as const;
const OPTIONS = {
  peers: { type: 'string' },
  suite: { type: 'string', multiple: true },
  quick: { type: 'boolean', default: false },
  rounds: { type: 'string' },
  directory: { type: 'string', default: tmpdir() },
  json: { type: 'string' },
  markdown: { type: 'string' },
  help: { type: 'boolean', default: false },
} as const;

await command(async () => {
  const { values } = parseArgs({ options: OPTIONS });
  if (values.help) return console.log(HELP);
  const usual = values.peers === undefined ? LOOPS : `${LOOPS},${LIVES}`;
  const mode = values.quick ? 'quick' : 'full';
  const directory = mkdtempSync(join(values.directory, 'varve-bench-'));
  const gathered = new Gathered();
  try {
    const engines = varveEngines(directory);
    if (values.peers === undefined) engines.push(bareFile(directory));
    for (const name of values.peers === undefined ? [] : namesOf('peers', values.peers, PEERS)) {
      await peerEngine(name, directory).then(
        (engine) => engines.push(engine),
        (error: Error) => gathered.problems.push(`${name}: ${error.message}`),
      );
    }
    const plan: Plan = {
      mode,
      suites: namesOf('suite', values.suite?.join() ?? usual, KNOWN),
      engines: engines.map(({ name }) => name),
      accesses: ['worker'],
      rounds: Math.ceil(numberOf('rounds', values.rounds ?? (values.quick ? '3' : '5'))),
      seed: 1,
      scale: 1,
      custom: { round_ms: ROUND_MS[mode] },
    };
    const print = printer();
    const { signal } = new AbortController();
    await runSuites(plan, {
      engines,
      accesses: ['worker'],
      signal,
      place: 'node',
      emit: (event) => {
        gathered.take(event);
        print(event);
      },
    });
    const told = engines.flatMap(({ name, version }) => (version === undefined ? [] : [[name, version] as const]));
    const result: ServerResult = {
      date: new Date().toISOString(),
      ...provenance(),
      versions: { node: process.versions.node, ...Object.fromEntries(told) },
      rows: gathered.rows,
      problems: gathered.problems,
    };
    const text = markdown(gathered, engines, `${result.date}, on Node. ${provenanceText(result)}`);
    console.log(`\n${text}`);
    writeFiles(result, text, values);
    failIfWrong(result);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});
