// Stores in Deno KV beside Deno KV itself, in one run of the real deno, on a database in a temporary file:
// `npm run build && npm run bench -- deno-kv`.
// Invariant: both keep the same pairs, in the same database, by operations that are durable when they resolve; the two take
// turns, and the figures are medians of the rounds.

import process from 'node:process';

// Found when it runs: types are checked before the package is built.
const built = (/** @type {string} */ name) => import(new URL(`../../../dist/${name}`, import.meta.url).href);
/** @type {typeof import('../../../js/src/deno-kv.ts')} */
const { denoKv } = await built('deno-kv.js');
/** @type {typeof import('../../../js/src/index.ts')} */
const { open } = await built('index.js');

const ROUNDS = 7;
const AWAITED = 200;
const FLIGHTS = 20;
const IN_FLIGHT = 100;
const VALUE = new Uint8Array(100).fill(7);

/** @typedef {{ set(key: number, value: Uint8Array): Promise<unknown>, get(key: number): Promise<unknown> }} Pairs */

const kv = await /** @type {any} */ (globalThis).Deno.openKv(process.argv[2]);
const db = await open('bench', { storage: denoKv(kv) });

/** @type {Record<string, Pairs>} */
const SUBJECTS = {
  varve: { set: (key, value) => db.set(key, value), get: (key) => db.get(key) },
  'kv.set, kv.get': { set: (key, value) => kv.set(['bench', key], value), get: (key) => kv.get(['bench', key]) },
};

/** @typedef {(key: number) => Promise<unknown>} Call */

/** Makes calls one by one. @param {Call} call */
async function awaited(call) {
  for (let i = 0; i < AWAITED; i++) await call(i);
  return AWAITED;
}

/** Makes calls 100 at once. @param {Call} call */
async function inFlight(call) {
  for (let flight = 0; flight < FLIGHTS; flight++) {
    await Promise.all(Array.from({ length: IN_FLIGHT }, (_, i) => call(flight * IN_FLIGHT + i)));
  }
  return FLIGHTS * IN_FLIGHT;
}

/** @type {Record<string, (pairs: Pairs) => Promise<number>>} Each returns the number of its operations. */
const ROWS = {
  'set, awaited': ({ set }) => awaited((i) => set(i, VALUE)),
  'set, 100 in flight': ({ set }) => inFlight((i) => set(i, VALUE)),
  'get, awaited': ({ get }) => awaited(get),
  'get, 100 in flight': ({ get }) => inFlight(get),
};

/** @param {number[]} times */
const median = (times) => [...times].sort((a, b) => a - b)[times.length >> 1] ?? 0;

console.log(`| µs an operation | ${Object.keys(SUBJECTS).join(' | ')} | ratio |\n|---|--:|--:|--:|`);
for (const [name, row] of Object.entries(ROWS)) {
  /** @type {Map<string, number[]>} */
  const times = new Map(Object.keys(SUBJECTS).map((subject) => [subject, []]));
  for (let round = 0; round < ROUNDS; round++) {
    for (const [subject, pairs] of Object.entries(SUBJECTS)) {
      const start = performance.now();
      const operations = await row(pairs);
      // The first round warms up.
      if (round > 0) times.get(subject)?.push(((performance.now() - start) * 1000) / operations);
    }
  }
  const [mine = 0, theirs = 0] = [...times.values()].map(median);
  console.log(`| ${name} | ${mine.toFixed(1)} | ${theirs.toFixed(1)} | ${(mine / theirs).toFixed(3)} |`);
}
await db.close();
kv.close();
