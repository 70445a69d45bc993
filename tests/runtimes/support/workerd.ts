/**
 * A real workerd with a bundled Worker and objects that are kept in a folder.
 *
 * Invariant: `stop` kills the process (SIGKILL, which is how miniflare ends it): the next process finds what was on the disk.
 */

import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, type Plugin } from 'esbuild';
import { Miniflare } from 'miniflare';
import type { ObjectNamespace } from '../../../js/src/cloudflare/platform.ts';

const path = (file: string): string => fileURLToPath(new URL(file, import.meta.url));
const DIST = path('../../../dist/');
/** The entries of the package, the longer names first: an alias matches every name that begins with it. */
const ENTRIES = {
  'varve/cloudflare': 'cloudflare.js',
  'varve/collections': 'collections.js',
  'varve/shards': 'shards.js',
  'varve/testing': 'testing.js',
  varve: 'index.js',
};

/** Bundles a Worker as wrangler does: one script, wasm imports left as they are. */
export async function bundleWorker(file: string): Promise<string> {
  const result = await build({
    entryPoints: [path(`../fixtures/${file}`)],
    bundle: true,
    write: false,
    format: 'esm',
    target: 'es2022',
    conditions: ['workerd', 'worker', 'browser'],
    external: ['cloudflare:*'],
    alias: Object.fromEntries(Object.entries(ENTRIES).map(([name, file]) => [name, DIST + file])),
    plugins: [wasmBeside],
    logLevel: 'error',
  });
  return result.outputFiles[0]?.text ?? '';
}

/** Treats imports of wasm files as wrangler does: they stay imports, of modules that are uploaded with the script. */
const wasmBeside: Plugin = {
  name: 'wasm-beside',
  setup(build) {
    build.onResolve({ filter: /\.wasm$/ }, (found) => ({ path: `./${basename(found.path)}`, external: true }));
  },
};

/** How a workerd is started. */
export interface WorkerdOptions {
  /** The bundled Worker. */
  readonly script: string;
  /** Where objects are kept; by default in a folder that is removed afterwards. */
  readonly folder?: string | undefined;
  readonly className?: string | undefined;
  readonly compatibilityDate?: string | undefined;
}

/** A running workerd. */
export class Workerd {
  readonly #miniflare: Miniflare;

  constructor({ script, folder, className = 'TestStore', compatibilityDate = '2026-04-01' }: WorkerdOptions) {
    this.#miniflare = new Miniflare({
      modules: [
        { type: 'ESModule', path: 'worker.js', contents: script },
        ...['varve.wasm', 'varve-tools.wasm'].map((file) => {
          return { type: 'CompiledWasm' as const, path: file, contents: readFileSync(DIST + file) };
        }),
      ],
      compatibilityDate,
      durableObjects: { STORES: { className, useSQLite: true } },
      ...(folder === undefined ? {} : { durableObjectsPersist: folder }),
    });
  }

  /** An object by name: its methods are called through the platform's RPC. */
  async object<T>(name: string): Promise<T> {
    const namespace = (await this.#miniflare.getDurableObjectNamespace('STORES')) as unknown as ObjectNamespace;
    return namespace.get(namespace.idFromName(name)) as T;
  }

  /** The Worker's response. */
  async fetch(pathname: string): Promise<{ status: number; text: string }> {
    const response = await this.#miniflare.dispatchFetch(`http://worker${pathname}`);
    return { status: response.status, text: await response.text() };
  }

  /** A WebSocket to the Worker: sends a message, and returns the answer. */
  async socket(pathname: string): Promise<(message: string) => Promise<string>> {
    const { webSocket } = await this.#miniflare.dispatchFetch(`http://worker${pathname}`, {
      headers: { Upgrade: 'websocket' },
    });
    webSocket?.accept();
    return (message) =>
      new Promise((resolve) => {
        webSocket?.addEventListener('message', ({ data }) => resolve(String(data)), { once: true });
        webSocket?.send(message);
      });
  }

  /** Kills it. */
  stop(): Promise<void> {
    return this.#miniflare.dispose();
  }
}
