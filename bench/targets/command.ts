/** The parts of the commands that all targets share: flags, progress, machine, files of results, and exit codes. */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, loadavg, release, type as system, tmpdir, totalmem } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { capture, root } from '../../scripts/tools.mjs';
import type { Engine } from '../core/engine.ts';
import { rate } from '../core/figures.ts';
import type { Emit, RunEvent } from '../core/plan.ts';
import { Gathered, markdown } from '../core/result.ts';
import { caseName, type Row } from '../core/row.ts';

/** Milliseconds between two lines of progress where the output is no terminal. */
const SILENCE_MS = 30_000;

/** The machine, without anything that names it or its owner. */
export interface Machine {
  readonly processor: string;
  readonly cores: number;
  readonly memoryBytes: number;
  readonly system: string;
  /** Of Node, which drives the browser and runs the server suites. */
  readonly node: string;
}

export interface Source {
  /** The abbreviated hash of the commit; undefined outside of a repository. */
  readonly commit?: string;
  readonly clean: boolean;
}

export interface Provenance {
  readonly machine: Machine;
  /** Programs that wanted to run, on average over the last minute, the run included; 0 where the system does not report it. */
  readonly load: number;
  readonly source: Source;
}

/** The JSON of the suites on Node and on servers. */
export interface ServerResult extends Provenance {
  readonly date: string;
  readonly versions: Readonly<Record<string, string>>;
  readonly rows: readonly Row[];
  readonly problems: readonly string[];
}

export function provenance(): Provenance {
  const all = cpus();
  const commit = capture('git', ['rev-parse', '--short=10', 'HEAD'])?.trim();
  return {
    machine: {
      processor: all[0]?.model.trim() || 'unknown',
      cores: all.length,
      memoryBytes: totalmem(),
      // The version alone: the rest names a provider or a build.
      system: `${system()} ${/^[\d.]+/.exec(release())?.[0] ?? release()}`,
      node: process.versions.node,
    },
    load: Number((loadavg()[0] ?? 0).toFixed(1)),
    source: { ...(commit && { commit }), clean: capture('git', ['status', '--porcelain'])?.trim() === '' },
  };
}

export function provenanceText({ machine: { processor, cores, system: kernel }, load }: Provenance): string {
  return `${processor}, ${cores} cores, ${kernel}; load average ${load}`;
}

export function versionOf(name: string): string {
  const text = readFileSync(join(root, 'node_modules', name, 'package.json'), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}

/** Prints the events of a run. In a terminal progress is one line that is overwritten, elsewhere a line now and then. */
export function printer(): (event: RunEvent) => void {
  let lastMs = Date.now();
  return (event) => {
    if (event.type === 'progress') {
      const text = event.total === 0 ? event.text : `${event.done}/${event.total} ${event.text}`;
      if (process.stdout.isTTY) process.stdout.write(`\r\u001b[K${text}\r`);
      else if (Date.now() - lastMs > SILENCE_MS) console.log(`  ... ${text}`);
      else return;
    }
    lastMs = Date.now();
    if (event.type === 'row') console.log(`  ${rowLine(event.row)}`);
    if (event.type === 'problem') console.log(`  ! ${event.text}`);
  };
}

function rowLine(row: Row): string {
  const name = `${caseName(row)} ${row.engine}`.padEnd(56);
  return `${name} ${rate(row.opsPerSecond).padStart(7)} ${row.unit}/s${row.verified ? '' : '  NOT VERIFIED'}`;
}

export function writeFiles(
  result: unknown,
  text: string,
  files: { json?: string | undefined; markdown?: string | undefined },
): void {
  if (files.json !== undefined) writeFileSync(files.json, `${JSON.stringify(result, undefined, 1)}\n`);
  if (files.markdown !== undefined) writeFileSync(files.markdown, text);
}

/** The names in a flag's list, in the order of `all`; all of them without the flag, or with "all". Throws if one is unknown. */
export function namesOf<T extends string>(flag: string, text: string | undefined, all: readonly T[]): T[] {
  if (text === undefined || text === 'all') return [...all];
  const named = text.split(',').filter((name) => name !== '' && name !== 'none');
  const unknown = named.find((name) => !all.includes(name as T));
  if (unknown !== undefined) throw new Error(`--${flag} knows ${all.join(', ')}, not "${unknown}".`);
  return all.filter((name) => named.includes(name));
}

export function numberOf(flag: string, text: string): number {
  const number = Number(text);
  if (!(number > 0)) throw new Error(`--${flag} takes a number above 0, not "${text}".`);
  return number;
}

/** Runs a command: an error is its message, and the exit code 1. */
export async function command(run: () => Promise<unknown>): Promise<void> {
  try {
    await run();
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  }
}

/** A command of the benchmark; `name` is empty for that of the browser. */
export const commandOf = (name: string, about: string): Command =>
  new Command(`npm run bench -- ${name}`).usage('[flags]').description(about).allowExcessArguments(false);

export const joined = (text: string, before?: string): string => (before === undefined ? text : `${before},${text}`);

export interface Target<Own extends string> {
  readonly name: string;
  readonly place: string;
  readonly flags: Readonly<Record<Own, readonly [form: string, about: string]>>;
  /** Measures with files in `folder`; resolves with versions of runtimes and libraries, and engines for the notes below the tables. */
  run(
    values: { readonly [name in Own]?: string },
    folder: string,
    emit: Emit,
  ): Promise<{ readonly versions: Readonly<Record<string, string>>; readonly engines?: readonly Engine[] }>;
}

/** Runs a target: reads its flags, prints and writes its result, and fails if a row is wrong. */
export function runTarget<Own extends string>({ name, place, flags, run }: Target<Own>): Promise<void> {
  return command(async () => {
    const program = commandOf(name, `The benchmark ${place}.`)
      .option('--directory <path>', 'where the files are', tmpdir())
      .option('--json <file>', 'writes the result')
      .option('--markdown <file>', 'writes the tables that are printed');
    for (const [form, text] of Object.values<readonly [string, string]>(flags)) program.option(form, text, joined);
    const values = program.parse().opts<{ directory: string; json?: string; markdown?: string }>();
    const gathered = new Gathered();
    const print = printer();
    const emit: Emit = (event) => {
      gathered.take(event);
      print(event);
    };
    const folder = mkdtempSync(join(values.directory, 'varve-bench-'));
    const remove = (): void => rmSync(folder, { recursive: true, force: true });
    const { versions, engines = [] } = await run(program.opts(), folder, emit).finally(remove);
    const { rows, problems } = gathered;
    const result: ServerResult = { date: new Date().toISOString(), ...provenance(), versions, rows, problems };
    const named = Object.entries(versions).map(([name, version]) => `${name}: ${version}`);
    const where = `${result.date}, ${place}. ${named.join('; ')}. ${provenanceText(result)}`;
    const text = markdown(gathered, engines, where);
    console.log(`\n${text}`);
    writeFiles(result, text, values);
    if (problems.length > 0) throw new Error(problems.join('\n'));
    const wrong = rows.find(({ verified, errors = 0 }) => !verified || errors > 0);
    if (wrong === undefined) return;
    throw new Error(`${caseName(wrong)} on ${wrong.engine} is not verified: ${wrong.errors ?? 0} errors.`);
  });
}
