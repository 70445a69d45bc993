// `npm run bench -- adapters [--rounds N] [--only TEXT]`: the same work through each adapter and through the library in whose place it
// stands, in Chromium; and through an encrypted store and other encrypted databases. It prints medians, and the ratio of the pairs of each
// round: above 1 the adapter, or the encrypted store, is faster.

import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { browserFlags, findBrowser } from './browser.mjs';
import { DIST } from './build.mjs';
import { STRICT_POLICY, serve } from './server.mjs';
import { buildPages } from './site.mjs';
import { Problem, root } from './tools.mjs';

/** @typedef {'original' | 'adapter'} Side */

/** @param {string[]} args */
export async function benchAdapters(args) {
  const options = /** @type {const} */ ({
    rounds: { type: 'string', default: '5' },
    only: { type: 'string', default: '' },
  });
  const { values } = parseArgs({ args, options });
  const rounds = Number(values.rounds);
  if (!(Number.isInteger(rounds) && rounds > 0)) throw new Problem('`--rounds` takes a whole number from 1.');
  const folder = join(root, 'build', 'adapters');
  await buildPages(join(root, 'tests', 'adapters'), folder);
  cpSync(DIST, join(folder, 'varve'), { recursive: true });
  const cipher = 'mc-wa-sqlite-async.wasm';
  cpSync(join(root, 'node_modules', '@journeyapps', 'wa-sqlite', 'dist', cipher), join(folder, cipher));
  const site = await serve({ mounts: [{ path: '/', folder, headers: STRICT_POLICY }] });
  const profile = mkdtempSync(join(tmpdir(), 'varve-profile-'));
  const { chromium } = await import('playwright');
  const executablePath = await findBrowser();
  const launch = { args: browserFlags(), ...(executablePath && { executablePath }) };
  const context = await chromium.launchPersistentContext(profile, launch);
  try {
    await compare(await context.newPage(), `${site.origin}/bench.html`, rounds, values.only);
  } finally {
    await context.close();
    await site.close();
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
  }
}

/**
 * Prints a row of a table for each work.
 * @param {import('playwright').Page} page
 * @param {string} url
 * @param {number} rounds
 * @param {string} only a part of the names of the works that run
 */
async function compare(page, url, rounds, only) {
  const load = () => page.goto(url);
  await load();
  const works = await page.evaluate(() => globalThis.adapterBench.works);
  console.log('| work | original, ms | adapter, ms | times the rate |\n|---|---|---|---|');
  for (const [index, work] of works.entries()) {
    if (!work.includes(only)) continue;
    await load();
    await page.evaluate((index) => globalThis.adapterBench.fill(index), index);
    /** @type {Record<Side, number[]>} */
    const times = { original: [], adapter: [] };
    for (let round = 0; round < rounds; round++) {
      /** @type {Side[]} */
      const sides = round % 2 === 0 ? ['original', 'adapter'] : ['adapter', 'original'];
      for (const side of sides) {
        await load();
        times[side].push(
          await page.evaluate(
            ([index, side]) => globalThis.adapterBench.measure(index, side),
            /** @type {const} */ ([index, side]),
          ),
        );
      }
    }
    const ratios = times.original.map((time, i) => time / (times.adapter[i] ?? 0)).sort((a, b) => a - b);
    const range = `${figure(ratios[0])} to ${figure(ratios.at(-1))}`;
    const [original, adapter] = [median(times.original), median(times.adapter)].map((time) => time.toFixed(1));
    console.log(`| ${work} | ${original} | ${adapter} | ${figure(median(ratios))} (${range}) |`);
  }
}

/** @param {number[]} numbers */
const median = (numbers) => [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 0;

const figure = (number = 0) => number.toPrecision(2);
