// A store belongs to one tab or worker at a time: the second is refused, or waits for the first; nobody is harmed.

import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { newProfile, openWorker, type Profile } from './support/profile.ts';

let profile: Profile;
let first: Page;
let second: Page;

declare global {
  /** The store that a test leaves open in a page. */
  var db: import('varve').Store<number, string>;
}

beforeAll(async () => {
  profile = await newProfile();
});

afterAll(() => profile?.close());

beforeEach(async () => {
  first = (await profile.openPage()).page;
  second = (await profile.openPage()).page;
});

afterEach(() => Promise.all([first.close(), second.close()]));

/** Opens a store in a tab, as the global `db`, and writes ten entries. */
async function openAndWrite(page: Page, name: string): Promise<void> {
  await page.evaluate(async (store) => {
    globalThis.db = await varve.open<number, string>(store);
    await db.setMany(Array.from({ length: 10 }, (_, i) => [i, `value ${i}`] as const));
  }, name);
}

const TEN = Array.from({ length: 10 }, (_, i) => `value ${i}`);

/** Opens a store, reads all of its values, and closes it. */
function readAll(page: Page, name: string, wait: number): Promise<string[]> {
  return page.evaluate(
    async ([store, ms]) => {
      const found = await varve.open<number, string>(store, { wait: ms });
      const values: string[] = [];
      for await (const value of found.values()) values.push(value);
      await found.close();
      return values;
    },
    [name, wait] as const,
  );
}

/** What opening a store answers. */
function tryOpen(page: Page, name: string, wait: number): Promise<string> {
  return page.evaluate(
    ([store, ms]) =>
      codeOf(async () => {
        globalThis.db = await varve.open<number, string>(store, { wait: ms });
      }),
    [name, wait] as const,
  );
}

/** Resolves when some page of the origin waits for a lock. */
function someoneWaits(page: Page): Promise<void> {
  const pending = async (): Promise<number> => ((await navigator.locks.query()).pending ?? []).length;
  return expect.poll(() => page.evaluate(pending), { timeout: 20_000 }).toBe(1);
}

test('a second tab that does not wait is refused at once, and the first goes on', async () => {
  await openAndWrite(first, 'refused');
  expect(await tryOpen(second, 'refused', 0)).toBe('VARVE_LOCKED');
  await first.evaluate(async () => {
    await db.set(10, 'value 10', { durability: 'strict' });
    await db.close();
  });
  expect(await readAll(second, 'refused', 0)).toEqual([...TEN, 'value 10']);
});

test('a second tab that waits opens the store when the first closes it', async () => {
  await openAndWrite(first, 'awaited');
  let opened = false;
  const reading = readAll(second, 'awaited', 60_000).finally(() => {
    opened = true;
  });
  await someoneWaits(first);
  await first.evaluate(() => db.set(10, 'value 10'));
  expect(opened).toBe(false);
  await first.evaluate(() => db.close());
  expect(await reading).toEqual([...TEN, 'value 10']);
});

test('a second tab that waits opens the store when the first tab goes away', async () => {
  await openAndWrite(first, 'inherited');
  const reading = readAll(second, 'inherited', 60_000);
  await someoneWaits(first);
  await first.close();
  expect(await reading).toEqual(TEN);
});

test('waiting ends with VARVE_LOCKED when its time is over, and with VARVE_ABORTED by a signal', async () => {
  await openAndWrite(first, 'waited');
  expect(await tryOpen(second, 'waited', 200)).toBe('VARVE_LOCKED');
  const opening = second.evaluate(() => {
    const abort = new AbortController();
    Object.assign(globalThis, { abort });
    return codeOf(() => varve.open('waited', { wait: 60_000, signal: abort.signal }));
  });
  await someoneWaits(first);
  await second.evaluate(() => (globalThis as unknown as { abort: AbortController }).abort.abort());
  expect(await opening).toBe('VARVE_ABORTED');
  await first.evaluate(() => db.close());
  expect(await readAll(second, 'waited', 0)).toEqual(TEN);
});

test('a worker with the synchronous API and a tab refuse one another', async () => {
  const { worker } = await openWorker(second);
  const open = (): Promise<string> => worker.evaluate(() => codeOf(() => varveSync.open('both', { wait: 0 })));
  await openAndWrite(first, 'both');
  expect(await open()).toBe('VARVE_LOCKED');
  await first.evaluate(() => db.close());
  expect(await open()).toBe('ok');
  expect(await tryOpen(first, 'both', 0)).toBe('VARVE_LOCKED');
});

test('of two tabs that open a store at once, one has it and the other is refused', async () => {
  for (let i = 0; i < 5; i++) {
    const answers = await Promise.all([tryOpen(first, 'raced', 0), tryOpen(second, 'raced', 0)]);
    expect([...answers].sort()).toEqual(['VARVE_LOCKED', 'ok']);
    const winner = answers[0] === 'ok' ? first : second;
    await winner.evaluate(async (number) => {
      await db.set(number, `value ${number}`);
      await db.close();
    }, i);
  }
  expect(await readAll(first, 'raced', 0)).toEqual(TEN.slice(0, 5));
});

test('a store that is open is not deleted; once it is closed it is, with all it held', async () => {
  const remove = (wait: number): Promise<string> =>
    second.evaluate(
      (ms) =>
        codeOf(async () => {
          Object.assign(globalThis, { removed: await varve.deleteStore('deleted', { wait: ms }) });
        }),
      wait,
    );
  const removed = (): Promise<boolean> =>
    second.evaluate(() => (globalThis as unknown as { removed: boolean }).removed);
  await openAndWrite(first, 'deleted');
  expect(await remove(0)).toBe('VARVE_LOCKED');
  expect(await remove(100)).toBe('VARVE_LOCKED');
  expect(await first.evaluate(() => db.get(3))).toBe('value 3');
  expect(await first.evaluate(() => varve.listStores())).toContain('deleted');
  const removing = remove(60_000);
  await someoneWaits(first);
  await first.evaluate(() => db.close());
  expect([await removing, await removed()]).toEqual(['ok', true]);
  expect(await second.evaluate(() => varve.listStores())).not.toContain('deleted');
  expect([await remove(0), await removed()]).toEqual(['ok', false]);
  const found = await second.evaluate(async () => {
    const store = await varve.open<number, string>('deleted');
    return [store.recovery.state, await store.get(3)];
  });
  expect(found[0]).toBe('new');
  expect(found[1] ?? undefined).toBe(undefined);
});
