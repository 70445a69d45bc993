// The run-time needs of the benchmark page's peers, from their packages: their versions, which go into the page when it is
// bundled, and the files that they fetch, which go beside it as peers/NAME/FILE. Nothing comes from elsewhere.

import { cpSync, mkdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { root } from './tools.mjs';

/**
 * Packages by the names that their files have in bench/peers, with the files that are fetched at run time.
 * @type {Record<string, { package: string, files: string[] }>}
 */
const PEERS = {
  'idb-keyval': { package: 'idb-keyval', files: [] },
  dexie: { package: 'dexie', files: [] },
  'browser-level': { package: 'browser-level', files: [] },
  'sqlite-wasm': { package: '@sqlite.org/sqlite-wasm', files: ['dist/sqlite3.wasm'] },
  'wa-sqlite': { package: 'wa-sqlite', files: ['dist/wa-sqlite.wasm'] },
};

/** @param {string} name */
const folderOf = (name) => join(root, 'node_modules', name);

/** The version of every peer, from its package.json. */
function versions() {
  return Object.fromEntries(
    Object.entries(PEERS).map(([name, peer]) => {
      const manifest = JSON.parse(readFileSync(join(folderOf(peer.package), 'package.json'), 'utf8'));
      return [name, String(manifest.version)];
    }),
  );
}

/**
 * How pages with peers are bundled: every module imported by `import()` becomes a separate file, so that a page fetches no
 * peer that it does not run. (Workers must then be modules.)
 * @returns {import('esbuild').BuildOptions}
 */
export function bundlingOfPeers() {
  return {
    splitting: true,
    define: { PEER_VERSIONS: JSON.stringify(versions()) },
    // Modules that a peer imports where it runs in Node, and never in a page.
    external: ['node:*', 'fs', 'path', 'url', 'module', 'crypto', 'worker_threads'],
  };
}

/**
 * Copies the files that the peers fetch at run time.
 * @param {string} to the folder of the page
 */
export function copyPeers(to) {
  for (const [name, { package: from, files }] of Object.entries(PEERS)) {
    if (files.length > 0) mkdirSync(join(to, 'peers', name), { recursive: true });
    for (const file of files) cpSync(join(folderOf(from), file), join(to, 'peers', name, basename(file)));
  }
}
