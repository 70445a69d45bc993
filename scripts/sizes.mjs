// What the package weighs, and the budget that keeps it small. Every build prints it; `npm run build` and
// `npm run check` fail above the budget, `npm start` still shows the pages.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { Problem, root } from './tools.mjs';

/** Which files each entry loads, as the build found them: written beside dist, not into it. */
export const CLOSURES = join(root, 'build', 'closures.json');

/** The most that a file may weigh after gzip, in bytes. The client is what a page loads; the rest loads in workers, the tools only when they are asked for. */
const GZIP_BYTES_MAX = new Map([
  ['varve.wasm', 100 * 1024],
  ['index.js', 20 * 1024],
  ['http.js', 20 * 1024],
  ['deno.js', 12 * 1024],
  ['varve-tools.wasm', 80 * 1024],
]);

/**
 * Prints the size of every entry, with all that it loads at once, and of every wasm file of a folder.
 * @param {string} folder
 * @returns {{ failIfOver: () => void }} throws a Problem when a file is over its budget
 */
export function printSizes(folder) {
  /** @type {string[]} */
  const over = [];
  console.log('\nfile                        raw      gzip    brotli    budget (gzip)');
  const closures = existsSync(CLOSURES) ? JSON.parse(readFileSync(CLOSURES, 'utf8')) : {};
  const isListed = (/** @type {string} */ file) => /\.(js|wasm)$/.test(file) && !file.startsWith('chunk-');
  for (const name of readdirSync(folder).filter(isListed)) {
    const parts = closures[name] ?? [name];
    const bytes = Buffer.concat(parts.map((/** @type {string} */ part) => readFileSync(join(folder, part))));
    const gzip = gzipSync(bytes, { level: 9 }).length;
    const brotli = brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length } }).length;
    const budget = GZIP_BYTES_MAX.get(name);
    const cells = [bytes.length, gzip, brotli].map((n) => n.toLocaleString('en-US').padStart(10)).join('');
    const mark = budget && gzip > budget ? '  over' : '';
    console.log(`${name.padEnd(21)}${cells}${budget ? budget.toLocaleString('en-US').padStart(12) : ''}${mark}`);
    if (budget && gzip > budget) over.push(`${name} is ${gzip - budget} bytes over its budget.`);
  }
  return {
    failIfOver: () => {
      if (over.length === 0) return;
      throw new Problem(`${over.join(' ')} See what grew, or move the budget in scripts/sizes.mjs.`);
    },
  };
}
