/**
 * `npm run bench -- http`: the fetch handler under load on Node, Deno and workerd, over real sockets.
 *
 * Invariant: servers are processes of their own, and none outlives the command. An answer that is wrong, or a store that holds
 * something else than was acknowledged, fails the run; a missed threshold does not.
 */

import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { duration, percent, rate } from '../../core/figures.ts';
import { markdown } from '../../core/result.ts';
import type { Row } from '../../core/row.ts';
import { figuresOf, judgeWorst, registerJudge } from '../../core/targets.ts';
import {
  command,
  failIfWrong,
  namesOf,
  numberOf,
  printer,
  provenance,
  provenanceText,
  type ServerResult,
  versionOf,
  writeFiles,
} from '../command.ts';
import { durability } from './durability.ts';
import { Ledger } from './ledger.ts';
import { type Extent, Runner, SECONDS } from './runner.ts';
import { RUNTIMES, type RuntimeName, startServer } from './server.ts';
import { RemoteStore } from './store.ts';
import { BATCH, CRUD, SINGLE, SUITES, type SuiteName } from './suites.ts';

const HELP = `npm run bench -- http [options]

  --runtime LIST       of node, deno, workerd (default: all)
  --suite LIST         of ${SUITES.join(', ')} (default: all); may be given several times
  --quick              100 requests a row by 25 connections, and short phases: about a minute for everything
  --seconds N          of each row, all its rounds together (default ${SECONDS}); the phases of http-load are scaled with it
  --rounds N           (default 3, quick 1)
  --connections LIST   of http-single and http-batch (default 10,25,50,100)
  --rate N             requests a second of the open loop (default: half of what the closed loop reached)
  --keys N             entries of the store (default 20000)
  --directory PATH     where the files are (default: the system's folder for temporary ones)
  --json FILE          writes the rows
  --markdown FILE      writes the tables that are printed`;

/** The quick mode counts requests, so that its rows hold some on a busy machine, too. */
const QUICK: Extent = { seconds: 0.15, rounds: 1, connections: [25], requests: 100 };
const FULL: Extent = { seconds: SECONDS, rounds: 3, connections: [10, 25, 50, 100] };

const OPTIONS = {
  runtime: { type: 'string' },
  suite: { type: 'string', multiple: true },
  quick: { type: 'boolean', default: false },
  seconds: { type: 'string' },
  rounds: { type: 'string' },
  connections: { type: 'string' },
  rate: { type: 'string' },
  keys: { type: 'string', default: '20000' },
  directory: { type: 'string', default: tmpdir() },
  json: { type: 'string' },
  markdown: { type: 'string' },
  help: { type: 'boolean', default: false },
} as const;

type Values = ReturnType<typeof parseArgs<{ options: typeof OPTIONS }>>['values'];

/** S4: errors below 1%, a p95 below 500 ms, more than 100 requests a second. */
registerJudge((rows) => {
  const loaded = rows.filter(({ suite, engine }) => engine === 'varve' && ['http-load', 'durability'].includes(suite));
  const of = (figure: (row: Row) => number) => figuresOf(loaded, figure);
  const where = ({ suite, access }: Row): string => `${suite} (${access})`;
  const errors = of(({ errors: failed = 0, ops }) => failed / (failed + ops));
  return [
    ...judgeWorst('errors under load', errors, 'below', 0.01, percent, where),
    ...judgeWorst(
      'p95 under load',
      of(({ p95 }) => p95),
      'below',
      500_000,
      duration,
      where,
    ),
    ...judgeWorst(
      'operations a second under load',
      of(({ opsPerSecond }) => opsPerSecond),
      'above',
      100,
      rate,
      where,
    ),
  ];
});

function extentOf({ quick, seconds, rounds, connections, rate: perSecond }: Values): Extent {
  const base = quick ? QUICK : FULL;
  const many = connections?.split(',').map((one) => numberOf('connections', one));
  return {
    seconds: seconds === undefined ? base.seconds : numberOf('seconds', seconds),
    requests: seconds === undefined ? base.requests : undefined,
    rounds: rounds === undefined ? base.rounds : Math.ceil(numberOf('rounds', rounds)),
    connections: many ?? base.connections,
    perSecond: perSecond === undefined ? undefined : numberOf('rate', perSecond),
  };
}

/** All HTTP suites on one runtime, on one store; answers with the versions. */
async function onRuntime(
  runtime: RuntimeName,
  suites: readonly SuiteName[],
  extent: Extent,
  keys: number,
  directory: string,
  take: (rows: readonly Row[]) => void,
): Promise<string> {
  const level = runtime === 'workerd' ? 'strict' : 'relaxed';
  const server = await startServer(runtime, { directory: join(directory, runtime), durability: level });
  try {
    const store = new RemoteStore(server.url, new Ledger(keys));
    await store.load();
    const runner = new Runner(store, { runtime, durability: level }, extent);
    await runner.warmUp(CRUD);
    if (suites.includes('http-single')) take(await runner.works('http-single', SINGLE));
    if (suites.includes('http-batch')) take(await runner.works('http-batch', BATCH));
    if (suites.includes('http-load')) take(await runner.load());
    return server.versions;
  } finally {
    await server.stop();
  }
}

async function run(values: Values, directory: string): Promise<ServerResult> {
  const extent = extentOf(values);
  const keys = Math.ceil(numberOf('keys', values.keys));
  const suites = namesOf('suite', values.suite?.join(), SUITES);
  const rows: Row[] = [];
  const print = printer();
  const take = (made: readonly Row[]): void => {
    rows.push(...made);
    for (const row of made) if (row.role !== 'floor') print({ type: 'row', row });
  };
  const versions: Record<string, string> = {
    varve: versionOf('..'),
    node: process.versions.node,
    undici: versionOf('undici'),
  };
  for (const runtime of namesOf('runtime', values.runtime, RUNTIMES)) {
    if (suites.every((suite) => suite === 'durability')) break;
    versions[runtime] = await onRuntime(runtime, suites, extent, keys, directory, take);
  }
  if (suites.includes('durability')) take(await durability(join(directory, 'durability'), extent));
  return { date: new Date().toISOString(), ...provenance(), versions, rows, problems: [] };
}

await command(async () => {
  const { values } = parseArgs({ options: OPTIONS });
  if (values.help) return console.log(HELP);
  const directory = mkdtempSync(join(values.directory, 'varve-bench-'));
  mkdirSync(join(directory, 'durability'));
  try {
    const result = await run(values, directory);
    const versions = Object.entries(result.versions).map(([name, version]) => `${name}: ${version}`);
    const where = `${result.date}, over HTTP. ${versions.join('; ')}. ${provenanceText(result)}`;
    const text = markdown({ ...result, storage: [], notes: [] }, [], where);
    console.log(`\n${text}`);
    writeFiles(result, text, values);
    failIfWrong(result);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});
