/**
 * The peers over IndexedDB, through the whole runner, in Node. A stand-in takes the place of the browser's storage. The runner checks
 * answers as in a run. Rates mean nothing here.
 */

import 'fake-indexeddb/auto';
import { expect, test } from 'vitest';
import type { Access, Engine } from '../core/engine.ts';
import { gathered, planOf } from '../core/fixture.ts';
import '../suites/all.ts';
import { browserLevel } from './browser-level.ts';
import { dexie } from './dexie.ts';
import { idbKeyval } from './idb-keyval.ts';

const SUITES = ['write-rand', 'write-batch', 'read-rand-mem', 'range-100', 'mixed-70', 'delete', 'tuple-read', 'open'];

async function run(engine: Engine, accesses: readonly Access[], suites: readonly string[] = SUITES, calls = 300) {
  const custom = { entries: 250, calls };
  const { rows, problems } = await gathered(planOf(suites, { rounds: 1, custom }), [engine], accesses);
  for (const { ops, verified } of rows) expect([ops > 0, verified]).toEqual([true, true]);
  return { rows: rows.map(({ suite, access }) => `${suite} ${access}`), problems };
}

const without = (...suites: string[]): string[] => SUITES.filter((suite) => !suites.includes(suite));

const IN_WORKER: readonly (readonly [Engine, readonly string[]])[] = [
  [idbKeyval, without('range-100')],
  [dexie, SUITES],
  [browserLevel, without('tuple-read')],
];

test.each(IN_WORKER)('$name gives back what it was given, in a worker', async (engine, suites) => {
  const { rows, problems } = await run(engine, ['worker']);
  expect(problems).toEqual([]);
  expect(rows.sort()).toEqual(suites.map((suite) => `${suite} worker`).sort());
});

test.each(IN_WORKER)('$name gives back what it was given, with many calls in flight', async (engine) => {
  const { rows, problems } = await run(engine, ['inflight']);
  expect(problems).toEqual([]);
  expect(rows).toContain('mixed-70 inflight');
});

test.each([[dexie], [browserLevel]])('$name deletes ranges, in a log that rotates', async (engine) => {
  const { rows, problems } = await run(engine, ['page'], ['rotate'], 20);
  expect(problems).toEqual([]);
  expect(rows).toEqual(['rotate page', 'rotate page', 'rotate page']);
});
