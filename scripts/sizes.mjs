// The size of the package, and the budget that keeps it small. Every build prints it; `npm run build` and
// `npm run check` fail above the budget, `npm start` still shows the pages.
// Invariant: every file that can be imported or fetched has a budget; a new entry point without one fails as if above its own.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { Problem, root } from './tools.mjs';

/** Which files each entry loads, as the build found them: written beside dist, not into it. */
export const CLOSURES = join(root, 'build', 'closures.json');

/**
 * The largest allowed size of a file after gzip, in bytes, with all that it loads at once. The budget of a file is its size plus a tenth;
 * those of the engine and of the client (index.js, which a page loads) are tighter. All entries share one chunk, which a page loads once,
 * and each of them counts it.
 */
export const GZIP_BYTES_MAX = new Map([
  ['varve.wasm', 139 * 1024],
  ['index.js', 29.5 * 1024],
  ['http.js', 31 * 1024],
  ['collections.js', 27.5 * 1024],
  ['async-storage.js', 1024],
  ['react.js', 30 * 1024],
  ['unstorage.js', 1024],
  ['idb-keyval.js', 31.25 * 1024],
  ['abstract-level.js', 31.75 * 1024],
  ['yjs.js', 32 * 1024],
  ['automerge.js', 30.75 * 1024],
  ['zero.js', 30.25 * 1024],
  ['inspector.js', 1.25 * 1024],
  ['deno-kv.js', 27.75 * 1024],
  ['varve-tools.wasm', 88.25 * 1024],
  ['engine-worker.js', 26.25 * 1024],
  ['encryption-worker.js', 3.25 * 1024],
  ['indexeddb-worker.js', 11.25 * 1024],
  ['repair-worker.js', 10.75 * 1024],
  ['broker-worker.js', 1024],
  ['compactor-worker.js', 8 * 1024],
  ['file-compactor-worker.js', 8 * 1024],
  ['synchronous.js', 47.5 * 1024],
  ['inline.js', 83 * 1024],
  ['fs.js', 22.25 * 1024],
  ['cloudflare.js', 53.75 * 1024],
  ['shards.js', 20.5 * 1024],
  ['storage-adapter.js', 1024],
  ['testing.js', 68.75 * 1024],
  ['cli.js', 31 * 1024],
]);

/** The files that a page loads at its first visit, each with all that it loads at once. Their budgets are the budget of the visit. */
const FIRST_VISIT = ['index.js', 'engine-worker.js', 'varve.wasm'];
/** That many files: a page without a bundler makes a request for each. */
const FIRST_VISIT_FILES_MAX = 5;

/** @typedef {{ name: string, files: number, raw: number, gzip: number, brotli: number, budget: number | undefined }} Size in bytes */

/**
 * The size of every entry, with all that it loads at once, and of every wasm file of a folder.
 * @param {string} folder
 * @param {Record<string, string[]>} closures the files that each entry loads, itself included; an entry not named here loads only itself
 * @param {ReadonlyMap<string, number>} [budgets]
 * @returns {Size[]}
 */
export function sizesOf(folder, closures, budgets = GZIP_BYTES_MAX) {
  const isListed = (/** @type {string} */ file) => /\.(js|wasm)$/.test(file) && !file.startsWith('chunk-');
  return readdirSync(folder)
    .filter(isListed)
    .map((name) => {
      const parts = closures[name] ?? [name];
      const bytes = Buffer.concat(parts.map((part) => readFileSync(join(folder, part))));
      const brotli = { params: { [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length } };
      return {
        name,
        files: parts.length,
        raw: bytes.length,
        gzip: gzipSync(bytes, { level: 9 }).length,
        brotli: brotliCompressSync(bytes, brotli).length,
        budget: budgets.get(name),
      };
    });
}

/**
 * The problems with sizes, a sentence each.
 * @param {readonly Size[]} sizes
 */
export function problemsOf(sizes) {
  const problems = sizes.flatMap(({ name, gzip, budget }) => {
    if (budget === undefined) return [`${name} has no budget.`];
    return gzip > budget ? [`${name} is ${gzip - budget} bytes over its budget.`] : [];
  });
  const { files } = visitOf(sizes);
  return files > FIRST_VISIT_FILES_MAX ? [...problems, `A first visit loads ${files} files.`] : problems;
}

/**
 * The files of a first visit, and their bytes after gzip.
 * @param {readonly Size[]} sizes
 */
function visitOf(sizes) {
  const visit = sizes.filter(({ name }) => FIRST_VISIT.includes(name));
  const total = (/** @type {'files' | 'gzip'} */ what) => visit.reduce((sum, size) => sum + size[what], 0);
  return { files: total('files'), gzip: total('gzip') };
}

/**
 * Prints the sizes of a folder.
 * @param {string} folder
 * @returns {{ failIfOver: () => void }} throws a Problem when a file is over its budget, or has none
 */
export function printSizes(folder) {
  const sizes = sizesOf(folder, existsSync(CLOSURES) ? JSON.parse(readFileSync(CLOSURES, 'utf8')) : {});
  const cell = (/** @type {number} */ n) => n.toLocaleString('en-US').padStart(10);
  console.log('\nfile                             raw      gzip    brotli    budget (gzip)');
  for (const { name, raw, gzip, brotli, budget } of sizes) {
    const mark = budget === undefined ? '      none' : `${cell(budget)}${gzip > budget ? '  over' : ''}`;
    console.log(`${name.padEnd(26)}${cell(raw)}${cell(gzip)}${cell(brotli)}${mark}`);
  }
  const visit = visitOf(sizes);
  console.log(`\nfirst visit: ${visit.files} files, ${visit.gzip.toLocaleString('en-US')} bytes (gzip)`);
  const problems = problemsOf(sizes);
  return {
    failIfOver: () => {
      if (problems.length === 0) return;
      throw new Problem(`${problems.join(' ')} See what grew, or move the budget in scripts/sizes.mjs.`);
    },
  };
}
