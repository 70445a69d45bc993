/** Workers of the bench: how they are bundled, and the settings of the workerd that runs them. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import type { MiniflareOptions } from 'miniflare';

/** A program that was bundled into another folder runs in that of the repository. */
const root = process.cwd();
export const DIST = join(root, 'dist');

/** Bundles a Worker with the package as it was built. Its wasm file is a module beside the script, as wrangler does it. */
export async function bundledWorker(...path: string[]): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [join(root, 'bench', 'targets', ...path)],
    bundle: true,
    write: false,
    format: 'esm',
    target: 'es2022',
    conditions: ['workerd'],
    external: ['cloudflare:*', '*.wasm'],
    alias: { 'varve/cloudflare': join(DIST, 'cloudflare.js'), 'varve/http': join(DIST, 'http.js') },
    logLevel: 'error',
  });
  return outputFiles[0]?.text ?? '';
}

/** The settings for a Worker. `objects`: the classes of its Durable Objects, by their bindings; `folder`: for their data. */
export function workerOptions(script: string, objects: Readonly<Record<string, string>>, folder: string) {
  const entries = Object.entries(objects).map(([binding, className]) => [binding, { className, useSQLite: true }]);
  return {
    modules: [
      { type: 'ESModule', path: 'worker.js', contents: script },
      { type: 'CompiledWasm', path: 'varve.wasm', contents: readFileSync(join(DIST, 'varve.wasm')) },
    ],
    compatibilityDate: '2026-04-01',
    durableObjects: Object.fromEntries(entries),
    durableObjectsPersist: folder,
  } satisfies MiniflareOptions;
}
