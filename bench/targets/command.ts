/** The parts that the commands share: how they end, their progress, and where they ran. */

import { readFileSync, writeFileSync } from 'node:fs';
import { cpus, loadavg, release, type as system, totalmem } from 'node:os';
import { join } from 'node:path';
import { capture, root } from '../../scripts/tools.mjs';
import { rate } from '../core/figures.ts';
import type { RunEvent } from '../core/plan.ts';
import { caseName, type Row } from '../core/row.ts';

/** Without a terminal a long command says so often where it is. */
const SILENCE_MS = 30_000;

/** The machine, without anything that names it or its owner. */
export interface Machine {
  /** The processor's model as the system tells it. */
  readonly processor: string;
  readonly cores: number;
  readonly memoryBytes: number;
  /** Kind and version of the kernel. */
  readonly system: string;
  /** Of Node, which drives the browser and runs the server suites. */
  readonly node: string;
}

export interface Source {
  /** The abbreviated hash of the commit; undefined outside of a repository. */
  readonly commit?: string;
  /** Nothing was changed beside that commit. */
  readonly clean: boolean;
}

export interface Provenance {
  readonly machine: Machine;
  /** Programs that wanted to run, on average over the last minute, the run included; 0 where the system does not tell. */
  readonly load: number;
  readonly source: Source;
}

/** The file that the suites on Node and on servers write with `--json`. */
export interface ServerResult extends Provenance {
  readonly date: string;
  /** Runtimes and libraries that told their versions. */
  readonly versions: Readonly<Record<string, string>>;
  readonly rows: readonly Row[];
  readonly problems: readonly string[];
}

/** This machine and this working tree. */
export function provenance(): Provenance {
  const all = cpus();
  const commit = capture('git', ['rev-parse', '--short=10', 'HEAD'])?.trim();
  return {
    machine: {
      processor: all[0]?.model.trim() || 'not told',
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

/** That in words. */
export function provenanceText({ machine: { processor, cores, system: kernel }, load }: Provenance): string {
  return `${processor}, ${cores} cores, ${kernel}; load average ${load}`;
}

/** The version of an installed package; `..` is Varve itself. */
export function versionOf(name: string): string {
  const text = readFileSync(join(root, 'node_modules', name, 'package.json'), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}

/** Prints the events of a run: one line that is written over in a terminal, and now and then a line elsewhere. */
export function printer(): (event: RunEvent) => void {
  let last_ms = Date.now();
  return (event) => {
    if (event.type === 'progress') {
      const text = event.total === 0 ? event.text : `${event.done}/${event.total} ${event.text}`;
      if (process.stdout.isTTY) process.stdout.write(`\r\u001b[K${text}\r`);
      else if (Date.now() - last_ms > SILENCE_MS) console.log(`  ... ${text}`);
      else return;
    }
    last_ms = Date.now();
    if (event.type === 'row') console.log(`  ${rowLine(event.row)}`);
    if (event.type === 'problem') console.log(`  ! ${event.text}`);
  };
}

function rowLine(row: Row): string {
  const name = `${caseName(row)} ${row.engine}`.padEnd(56);
  return `${name} ${rate(row.opsPerSecond).padStart(7)} ${row.unit}/s${row.verified ? '' : '  NOT VERIFIED'}`;
}

/** Writes a result where its flags say. */
export function writeFiles(
  result: unknown,
  text: string,
  files: { json?: string | undefined; markdown?: string | undefined },
): void {
  if (files.json !== undefined) writeFileSync(files.json, `${JSON.stringify(result, undefined, 1)}\n`);
  if (files.markdown !== undefined) writeFileSync(files.markdown, text);
}

/** Names of a list, each known; all of them when none is given. */
export function namesOf<T extends string>(flag: string, text: string | undefined, all: readonly T[]): T[] {
  const named = (text ?? all.join()).split(',').filter((name) => name !== '' && name !== 'none');
  const unknown = named.find((name) => !all.includes(name as T));
  if (unknown !== undefined) throw new Error(`--${flag} knows ${all.join(', ')}, not "${unknown}".`);
  return all.filter((name) => named.includes(name));
}

/** A number above 0. */
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

/** Fails a command whose rows are not all right. */
export function failIfWrong({ rows, problems }: Pick<ServerResult, 'rows' | 'problems'>): void {
  const wrong = rows.find(({ verified, errors = 0 }) => !verified || errors > 0);
  if (problems.length > 0) throw new Error(problems.join('\n'));
  if (wrong !== undefined)
    throw new Error(`${caseName(wrong)} on ${wrong.engine} is not verified: ${wrong.errors ?? 0} errors.`);
}
