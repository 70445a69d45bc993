/**
 * `npm run bench -- http`: the fetch handler under load on Node, Deno and workerd, over real sockets.
 *
 * Invariant: servers are processes of their own, and none outlives the command. An answer that is wrong, or a store that holds something
 * else than was acknowledged, fails the run; a missed threshold does not.
 */

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { duration, rate } from '../../core/figures.ts';
import { loadNow, type Machine, machine, machineText } from '../machine.ts';
import { versionOf } from '../packages.ts';
import { durability } from './durability.ts';
import { Ledger } from './ledger.ts';
import type { HttpRow } from './row.ts';
import { type Extent, Runner, SECONDS } from './runner.ts';
import { RUNTIMES, type RuntimeName, startServer } from './server.ts';
import { RemoteStore } from './store.ts';
import { BATCH, CRUD, SINGLE, SUITES, type SuiteName } from './suites.ts';
import { tables } from './table.ts';

const HELP = `npm run bench -- http [options]

  --runtime LIST       of node, deno, workerd (default: all)
  --suite LIST         of http-single, http-batch, http-load, durability (default: all); may be given several times
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

/** What is written with `--json`. */
interface Result {
  readonly date: string;
  readonly machine: Machine;
  /** Programs that wanted to run, on average over the last minute: above the cores, the machine was busy. */
  readonly load: number;
  readonly versions: Readonly<Record<string, string>>;
  readonly rows: readonly HttpRow[];
}

function numberOf(option: string, text: string): number {
  const number = Number(text);
  if (!(number > 0)) throw new Error(`--${option} takes a number above 0, not "${text}".`);
  return number;
}

function listOf<T extends string>(option: string, text: string | undefined, all: readonly T[]): readonly T[] {
  if (text === undefined || text === '') return all;
  const named = text.split(',');
  const unknown = named.find((name) => !all.includes(name as T));
  if (unknown !== undefined) throw new Error(`--${option} knows ${all.join(', ')}, not "${unknown}".`);
  return all.filter((name) => named.includes(name));
}

type Values = ReturnType<typeof parseArgs<{ options: typeof OPTIONS }>>['values'];

function extentOf({ quick, seconds, rounds, connections, rate: perSecond }: Values): Extent {
  const base = quick ? QUICK : FULL;
  return {
    seconds: seconds === undefined ? base.seconds : numberOf('seconds', seconds),
    requests: seconds === undefined ? base.requests : undefined,
    rounds: rounds === undefined ? base.rounds : Math.ceil(numberOf('rounds', rounds)),
    connections:
      connections === undefined ? base.connections : connections.split(',').map((one) => numberOf('connections', one)),
    perSecond: perSecond === undefined ? undefined : numberOf('rate', perSecond),
  };
}

function onRow(row: HttpRow): void {
  if (row.engine === 'bare') return;
  const { suite, work, runtime, connections } = row;
  const figures = `${rate(row.requestsPerSecond)} requests/s, p95 ${duration(row.p95)}, ${row.errors} errors`;
  console.error(
    `${suite} on ${runtime}, ${connections} connections, ${work}: ${figures}${row.verified ? '' : ', NOT VERIFIED'}`,
  );
}

/** All HTTP suites on one runtime, on one store. */
async function onRuntime(
  runtime: RuntimeName,
  suites: readonly SuiteName[],
  extent: Extent,
  keys: number,
  directory: string,
): Promise<{ rows: HttpRow[]; versions: string }> {
  const level = runtime === 'workerd' ? 'strict' : 'relaxed';
  const server = await startServer(runtime, { directory: join(directory, runtime), durability: level });
  try {
    const store = new RemoteStore(server.url, new Ledger(keys));
    await store.load();
    const runner = new Runner(store, { runtime, durability: level }, extent, onRow);
    await runner.warmUp(CRUD);
    const rows: HttpRow[] = [];
    if (suites.includes('http-single')) rows.push(...(await runner.works('http-single', SINGLE)));
    if (suites.includes('http-batch')) rows.push(...(await runner.works('http-batch', BATCH)));
    if (suites.includes('http-load')) rows.push(...(await runner.load()));
    return { rows, versions: server.versions };
  } finally {
    await server.stop();
  }
}

async function run(values: Values, directory: string): Promise<Result> {
  const extent = extentOf(values);
  const keys = Math.ceil(numberOf('keys', values.keys));
  const suites = listOf('suite', values.suite?.join(','), SUITES);
  const rows: HttpRow[] = [];
  const versions: Record<string, string> = {
    varve: versionOf('..'),
    node: process.versions.node,
    undici: versionOf('undici'),
  };
  if (suites.some((suite) => suite !== 'durability')) {
    for (const runtime of listOf('runtime', values.runtime, RUNTIMES)) {
      const done = await onRuntime(runtime, suites, extent, keys, directory);
      versions[runtime] = done.versions;
      rows.push(...done.rows);
    }
  }
  if (suites.includes('durability')) rows.push(...(await durability(join(directory, 'durability'), extent, onRow)));
  return { date: new Date().toISOString(), machine: machine(), load: loadNow(), versions, rows };
}

function failIfWrong(rows: readonly HttpRow[]): void {
  const bad = rows.find((row) => !row.verified || row.errors > 0);
  if (bad === undefined) return;
  const where = `${bad.suite} on ${bad.runtime}, ${bad.work}`;
  throw new Error(`${where}: ${bad.errors} requests failed. ${bad.problem ?? 'No request was answered.'}`);
}

async function main(): Promise<void> {
  const { values } = parseArgs({ options: OPTIONS });
  if (values.help) {
    console.log(HELP);
    return;
  }
  const directory = mkdtempSync(join(values.directory, 'varve-bench-'));
  mkdirSync(join(directory, 'durability'));
  try {
    const result = await run(values, directory);
    const text = tables(result.rows);
    const shown = Object.entries(result.versions).map(([name, version]) => `${name}: ${version}`);
    console.log(`\n${text}\n\n${shown.join('; ')}\n${machineText(result.machine, result.load)}`);
    if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(result, undefined, 1)}\n`);
    if (values.markdown !== undefined) writeFileSync(values.markdown, `${text}\n`);
    failIfWrong(result.rows);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

try {
  await main();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
