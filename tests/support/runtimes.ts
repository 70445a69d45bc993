// The server runtimes that are installed here, and programs run in them: Node itself, Deno and Bun from their npm packages.

import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { basename, join, relative } from 'node:path';
import { build } from 'esbuild';
import { onTestFinished } from 'vitest';
import { root } from '../../scripts/tools.mjs';

/** A runtime and how it is started. */
export interface Runtime {
  readonly name: 'node' | 'bun' | 'deno';
  readonly command: string;
  /** The arguments before the script: for Deno the permissions, which are all that the package needs for stores in `directory`. */
  arguments(directory: string): string[];
}

const DIST = join(root, 'dist');
const PROGRAMS = join(root, 'build', 'test-programs');

const ALL: Runtime[] = [
  { name: 'node', command: process.execPath, arguments: () => [] },
  { name: 'bun', command: packaged('bun/bin/bun.exe', `@oven/bun-${target()}/bin/bun`), arguments: () => ['run'] },
  {
    name: 'deno',
    command: packaged(`@deno/${target()}-glibc/deno`, `@deno/${target()}/deno`),
    arguments: (directory) => [
      ...['run', '--no-prompt', '--no-config', '--no-lock'],
      ...[`--allow-read=${directory},${DIST}`, `--allow-write=${directory}`],
    ],
  },
];

/** The runtimes that are here, or the one that `VARVE_RUNTIME` names. */
export const RUNTIMES: readonly Runtime[] = ALL.filter(
  ({ name, command }) => existsSync(command) && (process.env['VARVE_RUNTIME'] ?? name) === name,
);

/** The platform, as the packages of Deno and Bun name it. */
function target(): string {
  return `${process.platform}-${process.arch}`;
}

/** A binary of an npm package: the first that exists. */
function packaged(...paths: string[]): string {
  const found = paths.map((path) => join(root, 'node_modules', path));
  return found.find((path) => existsSync(path)) ?? join(root, 'node_modules', 'none');
}

/**
 * Bundles a program of tests/runtimes/programs; `varve` in it is the built package, which is not bundled. `ending` is that of
 * the bundle's name.
 */
export async function bundleProgram(name: string, ending = '.mjs'): Promise<string> {
  mkdirSync(PROGRAMS, { recursive: true });
  const outfile = join(PROGRAMS, basename(name, '.ts') + ending);
  await build({
    entryPoints: [join(root, 'tests', 'runtimes', 'programs', name)],
    outfile,
    bundle: true,
    format: 'esm',
    target: 'es2022',
    external: ['node:*', 'bun:*'],
    plugins: [
      {
        name: 'built-package',
        setup: ({ onResolve }) => {
          onResolve({ filter: /^varve(\/[\w-]+)?$/ }, ({ path }) => ({
            path: relative(PROGRAMS, join(DIST, `${path.split('/')[1] ?? 'index'}.js`)),
            external: true,
          }));
        },
      },
    ],
    logLevel: 'warning',
  });
  return outfile;
}

/** A running program. Its standard output comes line by line. */
export interface Running {
  readonly process: ChildProcess;
  readonly lines: readonly string[];
  /** Resolves with the first line that begins like this, even if it came earlier; rejects when the program ended before. */
  line(start: string): Promise<string>;
  /** Resolves with the line of this number, from 0 on. */
  lineAt(number: number): Promise<string>;
  /** Resolves when the program has ended and all of its output is in `lines`. */
  readonly ended: Promise<{ code: number | null; signal: string | null; errors: string }>;
}

/** Starts a program in a runtime, which may use `directory`. */
export function start(runtime: Runtime, program: string, directory: string, given: object = {}): Running {
  const child = spawn(
    runtime.command,
    [...runtime.arguments(directory), program, JSON.stringify({ directory, ...given })],
    { cwd: directory, stdio: ['pipe', 'pipe', 'pipe'], env: { ...process.env, NO_COLOR: '1' } },
  );
  // A test that fails or runs out of time leaves no program behind.
  onTestFinished(() => void child.kill('SIGKILL'));
  const lines: string[] = [];
  const listeners = new Set<() => void>();
  let rest = '';
  let errors = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    const found = (rest + text).split('\n');
    rest = found.pop() ?? '';
    lines.push(...found);
    for (const listener of [...listeners]) listener();
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors += text;
  });
  const ended = new Promise<{ code: number | null; signal: string | null; errors: string }>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => resolve({ code, signal, errors }));
  });
  const found = (find: () => string | undefined, what: string): Promise<string> =>
    new Promise((resolve, reject) => {
      const look = (): void => {
        const found = find();
        if (found === undefined) return;
        listeners.delete(look);
        resolve(found);
      };
      listeners.add(look);
      look();
      ended.then(({ errors: why }) => reject(new Error(`The program ended without ${what}: ${why}`)), reject);
    });
  const line = (begin: string): Promise<string> =>
    found(() => lines.find((one) => one.startsWith(begin)), `"${begin}"`);
  const lineAt = (number: number): Promise<string> => found(() => lines[number], `line ${number}`);
  return { process: child, lines, line, lineAt, ended };
}

/** Runs a program to its end; returns the JSON of its last line. */
export async function run<T>(runtime: Runtime, program: string, directory: string, given: object = {}): Promise<T> {
  const running = start(runtime, program, directory, given);
  const { code, errors } = await running.ended;
  if (code !== 0) throw new Error(`${runtime.name} ended with ${code}: ${errors}`);
  return JSON.parse(running.lines.at(-1) ?? '') as T;
}
