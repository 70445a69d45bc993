// Two tabs and one store, in each engine: both read and write it. The second continues with everything acknowledged when the
// first closes the store, is closed, is loaded again, or is killed.

import type { Store } from 'varve';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Tab } from './support/engine.ts';
import { ENGINES, leftOpen, rest, Session } from './support/engines.ts';

const PLACES = [
  { place: 'where open puts it', options: {} },
  { place: 'in IndexedDB', options: { storage: 'indexeddb' } },
] as const;
type Options = (typeof PLACES)[number]['options'] & { worker?: string };

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

/** Reads all of the values of the open store. */
function readAll(tab: Tab): Promise<string[]> {
  return tab.evaluate(async () => {
    const values: string[] = [];
    for await (const value of db.values()) values.push(value);
    return values;
  });
}

/** Opens a store in a tab, as the global `db`. */
function openIn(tab: Tab, name: string): Promise<void> {
  return tab.evaluate(async (store) => {
    globalThis.db = await varve.open<number, string>(store);
  }, name);
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

  test('tabs share an encrypted store with a key that cannot be read, and the second goes on with it', async () => {
    const openWith = (tab: Tab): Promise<void> =>
      tab.evaluate(async () => {
        const bytes = new Uint8Array(32).fill(7);
        const key = await crypto.subtle.importKey('raw', bytes, 'AES-GCM', false, ['encrypt', 'decrypt']);
        globalThis.db = await varve.open<number, string>('encrypted', { encryption: { key } });
      });
    await openWith(first);
    await first.evaluate(() => db.set(1, 'one'));
    await openWith(second);
    expect(await second.evaluate(() => db.get(1))).toBe('one');
    await first.evaluate(() => db.close());
    expect(await second.evaluate(() => db.get(1))).toBe('one');
    await second.evaluate(() => db.close());
  });

  afterAll(() => session?.end());

  describe.each(PLACES)('a store $place', ({ place, options }) => {
    /** Opens a store in both tabs, runs `end` on the first, which leads, and expects the second to continue. */
    async function inherit(what: string, end: () => Promise<unknown>): Promise<void> {
      const name = `${what} ${place}`;
      await openAndWrite(first, name, leftOpen(engine, options));
      await openIn(second, name);
      expect(await readAll(second)).toEqual(TEN);
      await end();
      await second.evaluate(() => db.set(10, 'value 10'));
      expect(await readAll(second)).toEqual([...TEN, 'value 10']);
      expect(await second.evaluate(async () => (await db.stats()).sharing?.leads)).toBe(true);
      await second.evaluate(() => db.close());
    }

    test('both tabs read and write one store', async () => {
      const name = `shared ${place}`;
      await openAndWrite(first, name, options);
      await openIn(second, name);
      expect(await readAll(second)).toEqual(TEN);
      await Promise.all([first.evaluate(() => db.set(10, 'ten')), second.evaluate(() => db.set(11, 'eleven'))]);
      expect(await readAll(first)).toEqual([...TEN, 'ten', 'eleven']);
      const reports = [first, second].map((tab) => tab.evaluate(async () => (await db.stats()).sharing));
      // A hidden tab hands the lead to a visible one.
      const [follower, leader] = (await Promise.all(reports)).sort((a, b) => Number(a?.leads) - Number(b?.leads));
      expect(leader).toEqual({ leads: true, via: 'worker', clients: 2 });
      expect(follower).toEqual({ leads: false, via: expect.stringMatching(/port|channel/), clients: 2 });
      await second.evaluate(() => db.close());
      await first.evaluate(() => db.close());
    });

    test('the second tab continues when the first closes the store', () =>
      inherit('closed', () => first.evaluate(() => db.close())));

    test('the second tab continues when the first is loaded again', () =>
      inherit('reloaded', () => rest(engine, first).then(() => first.reload())));

    test('the second tab continues when the first is closed', async () => {
      await inherit('left', () => rest(engine, first).then(() => first.close()));
      first = await session.browser.openTab();
    });

    test('the second tab has all of it when the worker of the first is terminated', async () => {
      const name = `terminated ${place}`;
      await first.evaluate((store, given) => writer.open(store, given), name, options);
      const plan = { seed: 1, round: 0, sequence: 0 };
      await first.evaluate((store, what) => writer.write(store, what, 500), name, plan);
      const before = await first.evaluate((store) => writer.read(store), name);
      await first.evaluate((store) => writer.terminate(store), name);
      const found = await second.evaluate((store) => writer.open(store), name);
      expect({ ...found, state: '' }).toEqual({ ...before, state: '' });
      await second.evaluate((store) => writer.close(store), name);
      await first.reload();
    });

    // Where all tabs of a site are one process, no tab is left to take over; tests/engines/kill.test.ts kills that browser.
    if (engine.hasTabProcesses) {
      test('the second tab continues when the process of the first is killed', async () => {
        await inherit('killed', () => session.browser.killTab(first));
        first = await session.browser.openTab();
      });
    }
  });
});
