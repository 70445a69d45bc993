/**
 * A server that the benchmark starts: a process of its own on Node, Deno or workerd, with one store.
 *
 * Invariant: it ends with the benchmark, whatever ends that: its standard input is a pipe from here, and it lives no longer
 * than the pipe.
 */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync } from 'node:fs';
import { join, relative } from 'node:path';
import { createInterface } from 'node:readline';
import { build, type Plugin } from 'esbuild';
import { versionOf } from '../command.ts';
import type { Said, Told } from './programs/told.ts';

/** Where a server runs. */
export const RUNTIMES = ['node', 'deno', 'workerd'] as const;
/** Where a server runs. */
export type RuntimeName = (typeof RUNTIMES)[number];

const root = process.cwd();
const DIST = join(root, 'dist');
const OUT = join(root, 'build', 'bench-http');

/** A server that answers. */
export interface Server extends Said {
  /** Lets it close its store and end; resolves when it has ended. */
  stop(): Promise<void>;
  /** Kills it (SIGKILL), as a crash would; resolves when it has ended. Of Node and Deno; workerd would outlive its parent. */
  kill(): Promise<void>;
}

/** Starts a server; its store is in files below `told.directory`. Throws when the program ends before it answers. */
export async function startServer(runtime: RuntimeName, told: Told): Promise<Server> {
  await bundlePrograms();
  mkdirSync(told.directory, { recursive: true });
  const [command, ...before] = commandOf(runtime, told.directory);
  const program = join(OUT, `${runtime}.mjs`);
  const after = runtime === 'workerd' ? [workerdVersions()] : [];
  const child = spawn(command as string, [...before, program, JSON.stringify(told), ...after], {
    cwd: root,
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const ended = once(child, 'close');
  const said = await firstLine(child, runtime);
  const srvx = runtime === 'node' ? ` ${versionOf('srvx')}` : '';
  return {
    ...said,
    versions: said.versions + srvx,
    stop: async () => {
      child.stdin?.end();
      await ended;
    },
    kill: async () => {
      if (runtime === 'workerd') throw new Error('A workerd is stopped, not killed.');
      child.kill('SIGKILL');
      await ended;
    },
  };
}

async function firstLine(child: ChildProcess, runtime: RuntimeName): Promise<Said> {
  let errors = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    errors += text;
  });
  // The lines after the first are read, too: a full pipe would stop the program.
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream });
  return new Promise((resolve, reject) => {
    child.once('error', (error) => reject(new Error(`${runtime} does not start: ${error.message}. Run npm ci.`)));
    child.once('close', (code) =>
      reject(new Error(`The server on ${runtime} ended with ${code} before it answered: ${errors}`)),
    );
    lines.once('line', (line) => {
      try {
        resolve(JSON.parse(line) as Said);
      } catch {
        reject(new Error(`The server on ${runtime} said "${line}" instead of its address.`));
      }
    });
  });
}

/** Deno gets the permissions that the README names for a store in files, and leave to listen. */
function commandOf(runtime: RuntimeName, directory: string): string[] {
  if (runtime !== 'deno') return [process.execPath];
  const modules = join(root, 'node_modules', '@deno');
  const platform = `${process.platform}-${process.arch}`;
  const binaries = [join(modules, `${platform}-glibc`, 'deno'), join(modules, platform, 'deno')];
  return [
    binaries.find((path) => existsSync(path)) ?? 'deno',
    ...['run', '--no-prompt', '--no-config', '--no-lock', '--unstable-no-legacy-abort'],
    ...[`--allow-read=${directory},${DIST}`, `--allow-write=${directory}`, '--allow-net=127.0.0.1'],
  ];
}

function workerdVersions(): string {
  return `workerd ${versionOf('workerd')}, miniflare ${versionOf('miniflare')}`;
}

let bundled: Promise<void> | undefined;

/** Bundles the programs once. The package stays as it was built, beside its workers; only the Worker takes it in. */
function bundlePrograms(): Promise<void> {
  bundled ??= (async () => {
    const programs = join(root, 'bench', 'targets', 'http', 'programs');
    const common = { bundle: true, format: 'esm', target: 'es2022', logLevel: 'error' } as const;
    await build({
      ...common,
      entryPoints: RUNTIMES.map((name) => join(programs, `${name}.ts`)),
      outdir: OUT,
      outExtension: { '.js': '.mjs' },
      platform: 'node',
      external: ['srvx', 'miniflare'],
      plugins: [builtPackage((file) => ({ path: `./${relative(OUT, file)}`, external: true }))],
    });
    await build({
      ...common,
      entryPoints: [join(programs, 'object.ts')],
      outfile: join(OUT, 'object.mjs'),
      conditions: ['workerd'],
      external: ['cloudflare:*'],
      plugins: [builtPackage((path) => ({ path })), wasmBeside],
    });
  })();
  return bundled;
}

function builtPackage(resolved: (file: string) => { path: string; external?: boolean }): Plugin {
  return {
    name: 'built-package',
    setup: ({ onResolve }) => {
      onResolve({ filter: /^varve(\/\w+)?$/ }, ({ path }) =>
        resolved(join(DIST, `${path.split('/')[1] ?? 'index'}.js`)),
      );
    },
  };
}

/** As wrangler does it: the wasm file is a module beside the script. */
const wasmBeside: Plugin = {
  name: 'wasm-beside',
  setup: ({ onResolve }) => {
    onResolve({ filter: /varve\.wasm$/ }, () => ({ path: './varve.wasm', external: true }));
  },
};
