/**
 * The notes app as a site for each store, built by Vite without configuration, and served with gzip and lasting caches.
 *
 * Invariant: no site has a byte of another store, and all are built in one way.
 */

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { build } from 'vite';
import { locate, serve } from '../../../scripts/server.mjs';
import { root } from '../../../scripts/tools.mjs';

/** The packages of the stores; `memory` is the app without one. */
export const PACKAGES = {
  ...{ varve: '..', dexie: 'dexie', 'idb-keyval': 'idb-keyval' },
  ...{ 'sqlite-wasm': '@sqlite.org/sqlite-wasm', memory: '' },
} as const;
export type StoreName = keyof typeof PACKAGES;
export const STORES = Object.keys(PACKAGES) as StoreName[];

const HTML =
  '<!doctype html><title>Notes</title><link rel="icon" href="data:,"><script type="module" src="app.js"></script>';
const CACHED = { 'cache-control': 'max-age=31536000, immutable' };

export interface Site {
  readonly origin: string;
  /** The files that were asked for since the last call, and their bytes after gzip. */
  taken(): { readonly requests: number; readonly bytes: number };
  close(): Promise<void>;
}

/** Builds the app of these stores into `folder`, and serves each at the path of its name. */
export async function startSites(stores: readonly StoreName[], folder: string): Promise<Site> {
  for (const store of stores) {
    const input = join(root, 'bench', 'targets', 'visit', 'pages', `${store}.ts`);
    const output = { entryFileNames: 'app.js' };
    const outDir = join(folder, store);
    const options = { outDir, emptyOutDir: true, modulePreload: { polyfill: false }, rollupOptions: { input, output } };
    await build({ configFile: false, logLevel: 'error', root, base: './', publicDir: false, build: options });
    writeFileSync(join(outDir, 'index.html'), HTML);
  }
  const mounts = [{ path: '/', folder, gzip: true, headers: CACHED }];
  let paths: string[] = [];
  const respond = (path: string): boolean => {
    paths.push(path.endsWith('/') ? `${path}index.html` : path);
    return false;
  };
  const { origin, close } = await serve({ mounts, respond });
  return {
    origin,
    taken: () => {
      const files = paths.flatMap((path) => locate(path, mounts)?.file ?? []);
      paths = [];
      return {
        requests: files.length,
        bytes: files.reduce((sum, file) => sum + gzipSync(readFileSync(file)).length, 0),
      };
    },
    close,
  };
}
