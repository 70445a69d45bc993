// `npm run bench -- encryption [--rounds N]`: the same work in a store with encryption and in one without, in files on Node, in turns. It
// prints medians of the times, and of the ratios of each round: below 1 the encrypted store is slower.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { DIST } from './build.mjs';
import { Problem } from './tools.mjs';

/** @typedef {'plain' | 'encrypted'} Kind */
/** @typedef {import('../js/src/synchronous.ts').SyncStore<number, string>} Store */

const ENTRIES = 100_000;
const READS = 20_000;
const KEY = new Uint8Array(32).fill(7);

/**
 * @param {number} n
 * @param {number} bytes
 */
const value = (n, bytes) => String(n).padEnd(bytes, 'silt and clay, sand and gravel ');

/** @param {string[]} args */
export async function benchEncryption(args) {
  const { values } = parseArgs({ args, options: { rounds: { type: 'string', default: '5' } } });
  const rounds = Number(values.rounds);
  if (!(Number.isInteger(rounds) && rounds > 0)) throw new Problem('`--rounds` takes a whole number from 1.');
  const { open } = await import(pathToFileURL(join(DIST, 'synchronous.js')).href);
  const { open: openAwaited } = await import(pathToFileURL(join(DIST, 'index.js')).href);
  const { files } = await import(pathToFileURL(join(DIST, 'fs.js')).href);
  /** @type {Map<string, Record<Kind, number[]>>} */
  const times = new Map();
  for (let round = 0; round < rounds; round++) {
    for (const kind of /** @type {Kind[]} */ (round % 2 === 0 ? ['plain', 'encrypted'] : ['encrypted', 'plain'])) {
      const folder = mkdtempSync(join(tmpdir(), 'varve-encryption-'));
      const encryption = kind === 'encrypted' ? { encryption: { key: KEY } } : {};
      /** @type {(name: string, memoryBytes?: number) => Promise<Store>} */
      const openStore = (name, memoryBytes = 32 * 2 ** 20) =>
        open(name, { storage: files(folder), memoryBytes, ...encryption });
      const awaited = await openAwaited('awaited', { storage: files(folder), ...encryption });
      for await (const [work, ms] of measure(openStore, awaited)) {
        const row = times.get(work) ?? { plain: [], encrypted: [] };
        row[kind].push(ms);
        times.set(work, row);
      }
      rmSync(folder, { recursive: true, force: true });
    }
  }
  console.log('| work | plain, ms | encrypted, ms | times the rate |\n|---|---|---|---|');
  for (const [work, { plain, encrypted }] of times) {
    const ratios = plain.map((ms, i) => ms / (encrypted[i] ?? ms)).sort((a, b) => a - b);
    const range = `${ratios[0]?.toFixed(2)} to ${ratios.at(-1)?.toFixed(2)}`;
    const cells = [median(plain).toFixed(1), median(encrypted).toFixed(1), `${median(ratios).toFixed(2)} (${range})`];
    console.log(`| ${work} | ${cells.join(' | ')} |`);
  }
}

/**
 * Each work and its milliseconds: awaited calls of `varve`, then calls of `varve/synchronous`.
 * @param {(name: string, memoryBytes?: number) => Promise<Store>} openStore
 * @param {import('../js/src/index.ts').Store<number, string>} awaited a store of `varve`; it is closed
 * @returns {AsyncGenerator<[string, number]>}
 */
async function* measure(openStore, awaited) {
  let start = performance.now();
  for (let n = 0; n < 10_000; n++) await awaited.set(n, value(n, 100));
  yield ['10,000 awaited sets of 100 B', performance.now() - start];
  start = performance.now();
  for (let n = 0; n < 300; n++) await Promise.all(some(n, 100, 100).map(([key, text]) => awaited.set(key, text)));
  yield ['30,000 awaited sets of 100 B, 100 at once', performance.now() - start];
  await awaited.close();
  const small = await openStore('small');
  yield ['20,000 sets of 100 B, one by one', timed(() => repeat(20_000, (n) => small.set(n, value(n, 100))))];
  yield ['100,000 sets of 100 B, 100 together', timed(() => repeat(1000, (n) => small.setMany(some(n, 100, 100))))];
  yield ['200,000 gets from memory', timed(() => repeat(200_000, (n) => small.get(n % 1000)))];
  await small.close();
  yield ['opening and closing', await opening(openStore)];
  const large = await openStore('large', 4 * 2 ** 20);
  yield [
    `${ENTRIES} entries of 400 B loaded`,
    timed(() => repeat(ENTRIES / 1000, (n) => large.setMany(some(n, 1000, 400)))),
  ];
  start = performance.now();
  await large.compact();
  yield ['compacted', performance.now() - start];
  yield [`${READS} gets from tables`, timed(() => repeat(READS, (n) => large.get((n * 7919) % ENTRIES)))];
  await large.close();
}

/** @param {(name: string) => Promise<Store>} openStore */
async function opening(openStore) {
  const all = [];
  for (let n = 0; n < 15; n++) {
    const start = performance.now();
    const db = await openStore('small');
    db.get(1);
    all.push(performance.now() - start);
    await db.close();
  }
  return median(all);
}

/**
 * @param {number} n
 * @param {number} count
 * @param {number} bytes
 */
function some(n, count, bytes) {
  return Array.from({ length: count }, (_, i) => /** @type {const} */ ([n * count + i, value(n * count + i, bytes)]));
}

/**
 * @param {number} times
 * @param {(n: number) => unknown} work
 */
function repeat(times, work) {
  for (let n = 0; n < times; n++) work(n);
}

/** @param {() => void} work */
function timed(work) {
  const start = performance.now();
  work();
  return performance.now() - start;
}

/** @param {readonly number[]} numbers */
function median(numbers) {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? Number.NaN;
}
