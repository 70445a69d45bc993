// One store in several tabs of a browser: whichever tab ends, the others continue.

import type { Page } from 'playwright';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { processOf } from '../support/processes.ts';
import { newProfile, type Profile } from './support/profile.ts';

let profile: Profile;
const pages: Page[] = [];

declare global {
  /** The store that a test leaves open in a page. */
  var db: import('varve').Store<number, string>;
}

beforeAll(async () => {
  profile = await newProfile();
});

afterAll(() => profile?.close());

afterEach(() => Promise.all(pages.splice(0).map((page) => page.close())));

async function openTab(name: string): Promise<Page> {
  const { page } = await profile.openPage();
  pages.push(page);
  await page.evaluate(async (store) => {
    globalThis.db = await varve.open<number, string>(store);
  }, name);
  return page;
}

/** Opens a tab that follows over a port. On a busy machine the port may come too late, and the tab takes a channel: then another one is opened. */
async function openFollower(name: string): Promise<Page> {
  for (let tries = 1; ; tries++) {
    const page = await openTab(name);
    if ((await sharing(page))?.via === 'port' || tries === 5) return page;
    await page.close();
  }
}

const sharing = (page: Page) => page.evaluate(async () => (await db.stats()).sharing);

test('tabs share a store over ports, and the next one leads when the leader is closed', async () => {
  const first = await openTab('shared');
  const second = await openFollower('shared');
  const third = await openFollower('shared');
  await first.evaluate(() => db.set(1, 'one'));
  expect(await second.evaluate(() => db.get(1))).toBe('one');
  await expect.poll(() => sharing(first)).toEqual({ leads: true, via: 'worker', clients: 3 });
  expect(await sharing(second)).toEqual({ leads: false, via: 'port', clients: 3 });
  expect(await sharing(third)).toEqual({ leads: false, via: 'port', clients: 3 });
  await first.close();
  await second.evaluate(() => db.set(2, 'two'));
  await third.evaluate(() => db.set(3, 'three'));
  expect(await second.evaluate(() => db.getMany([1, 2, 3]))).toEqual(['one', 'two', 'three']);
  const after = [await sharing(second), await sharing(third)];
  expect(after.filter((one) => one?.leads)).toHaveLength(1);
  expect(after.map((one) => one?.clients)).toEqual([2, 2]);
});

test('tabs share an encrypted store with its key only, and the next one leads with its own', async () => {
  const requests: string[] = [];
  const scripts = (): number => requests.filter((path) => path.endsWith('/encryption-worker.js')).length;
  const openWith = async (passphrase: string | undefined): Promise<Page> => {
    const { page } = await profile.openPage();
    pages.push(page);
    page.on('request', (request) => void requests.push(new URL(request.url()).pathname));
    await page.evaluate(async (text) => {
      const key = text === undefined ? undefined : await varve.deriveKey(text, { iterations: 100_000 });
      globalThis.db = await varve.open('encrypted', { encryption: key && { key } });
    }, passphrase);
    return page;
  };
  const first = await openWith('correct horse');
  await first.evaluate(() => db.set(1, 'one'));
  expect(scripts()).toBe(1);
  await expect(openWith('wrong')).rejects.toThrow('The key is wrong');
  const before = scripts();
  await expect(openWith(undefined)).rejects.toThrow('The store is encrypted');
  expect(scripts()).toBe(before);
  const second = await openWith('correct horse');
  expect(await second.evaluate(() => db.get(1))).toBe('one');
  // A worker that waits has the script already: to lead it must not need the network.
  await expect.poll(scripts).toBe(before + 1);
  // A key that cannot be read is copied to the worker of another tab.
  await second.evaluate(async () => {
    const key = await crypto.subtle.generateKey({ name: 'AES-GCM', length: 256 }, false, ['encrypt', 'decrypt']);
    await db.changeEncryptionKey(await varve.deriveKey('correct horse', { iterations: 100_000 }), key);
  });
  await first.close();
  await second.evaluate(() => db.set(2, 'two'));
  expect(await second.evaluate(() => db.getMany([1, 2]))).toEqual(['one', 'two']);
  expect(await sharing(second)).toMatchObject({ leads: true, clients: 1 });
  await expect(openWith('correct horse')).rejects.toThrow('The key is wrong');
});

