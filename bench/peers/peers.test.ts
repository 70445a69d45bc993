/**
 * The peers over IndexedDB and localStorage, through the whole runner, in Node: over a stand-in of the browser's storage
 * their answers are checked as in a run. Rates mean nothing here.
 */

import 'fake-indexeddb/auto';
import { beforeAll, expect, test } from 'vitest';
import type { Access, Engine } from '../core/engine.ts';
import type { Plan, RunEvent } from '../core/plan.ts';
import { SuiteRunner } from '../core/runner.ts';
import { browserLevel } from './browser-level.ts';
import { dexie } from './dexie.ts';
import { idb } from './idb.ts';
import { idbKeyval } from './idb-keyval.ts';
import { localForage } from './localforage.ts';
import { localStorageEngine } from './localstorage.ts';

/** What a browser's localStorage is, as far as a Map can be that. */
class MapStorage implements Pick<Storage, 'length' | 'key' | 'getItem' | 'setItem' | 'removeItem'> {
  readonly #entries = new Map<string, string>();

  get length(): number {
    return this.#entries.size;
  }

  key(index: number): string | null {
    return [...this.#entries.keys()][index] ?? null;
  }

  getItem(name: string): string | null {
    return this.#entries.get(name) ?? null;
  }

  setItem(name: string, value: string): void {
    this.#entries.set(name, value);
  }

  removeItem(name: string): void {
    this.#entries.delete(name);
  }
}

const storage = new MapStorage();

beforeAll(() => {
  Object.assign(globalThis, { localStorage: storage });
});

const SUITES = ['write-rand', 'write-batch', 'read-rand-mem', 'range-100', 'mixed-70', 'delete', 'tuple-read', 'open'];

async function run(
  engine: Engine,
  accesses: readonly Access[],
  suites: readonly string[] = SUITES,
  calls = 300,
): Promise<{ rows: string[]; problems: string[] }> {
  const rows: string[] = [];
  const problems: string[] = [];
  const emit = (event: RunEvent): void => {
    if (event.type === 'row') {
      const { suite, access, ops, verified } = event.row;
      expect(ops).toBeGreaterThan(0);
      rows.push(`${suite} ${access}`);
      if (!verified) problems.push(`${suite} (${access}) was not verified.`);
    }
    if (event.type === 'problem') problems.push(event.text);
  };
  const custom = { entries: 250, calls };
  const rest = { mode: 'quick', rounds: 1, seed: 1, scale: 1, custom } as const;
  const plan: Plan = { ...rest, suites, engines: [engine.name], accesses };
  await new SuiteRunner(plan, [engine], emit, new AbortController().signal).run(accesses);
  return { rows, problems };
}

const everySuite = [
  ...['write-rand', 'write-batch', 'read-rand-mem', 'range-100', 'mixed-70', 'delete', 'tuple-read', 'open'],
];
const without = (...suites: string[]): string[] => everySuite.filter((suite) => !suites.includes(suite));

const IN_WORKER: readonly (readonly [Engine, readonly string[]])[] = [
  [idb, everySuite],
  [idbKeyval, without('range-100')],
  [localForage, without('write-batch', 'range-100', 'tuple-read', 'open')],
  [dexie, everySuite],
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

test.each([[idb], [dexie], [browserLevel]])('$name deletes ranges, in a log that rotates', async (engine) => {
  const { rows, problems } = await run(engine, ['page'], ['rotate'], 20);
  expect(problems).toEqual([]);
  expect(rows).toEqual(['rotate page', 'rotate page', 'rotate page']);
});

test('localStorage gives back what it was given, and leaves nothing behind', async () => {
  const { rows, problems } = await run(localStorageEngine, ['worker', 'page', 'inflight']);
  expect(problems).toEqual([]);
  expect(rows).toEqual(['write-rand page', 'read-rand-mem page', 'mixed-70 page']);
  expect(storage.length).toBe(0);
});
