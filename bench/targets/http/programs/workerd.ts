/**
 * workerd with the Worker of object.ts, started by miniflare in a process of its own.
 *
 * Invariant: requests reach the Worker through a socket of its own, not through miniflare's entry Worker, which would add a
 * hop that no deployment has. Its wasm file is a module beside the script, as wrangler does it.
 */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { build } from 'esbuild';
import { Miniflare } from 'miniflare';
import { options, serveUntilDismissed } from './program.ts';

const root = process.cwd();
const dist = (name: string): string => join(root, 'dist', name);

const { outputFiles } = await build({
  entryPoints: [join(root, 'bench', 'targets', 'http', 'programs', 'object.ts')],
  bundle: true,
  write: false,
  format: 'esm',
  target: 'es2022',
  conditions: ['workerd'],
  external: ['cloudflare:*', '*.wasm'],
  alias: { 'varve/cloudflare': dist('cloudflare.js'), 'varve/http': dist('http.js') },
  logLevel: 'error',
});
const miniflare = new Miniflare({
  modules: [
    { type: 'ESModule', path: 'worker.js', contents: outputFiles[0]?.text ?? '' },
    { type: 'CompiledWasm', path: 'varve.wasm', contents: readFileSync(dist('varve.wasm')) },
  ],
  compatibilityDate: '2026-04-01',
  durableObjects: { STORES: { className: 'HttpStore', useSQLite: true } },
  durableObjectsPersist: options.directory,
  unsafeDirectSockets: [{ host: '127.0.0.1', port: 0 }],
});
const { origin } = await miniflare.unsafeGetDirectURL();
await serveUntilDismissed({ url: origin, versions: '' }, () => miniflare.dispose());