test('an exclusive transaction waits for that of another tab, and goes on when that tab is gone', async () => {
  const [first, second] = [await openTab('exclusive'), await openTab('exclusive')];
  await first.evaluate(async () => {
    const tx = await db.begin({ exclusive: true });
    tx.set(1, 'never committed');
  });
  const next = second.evaluate(async () => {
    const tx = await db.begin({ exclusive: true });
    const found = await tx.get(1);
    tx.set(1, 'second');
    await tx.commit();
    return found ?? 'nothing';
  });
  const isWaiting = () =>
    second.evaluate(async () => (await navigator.locks.query()).pending?.map(({ name }) => name) ?? []);
  await expect.poll(isWaiting).toContain('varve-transaction:exclusive');
  await second.evaluate(() => db.set(2, 'free'));
  await first.close();
  expect(await next).toBe('nothing');
  expect(await second.evaluate(() => db.getMany([1, 2]))).toEqual(['second', 'free']);
});

test('a new build of an app upgrades the store; the tab with the old build hears of it, and writes no more', async () => {
  const openApp = async (path: string): Promise<Page> => {
    const { page } = await profile.openPage(path);
    pages.push(page);
    await expect.poll(() => page.evaluate(() => 'db' in globalThis)).toBe(true);
    return page;
  };
  const save = (page: Page, text: string) =>
    page.evaluate(
      (value) =>
        db.set(2, value).then(
          () => 'saved',
          (error) => error.code,
        ),
      text,
    );
  const old = await openApp('/app-1.html');
  await old.evaluate(() => db.set(1, 'written by version 1'));
  const current = await openApp('/app-2.html');
  expect(await current.evaluate(() => db.get(1))).toEqual({ text: 'written by version 1' });
  expect(await old.title()).toBe('Reload: version 2 is here');
  expect(await save(old, 'too late')).toBe('VARVE_VERSION');
  expect(await save(current, 'in time')).toBe('saved');
  await current.close();
  // It leads now, and is still too old.
  expect(await save(old, 'too late')).toBe('VARVE_VERSION');
  await old.goto(`${profile.origin}/app-2.html`);
  await expect.poll(() => old.evaluate(() => 'db' in globalThis)).toBe(true);
  expect([await save(old, 'reloaded'), await old.evaluate(() => db.count())]).toEqual(['saved', 2]);
});

test('a leader that is frozen with a warning lets another tab lead at once', async () => {
  const first = await openTab('warned');
  const second = await openTab('warned');
  await first.evaluate(() => db.set(1, 'one'));
  // Playwright treats its pages as focused and never freezes them: so the test only fires the events.
  await first.evaluate(() => document.dispatchEvent(new Event('freeze')));
  await expect.poll(async () => (await sharing(second))?.leads, { timeout: 4000 }).toBe(true);
  expect(await second.evaluate(() => db.get(1))).toBe('one');
  await first.evaluate(() => document.dispatchEvent(new Event('resume')));
  await second.evaluate(() => db.set(2, 'two'));
  expect(await first.evaluate(() => db.getMany([1, 2]))).toEqual(['one', 'two']);
});

test('calls to a leader that is frozen without a warning fail after five seconds, and work again when it thaws', async () => {
  const tabs = [await openTab('stalled'), await openTab('stalled')] as const;
  await tabs[1].evaluate(() => db.set(1, 'one'));
  // On a busy machine a tab may be hidden while it opens, and hand the store over a second later.
  const [first, second] = (await sharing(tabs[0]))?.leads ? tabs : [tabs[1], tabs[0]];
  const browser = await profile.processId();
  const id = await processOf(browser, '--type=renderer', (run, bytes) => first.evaluate(run, bytes));
  process.kill(id, 'SIGSTOP');
  try {
    const failure = await second.evaluate(async () => {
      const start = performance.now();
      const code = await codeOf(() => db.set(2, 'two'));
      return { code, ms: performance.now() - start };
    });
    expect(failure.code).toBe('VARVE_LEADER_STALLED');
    expect(failure.ms).toBeGreaterThan(4000);
  } finally {
    process.kill(id, 'SIGCONT');
  }
  await expect.poll(() => second.evaluate(() => codeOf(() => db.set(3, 'three'))), { timeout: 30_000 }).toBe('ok');
  expect(await first.evaluate(() => db.getMany([1, 3]))).toEqual(['one', 'three']);
});

