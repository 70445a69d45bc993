/**
 * workerd with the Worker of object.ts, started by miniflare in a process of its own.
 *
 * Invariant: requests reach the Worker through a socket of its own, not through miniflare's entry Worker, which would add a
 * hop that no deployment has.
 */

import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { Miniflare } from 'miniflare';
import { dismissed, say, told } from './told.ts';

const here = dirname(fileURLToPath(import.meta.url));
const versions = process.argv[3] ?? '';
const miniflare = new Miniflare({
  modules: [
    { type: 'ESModule', path: 'worker.js', contents: readFileSync(join(here, 'object.mjs'), 'utf8') },
    { type: 'CompiledWasm', path: 'varve.wasm', contents: readFileSync(join(here, '..', '..', 'dist', 'varve.wasm')) },
  ],
  compatibilityDate: '2026-04-01',
  durableObjects: { STORES: { className: 'HttpStore', useSQLite: true } },
  durableObjectsPersist: told().directory,
  unsafeDirectSockets: [{ host: '127.0.0.1', port: 0 }],
});
const { origin } = await miniflare.unsafeGetDirectURL();
say({ url: origin, versions });
await dismissed();
await miniflare.dispose();
process.exit();
