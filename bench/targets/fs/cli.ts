/**
 * `npm run bench -- fs`: stores in files on Node, beside bare file calls (floors.ts), or with `--peers` beside SQLite and LevelDB.
 *
 * Invariant: a store that holds something else than was written fails the run. A peer that cannot be had, or fails, is told,
 * and the others go on.
 */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { rate } from '../../core/figures.ts';
import { TARGET_COLUMNS, targetCells } from '../../core/report.ts';
import { table } from '../../core/table.ts';
import { judgeStories } from '../../core/targets.ts';
import { lifeRowOf } from '../../results/row.ts';
import { LIVES } from '../../suites/lives/lives.ts';
import { loadNow, type Machine, machine, machineText } from '../machine.ts';
import { compareEngines, compareReopening, type FileExtent } from './compare.ts';
import type { FileEngine } from './engine.ts';
import { leveldb } from './engines/leveldb.ts';
import { sqlite } from './engines/sqlite.ts';
import { varve } from './engines/varve.ts';
import { varveSync } from './engines/varve-sync.ts';
import { floors } from './floors.ts';
import { liveOn } from './lives.ts';
import { type FileRow, fileTable, nameOf } from './row.ts';
import { REOPEN, SUITES } from './suites.ts';

/** The names of all suites, in the order in which they run. */
const NAMES = [...SUITES, REOPEN, ...LIVES].map(({ name }) => name);

const HELP = `npm run bench -- fs [options]

  --peers LIST       of sqlite, leveldb: the suites below on Varve and on these (default: bare file calls alone)
  --suite LIST       of ${NAMES.join(', ')} (default: all); with --peers
  --quick            a tenth of the entries, short rounds; with --peers
  --rounds N         (default 5; with --quick 3)
  --directory PATH   where the files are (default: the system's folder for temporary ones)
  --json FILE        writes the rows; with --peers
  --markdown FILE    writes the tables that are printed`;

const PEERS: Readonly<Record<string, () => FileEngine | Promise<FileEngine>>> = { sqlite, leveldb };
const ROUND_MS = { quick: 100, full: 1000 } as const;

interface Result {
  readonly date: string;
  readonly machine: Machine;
  /** Programs that wanted to run, on average over the last minute: above the cores, the machine was busy. */
  readonly load: number;
  readonly versions: Readonly<Record<string, string>>;
  readonly rows: readonly FileRow[];
  /** What could not be run, and why. */
  readonly failures: readonly string[];
}

/** Names of a list, each known. */
function listOf(option: string, text: string, known: readonly string[]): string[] {
  const named = text.split(',');
  const unknown = named.find((name) => !known.includes(name));
  if (unknown !== undefined) throw new Error(`--${option} knows ${known.join(', ')}, not "${unknown}".`);
  return named;
}

async function enginesOf(peers: readonly string[], failures: string[]): Promise<FileEngine[]> {
  const engines = [varveSync(), varve()];
  for (const name of peers) {
    try {
      const engine = await PEERS[name]?.();
      if (engine !== undefined) engines.push(engine);
    } catch (error) {
      failures.push(`${name}: ${error instanceof Error ? error.message : error}`);
    }
  }
  return engines;
}

async function compare(peers: readonly string[], suites: readonly string[], extent: FileExtent, directory: string) {
  const failures: string[] = [];
  const engines = await enginesOf(peers, failures);
  const rows: FileRow[] = [];
  const runs: { readonly name: string; readonly on?: string; readonly run: () => Promise<FileRow[]> }[] = [
    ...SUITES.map((suite) => ({ name: suite.name, run: () => compareEngines(engines, suite, directory, extent) })),
    { name: REOPEN.name, run: () => compareReopening(engines, directory, extent) },
    // One engine after another, so that one that fails takes no other with it.
    ...LIVES.flatMap((life) =>
      engines.map((engine) => ({
        name: life.name,
        on: `, ${engine.name}`,
        run: () => liveOn(engine, life, directory, extent),
      })),
    ),
  ];
  for (const { name, on = '', run } of runs) {
    if (!suites.includes(name)) continue;
    try {
      const made = await run();
      for (const row of made) console.error(`${nameOf(row, made)}, ${row.engine}: ${rate(row.opsPerSecond)}/s`);
      rows.push(...made);
    } catch (error) {
      failures.push(`${name}${on}: ${error instanceof Error ? error.message : error}`);
    }
  }
  const versions = Object.fromEntries(engines.map(({ name, version }) => [name, version]));
  const result: Result = {
    date: new Date().toISOString(),
    machine: machine(),
    load: loadNow(),
    versions: { node: process.versions.node, ...versions },
    rows,
    failures,
  };
  return result;
}

function textOf({ rows, versions, failures, machine: on, load }: Result): string {
  const shown = Object.entries(versions).map(([name, version]) => `${name}: ${version}`);
  const failed = failures.map((failure) => `\nFailed: ${failure}`);
  const judged = judgeStories(rows.map(lifeRowOf));
  const targets = judged.length === 0 ? '' : `${table(TARGET_COLUMNS, judged.map(targetCells))}\n\n`;
  return `${fileTable(rows)}\n\n${targets}${shown.join('; ')}\n${machineText(on, load)}\n${failed.join('\n')}`;
}

function failIfWrong({ rows, failures }: Result): void {
  const wrong = rows.find(({ verified }) => !verified);
  if (wrong !== undefined) {
    throw new Error(
      `${wrong.suite}, ${wrong.engine}: ${wrong.problem ?? `${wrong.errors} calls were answered wrongly.`}`,
    );
  }
  const [failure] = failures;
  if (failure !== undefined) throw new Error(failure);
}

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

async function main(): Promise<void> {
  const { values } = parseArgs({ options: OPTIONS });
  if (values.help) {
    console.log(HELP);
    return;
  }
  const rounds = Math.ceil(Number(values.rounds ?? (values.quick ? 3 : 5)));
  if (!(rounds > 0)) throw new Error(`--rounds takes a number above 0, not "${values.rounds}".`);
  const directory = mkdtempSync(join(values.directory, 'varve-bench-'));
  try {
    if (values.peers === undefined) {
      print(await floors(directory, rounds), values.markdown);
      return;
    }
    const suites = listOf('suite', values.suite?.join(',') ?? NAMES.join(','), NAMES);
    const extent = { isQuick: values.quick, rounds, round_ms: values.quick ? ROUND_MS.quick : ROUND_MS.full };
    const result = await compare(listOf('peers', values.peers, Object.keys(PEERS)), suites, extent, directory);
    print(textOf(result), values.markdown);
    if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(result, undefined, 1)}\n`);
    failIfWrong(result);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

function print(text: string, markdown: string | undefined): void {
  console.log(`\n${text}`);
  if (markdown !== undefined) writeFileSync(markdown, text);
}

try {
  await main();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
