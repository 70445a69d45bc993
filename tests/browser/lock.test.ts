// A store belongs to the tabs that share it, or to one worker of `varve/synchronous`. All others are refused, or wait. No opener is
// harmed by that.

import type { Page } from 'playwright';
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
      const found = await varve.open<number, string>(store, { lockTimeout: ms });
      const values: string[] = [];
      for await (const value of found.values()) values.push(value);
      await found.close();
      return values;
    },
    [name, wait] as const,
  );
}

/** The result of opening a store. */
function tryOpen(page: Page, name: string, wait: number): Promise<string> {
  return page.evaluate(
    ([store, ms]) =>
      codeOf(async () => {
        globalThis.db = await varve.open<number, string>(store, { lockTimeout: ms });
      }),
    [name, wait] as const,
  );
}

/** Resolves when some page of the origin waits for a lock. */
function someoneWaits(page: Page): Promise<void> {
  const pending = async (): Promise<number> => ((await navigator.locks.query()).pending ?? []).length;
  return expect.poll(() => page.evaluate(pending), { timeout: 20_000 }).toBe(1);
}

test('waiting for a worker that does not share ends with VARVE_LOCKED when its time is over, and with the reason of a signal', async () => {
  const { worker } = await openWorker(first);
  await worker.evaluate(async () => {
    const store = await varveSync.open<number, string>('waited');
    store.set(0, 'value 0');
    Object.assign(globalThis, { store });
  });
  expect(await tryOpen(second, 'waited', 0)).toBe('VARVE_LOCKED');
  const message = await second.evaluate(() => varve.open('waited', { lockTimeout: 0 }).catch((error) => error.message));
  expect(message).toContain('does not share it');
  const opening = second.evaluate(() => {
    const abort = new AbortController();
    Object.assign(globalThis, { abort });
    return codeOf(() => varve.open('waited', { lockTimeout: 60_000, signal: abort.signal }));
  });
  await someoneWaits(first);
  await second.evaluate(() => (globalThis as unknown as { abort: AbortController }).abort.abort());
  expect(await opening).toContain('AbortError');
  const reading = readAll(second, 'waited', 60_000);
  await someoneWaits(first);
  await worker.evaluate(() => (globalThis as unknown as { store: { close(): Promise<void> } }).store.close());
  expect(await reading).toEqual(['value 0']);
});

test('a worker with the synchronous API and a tab refuse one another', async () => {
  const { worker } = await openWorker(second);
  const open = (): Promise<string> => worker.evaluate(() => codeOf(() => varveSync.open('both', { lockTimeout: 0 })));
  await openAndWrite(first, 'both');
  expect(await open()).toBe('VARVE_LOCKED');
  await first.evaluate(() => db.close());
  expect(await open()).toBe('ok');
  expect(await tryOpen(first, 'both', 0)).toBe('VARVE_LOCKED');
});

test('tabs that open a store at once share it', async () => {
  for (let i = 0; i < 5; i++) {
    const answers = await Promise.all([tryOpen(first, 'raced', 0), tryOpen(second, 'raced', 0)]);
    expect(answers).toEqual(['ok', 'ok']);
    await first.evaluate((number) => db.set(number, `value ${number}`), 2 * i);
    await second.evaluate((number) => db.set(number, `value ${number}`), 2 * i + 1);
    await Promise.all([first.evaluate(() => db.close()), second.evaluate(() => db.close())]);
  }
  expect(await readAll(first, 'raced', 0)).toEqual(TEN);
});

test('a deletion asks every tab to close the store, and then deletes it', async () => {
  const remove = (wait: number): Promise<string> =>
    second.evaluate(
      (ms) =>
        codeOf(async () => {
          Object.assign(globalThis, { removed: await varve.deleteStore('deleted', { lockTimeout: ms }) });
        }),
      wait,
    );
  const removed = (): Promise<boolean> =>
    second.evaluate(() => (globalThis as unknown as { removed: boolean }).removed);
  await openAndWrite(first, 'deleted');
  // Without a wait, the other tab is not asked to close the store.
  expect(await remove(0)).toBe('VARVE_LOCKED');
  expect(await first.evaluate(() => db.get(3))).toBe('value 3');
  expect(await first.evaluate(() => varve.listStores())).toContain('deleted');
  expect([await remove(60_000), await removed()]).toEqual(['ok', true]);
  expect(await first.evaluate(() => codeOf(() => db.get(3)))).toBe('VARVE_CLOSED');
  expect(await second.evaluate(() => varve.listStores())).not.toContain('deleted');
  expect([await remove(0), await removed()]).toEqual(['ok', false]);
  const found = await second.evaluate(async () => {
    const store = await varve.open<number, string>('deleted');
    return [store.recovery.state, await store.get(3)];
  });
  expect(found[0]).toBe('new');
  expect(found[1] ?? undefined).toBe(undefined);
});

test('a worker that does not share a store keeps it from being deleted', async () => {
  const { worker } = await openWorker(first);
  await worker.evaluate(async () => {
    Object.assign(globalThis, { store: await varveSync.open('kept') });
  });
  expect(await second.evaluate(() => codeOf(() => varve.deleteStore('kept', { lockTimeout: 100 })))).toBe(
    'VARVE_LOCKED',
  );
});
