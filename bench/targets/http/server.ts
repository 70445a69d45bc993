/**
 * A server that the benchmark starts: a process of its own on Node, Deno or workerd, with one store.
 *
 * Invariant: it ends with the benchmark, whatever ends that: its standard input is a pipe from here, and it lives no longer
 * than the pipe.
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { build } from 'esbuild';
import { root } from '../../../scripts/tools.mjs';
import { versionOf } from '../command.ts';
import type { Address, Options } from './programs/program.ts';

export const RUNTIMES = ['node', 'node-uncached', 'deno', 'deno-kv', 'workerd'] as const;
export type RuntimeName = (typeof RUNTIMES)[number];

/** Installed packages that a server runs on. */
const LIBRARIES: Readonly<Record<string, readonly string[]>> = { node: ['srvx'], workerd: ['workerd', 'miniflare'] };
const DIST = join(root, 'dist');
const OUT = join(root, 'build', 'bench-http');

export interface Server extends Address {
  /** Lets it close its store and end; resolves when it has ended. */
  stop(): Promise<void>;
  /** Kills it (SIGKILL), as a crash would; resolves when it has ended. Of Node and Deno; workerd would outlive its parent. */
  kill(): Promise<void>;
}

let bundled: Promise<unknown> | undefined;

/** Starts a server. Throws if the program ends before it answers. */
export async function startServer(runtime: RuntimeName, options: Options): Promise<Server> {
  bundled ??= bundlePrograms();
  await bundled;
  mkdirSync(options.directory, { recursive: true });
  const [command = '', ...before] = commandOf(runtime, options.directory);
  const args = [...before, join(OUT, `${programOf(runtime)}.mjs`), JSON.stringify({ ...options, runtime })];
  const child = spawn(command, args, { cwd: root, stdio: 'pipe' });
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors += text;
  });
  const ended = once(child, 'close');
  // The lines after the first are read, too: a full pipe would stop the program.
  const lines = createInterface({ input: child.stdout });
  const failed = ended.then(([code]) => {
    throw new Error(`The server on ${runtime} ended with ${code} before it answered: ${errors}`);
  });
  const [line] = (await Promise.race([once(lines, 'line'), failed])) as [string];
  failed.catch(() => undefined);
  const { url, versions } = JSON.parse(line) as Address;
  const named = [versions, ...(LIBRARIES[programOf(runtime)] ?? []).map((name) => `${name} ${versionOf(name)}`)];
  return {
    url,
    versions: named.filter(Boolean).join(', '),
    stop: async () => {
      child.stdin.end();
      await ended;
    },
    kill: async () => {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

const programOf = (runtime: RuntimeName): string => runtime.replace(/-.*/, '');

/** Deno gets the permissions that docs/guide/servers.md names for a store in files, and the permission to listen. */
function commandOf(runtime: RuntimeName, directory: string): string[] {
  if (programOf(runtime) !== 'deno') return [process.execPath];
  const modules = join(root, 'node_modules', '@deno');
  const platform = `${process.platform}-${process.arch}`;
  const binaries = [join(modules, `${platform}-glibc`, 'deno'), join(modules, platform, 'deno')];
  return [
    binaries.find((path) => existsSync(path)) ?? 'deno',
    ...['run', '--no-prompt', '--no-config', '--no-lock', '--unstable-no-legacy-abort', '--unstable-kv'],
    ...[`--allow-read=${directory},${DIST}`, `--allow-write=${directory}`, '--allow-net=127.0.0.1'],
  ];
}

/** Bundles the programs; the package stays as it was built, beside its workers. */
function bundlePrograms(): Promise<unknown> {
  return build({
    entryPoints: RUNTIMES.map((name) => join(root, 'bench', 'targets', 'http', 'programs', `${programOf(name)}.ts`)),
    outdir: OUT,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    format: 'esm',
    target: 'es2022',
    platform: 'node',
    alias: Object.fromEntries(
      ['', '/fs', '/http', '/collections', '/deno-kv'].map((entry) => [
        `varve${entry}`,
        join(DIST, `${entry.slice(1) || 'index'}.js`),
      ]),
    ),
    external: ['srvx', 'miniflare', 'esbuild', join(DIST, '*')],
    logLevel: 'error',
  });
}
