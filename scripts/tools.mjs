// Shared by every script here: where things are, the environment of child processes, and how a step is run, timed and
// reported. Invariant: a script ends with a sentence a person can act on, never with a bare stack trace.

import { spawn, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The repository. */
export const root = fileURLToPath(new URL('..', import.meta.url));

/** Tools that npm cannot install are here, shared by every clone on the machine. */
export const cache = join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'varve-tools');

/** The caller's environment with the project's tools first on the path. */
export const env = {
  ...process.env,
  PATH: [
    join(cache, 'bin'),
    join(process.env['CARGO_HOME'] || join(homedir(), '.cargo'), 'bin'),
    join(root, 'node_modules', '.bin'),
    process.env['PATH'] ?? '',
  ].join(delimiter),
};

/** A problem that the person running the script can fix; its message explains how. */
export class Problem extends Error {}

/**
 * Runs a command with its output on this terminal. Throws a Problem when it fails.
 * @param {string} command
 * @param {string[]} args
 * @param {{ cwd?: string, env?: NodeJS.ProcessEnv, onLine?: (line: string) => void }} [options] `onLine` also sees
 *   each line of standard output.
 * @returns {Promise<void>}
 */
export function run(command, args, options = {}) {
  return new Promise((resolve, reject) => {
    const { onLine } = options;
    const child = spawn(command, args, {
      cwd: options.cwd ?? root,
      env: { ...env, ...options.env },
      stdio: ['ignore', onLine ? 'pipe' : 'inherit', 'inherit'],
    });
    // Ctrl-C in a terminal ends all processes of a command. A SIGTERM to this process alone is meant for its child as well.
    const end = () => child.kill('SIGTERM');
    process.once('SIGTERM', end);
    let rest = '';
    child.stdout?.setEncoding('utf8').on('data', (/** @type {string} */ text) => {
      process.stdout.write(text);
      const lines = (rest + text).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) onLine?.(line);
    });
    child.on('error', (error) => reject(new Problem(`Could not start ${command}: ${error.message}.`)));
    child.on('close', (code, signal) => {
      process.off('SIGTERM', end);
      if (rest) onLine?.(rest);
      if (code === 0) resolve();
      else reject(new Problem(`\`${[command, ...args].join(' ')}\` failed (${signal ?? `exit code ${code}`}).`));
    });
  });
}

/**
 * Runs a short command and returns its standard output, or undefined when it is absent or fails.
 * @param {string} command
 * @param {string[]} args
 * @returns {string | undefined}
 */
export function capture(command, args) {
  const result = spawnSync(command, args, { cwd: root, env, encoding: 'utf8' });
  return result.status === 0 ? result.stdout : undefined;
}

/**
 * Runs one named step and prints how long it took.
 * @template T
 * @param {string} name
 * @param {() => Promise<T> | T} work
 * @returns {Promise<T>}
 */
export async function step(name, work) {
  const start = performance.now();
  const result = await work();
  console.log(`${name}: ${((performance.now() - start) / 1000).toFixed(1)} s`);
  return result;
}

/**
 * The body of a script: its failure is printed as a sentence and becomes the exit code.
 * @param {() => Promise<unknown>} body
 */
export async function main(body) {
  if (!existsSync(join(root, 'node_modules', '.package-lock.json'))) {
    console.error('The npm packages are not installed: run `npm ci` first.');
    process.exit(1);
  }
  try {
    await body();
  } catch (error) {
    console.error(error instanceof Problem ? `\n${error.message}` : error);
    process.exitCode = 1;
  }
}

/**
 * Whether this module was started as a program, not imported.
 * @param {string} url the module's import.meta.url
 */
export function isProgram(url) {
  return process.argv[1] !== undefined && fileURLToPath(url) === process.argv[1];
}
