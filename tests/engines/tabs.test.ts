// Two tabs and one store, in each engine: the second is refused or waits, and has the store with all that was acknowledged
// as soon as the first closes it, is closed, is loaded again, or dies.

import type { Store } from 'varve';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Tab } from './support/engine.ts';
import { ENGINES, Session } from './support/engines.ts';

const PLACES = [
  { place: 'where open puts it', options: {} },
  { place: 'in IndexedDB', options: { storage: 'indexeddb' } },
] as const;
type Options = (typeof PLACES)[number]['options'];

const WAIT_MS = 60_000;
const TEN = Array.from({ length: 10 }, (_, i) => `value ${i}`);

declare global {
  /** The store that a test leaves open in a page. */
  var db: Store<number, string>;
}

/** Opens a store in a tab, as the global `db`, and writes ten entries. */
function openAndWrite(tab: Tab, name: string, options: Options): Promise<void> {
  return tab.evaluate(
    async (store, given) => {
      globalThis.db = await varve.open<number, string>(store, given);
      await db.setMany(Array.from({ length: 10 }, (_, i) => [i, `value ${i}`] as const));
    },
    name,
    options,
  );
}

/** Opens a store, reads all of its values, and closes it. */
function readAll(tab: Tab, name: string, wait: number): Promise<string[]> {
  return tab.evaluate(
    async (store, ms) => {
      const found = await varve.open<number, string>(store, { wait: ms });
      const values: string[] = [];
      for await (const value of found.values()) values.push(value);
      await found.close();
      return values;
    },
    name,
    wait,
  );
}

/** Resolves when some page of the origin waits for a lock. */
function someoneWaits(tab: Tab): Promise<void> {
  const waiting = async (): Promise<number> => ((await navigator.locks.query()).pending ?? []).length;
  return expect.poll(() => tab.evaluate(waiting), { timeout: WAIT_MS }).toBe(1);
}

describe.each(ENGINES)('$name', (engine) => {
  let session: Session;
  let first: Tab;
  let second: Tab;

  beforeAll(async () => {
    session = await Session.start(engine);
    first = await session.browser.openTab();
    second = await session.browser.openTab();
  });

  afterAll(() => session?.end());

  describe.each(PLACES)('a store $place', ({ place, options }) => {
    /** Leaves a store open in the first tab and has the second wait for it, does `end`, and expects the second to have it. */
    async function inherit(what: string, end: () => Promise<unknown>): Promise<void> {
      const name = `${what} ${place}`;
      await openAndWrite(first, name, options);
      const reading = readAll(second, name, WAIT_MS);
      await someoneWaits(second);
      await end();
      expect(await reading).toEqual(TEN);
    }

    test('a second tab that does not wait is refused with VARVE_LOCKED, and the first goes on', async () => {
      const name = `refused ${place}`;
      await openAndWrite(first, name, options);
      const code = await second.evaluate((store) => codeOf(() => varve.open(store, { wait: 0 })), name);
      expect(code).toBe('VARVE_LOCKED');
      await first.evaluate(async () => {
        await db.set(10, 'value 10', { durability: 'strict' });
        await db.close();
      });
      expect(await readAll(second, name, 0)).toEqual([...TEN, 'value 10']);
    });

    test('a second tab that waits has the store when the first closes it', () =>
      inherit('closed', () => first.evaluate(() => db.close())));

    test('a second tab that waits has the store when the first is loaded again', () =>
      inherit('reloaded', () => first.reload()));

    test('a second tab that waits has the store when the first is closed', async () => {
      await inherit('left', () => first.close());
      first = await session.browser.openTab();
    });

    test('a second tab that waits has the store when the worker of the first is terminated', async () => {
      const name = `terminated ${place}`;
      await first.evaluate((store, given) => writer.open(store, given), name, options);
      const plan = { seed: 1, round: 0, sequence: 0 };
      await first.evaluate((store, what) => writer.write(store, what, 500), name, plan);
      const before = await first.evaluate((store) => writer.read(store), name);
      const reading = second.evaluate((store) => writer.open(store), name);
      await someoneWaits(second);
      await first.evaluate((store) => writer.terminate(store), name);
      expect({ ...(await reading), state: '' }).toEqual({ ...before, state: '' });
      await second.evaluate((store) => writer.close(store), name);
    });

    // Where all tabs of a site are one process, nobody is left to inherit; tests/engines/kill.test.ts kills that browser.
    if (engine.hasTabProcesses) {
      test('a second tab that waits has the store when the process of the first is killed', async () => {
        await inherit('killed', () => session.browser.killTab(first));
        first = await session.browser.openTab();
      });
    }
  });
});
