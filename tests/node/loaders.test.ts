/** Parts of the package that are loaded at their first use: what happens where they cannot be loaded, and what is loaded ahead. */

import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { open } from '../../js/src/index.ts';
import { loadAhead, loaders } from '../../js/src/store/loaders.ts';
import { openStore } from '../../js/src/store/open.ts';
import { spawnServer, wasm } from './support/engine.ts';
import { KeptDevices } from './support/kept-devices.ts';

/** The parts that were asked for, and whether there is a network. */
const network = vi.hoisted(() => {
  const loads: string[] = [];
  const state = { isThere: true, loads };
  const fetched = async (name: string, original: () => Promise<unknown>): Promise<object> => {
    loads.push(name);
    if (!state.isThere) throw new TypeError('Failed to fetch dynamically imported module');
    return (await original()) as object;
  };
  return Object.assign(state, { fetched });
});
vi.mock('../../js/src/store/transaction.ts', (original) => network.fetched('transactions', original));
vi.mock('../../js/src/store/begin.ts', (original) => network.fetched('begin', original));
vi.mock('../../js/src/changes/changes.ts', (original) => network.fetched('changes', original));
vi.mock('../../js/src/store/live.ts', (original) => network.fetched('live', original));
vi.mock('../../js/src/store/portable.ts', (original) => network.fetched('portable', original));
vi.mock('../../js/src/client/blobs.ts', (original) => network.fetched('blobs', original));
vi.mock('../../js/src/server/inline.ts', (original) => network.fetched('inline', original));

beforeEach(() => {
  // Nothing is loaded yet.
  vi.resetModules();
  network.loads.length = 0;
});

afterEach(() => {
  network.isThere = true;
  vi.useRealTimers();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

test('a part that cannot be loaded is an error with advice, and the next call tries again', async () => {
  const db = await openStore<string, unknown>('test', { wasm, storage: 'memory', cache: false }, spawnServer);
  const live = (): Promise<unknown> =>
    new Promise((resolve, reject) => db.live(() => 7).subscribe((value) => value === 7 && resolve(value), reject));
  const calls = {
    update: () => db.update('n', () => 1),
    transaction: () => db.transaction(() => 7),
    begin: () => db.begin().then((tx) => tx.rollback()),
    changes: () => db.changes({ since: 0 })[Symbol.asyncIterator]().next(),
    live,
    export: () => db.export().getReader().read(),
    import: () => db.import(new Blob([])),
    blobs: () => db.set('blob', new Blob(['a'])),
  };
  network.isThere = false;
  for (const [name, call] of Object.entries(calls)) {
    const error: unknown = await call().catch((failure: unknown) => failure);
    expect(error, name).toMatchObject({ name: 'VarveError', code: 'VARVE_UNAVAILABLE', cause: expect.any(Error) });
    expect(String(error), name).toMatch(/A part of varve could not be loaded.*reload the page/);
  }
  expect(network.loads).toEqual(
    expect.arrayContaining(['transactions', 'begin', 'changes', 'live', 'portable', 'blobs']),
  );
  network.isThere = true;
  expect(await calls.transaction()).toBe(7);
  expect(await live()).toBe(7);
  await db.close();
});

// The story: a store with an adapter was opened without a network. It was reported that the engine had stopped, for good (VARVE_INTERNAL).
test('an engine for an adapter that cannot be loaded is unavailable, and the next opening tries again', async () => {
  const storage = new KeptDevices();
  network.isThere = false;
  await expect(open('test', { storage, wasm })).rejects.toMatchObject({
    code: 'VARVE_UNAVAILABLE',
    message: expect.stringMatching(/A part of varve could not be loaded/),
  });
  network.isThere = true;
  await (await open('test', { storage, wasm })).close();
});

test('the parts of common calls are loaded ahead, in a page, some seconds after the store was opened', () => {
  vi.useFakeTimers({ toFake: ['setTimeout'] });
  const names = ['transactions', 'begin', 'changes', 'live'] as const;
  const load = vi.fn(() => Promise.reject(new Error('There is no network.')));
  for (const name of names) vi.spyOn(loaders, name).mockImplementation(load);
  loadAhead();
  vi.advanceTimersByTime(5000);
  expect(load).not.toHaveBeenCalled();
  vi.stubGlobal('document', {});
  loadAhead();
  vi.advanceTimersByTime(2000);
  expect(load).not.toHaveBeenCalled();
  vi.advanceTimersByTime(3000);
  expect(load).toHaveBeenCalledTimes(names.length);
});