test('a tab that does not respond delays a write of what it keeps until its lease has ended, also under the next leader', async () => {
  const [first, second, third] = [await openTab('leased'), await openTab('leased'), await openTab('leased')];
  /** Freezes the third tab, which keeps the value, while another tab writes. Returns how long that took. */
  const writeBeside = async (value: string, before: () => Promise<unknown>): Promise<number> => {
    await expect
      .poll(() => third.evaluate(async () => [await db.get(1), db.peek(1)]).then(([got, kept]) => got === kept))
      .toBe(true);
    const browser = await profile.processId();
    const id = await processOf(browser, '--type=renderer', (run, bytes) => third.evaluate(run, bytes));
    // It must have a lease on its values when it is stopped.
    await third.evaluate(() => db.get(1));
    process.kill(id, 'SIGSTOP');
    try {
      await before();
      return await second.evaluate(async (next) => {
        const start = performance.now();
        await db.set(1, next);
        return performance.now() - start;
      }, value);
    } finally {
      process.kill(id, 'SIGCONT');
      expect(await third.evaluate(() => [db.peek(1), db.get(1)] as const).then(([kept]) => kept)).toBeUndefined();
      expect(await third.evaluate(() => db.get(1))).toBe(value);
    }
  };
  await second.evaluate(() => db.set(1, 'one'));
  const delay = await writeBeside('two', async () => undefined);
  expect(delay).toBeGreaterThan(200);
  expect(delay).toBeLessThan(5000);
  expect(await writeBeside('three', () => first.close())).toBeLessThan(10_000);
});

// The error used to name a worker that does not share the store, which sent users looking for one.
test('a tab that opens a store whose leader does not answer gets an error, and opens it when the leader answers', async () => {
  const first = await openTab('slow');
  const second = await profile.openPage();
  pages.push(second.page);
  const open = (wait: number): Promise<string> =>
    second.page.evaluate(
      (ms) =>
        varve.open<number, string>('slow', { lockTimeout: ms }).then(
          () => 'ok',
          (error) => `${error.code}: ${error.message}`,
        ),
      wait,
    );
  const browser = await profile.processId();
  const id = await processOf(browser, '--type=renderer', (run, bytes) => first.evaluate(run, bytes));
  process.kill(id, 'SIGSTOP');
  try {
    expect(await open(0)).toMatch(/^VARVE_LOCKED: The tab that leads the store "slow" has not answered yet/);
  } finally {
    process.kill(id, 'SIGCONT');
  }
  expect(await open(60_000)).toBe('ok');
});

test('changes are reported across tabs, each once and in order, also when the leader changes, and after a reload', async () => {
  const first = await openTab('followed');
  const second = await openTab('followed');
  const third = await openTab('followed');
  await third.evaluate(() => {
    const seen: [number, string | undefined][] = [];
    Object.assign(globalThis, { seen });
    void (async () => {
      for await (const change of db.changes()) if (change.type === 'set') seen.push([change.key, change.value]);
    })();
  });
  const write = (page: Page, from: number): Promise<void> =>
    page.evaluate(async (start) => {
      for (let i = start; i < start + 50; i++) await db.set(i, `value ${i}`);
    }, from);
  await Promise.all([write(first, 0), write(second, 100)]);
  await Promise.all([first.close(), write(second, 200)]);
  await write(third, 300);
  const expected = [0, 100, 200, 300].flatMap((from) => Array.from({ length: 50 }, (_, i) => from + i));
  const seen = (): Promise<number[]> =>
    third.evaluate(() => (globalThis as unknown as { seen: [number, string][] }).seen.map(([key]) => key));
  await expect.poll(async () => (await seen()).length, { timeout: 20_000 }).toBeGreaterThanOrEqual(170);
  const keys = await seen();
  // The writes of the closed tab may have ended early: those under way then were never answered.
  expect(new Set(keys).size).toBe(keys.length);
  for (const from of [0, 100, 200, 300]) {
    const of = keys.filter((key) => key >= from && key < from + 50);
    expect(of).toEqual([...of].sort((a, b) => a - b));
  }
  expect(keys.filter((key) => key >= 100)).toHaveLength(150);
  expect(expected).toEqual(expect.arrayContaining(keys));

  const last = await third.evaluate(async () => (await db.stats()).sequence);
  await third.reload();
  await second.evaluate(() => db.set(1000, 'while it was away'));
  const resumed = await third.evaluate(async (since) => {
    globalThis.db = await varve.open<number, string>('followed');
    for await (const change of db.changes({ since })) return change;
    return undefined;
  }, last);
  expect(resumed).toMatchObject({ type: 'set', key: 1000, value: 'while it was away', sequence: last + 1 });
});

test('ten tabs count together, by updates and by transactions, and lose nothing', async () => {
  const tabs = await Promise.all(Array.from({ length: 10 }, () => openTab('counted')));
  const count = (page: Page): Promise<void> =>
    page.evaluate(async () => {
      const more = (text = ''): string => `${text}x`;
      const writes = Array.from({ length: 20 }, async () => {
        await db.update(1, more);
        await db.transaction(async (tx) => tx.set(2, more(await tx.get(2))));
      });
      await Promise.all(writes);
    });
  await Promise.all(tabs.map(count));
  expect(await tabs[0]?.evaluate(() => db.getMany([1, 2]))).toEqual(['x'.repeat(200), 'x'.repeat(200)]);
});
