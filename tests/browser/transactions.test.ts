// Transactions of a page over a worker and OPFS: concurrent transactions have the result of running them in some order.

import type { Page } from 'playwright';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { newProfile, type Profile } from './support/profile.ts';

let profile: Profile;
let page: Page;

beforeAll(async () => {
  profile = await newProfile();
});

afterAll(() => profile?.close());

beforeEach(async () => {
  page = (await profile.openPage()).page;
});

afterEach(() => page.close());

test('two that count up the same key at once both count', async () => {
  const outcome = await page.evaluate(async () => {
    const db = await varve.open<string, number>('counter');
    let calls = 0;
    const reads: (() => void)[] = [];
    const countUp = (): Promise<void> =>
      db.transaction(async (tx) => {
        calls++;
        const n = (await tx.get('n')) ?? 0;
        // Neither continues before both have read.
        if (calls <= 2) {
          await new Promise<void>((resolve) => {
            reads.push(resolve);
            if (reads.length === 2) for (const go of reads) go();
          });
        }
        await fetch(location.href);
        tx.set('n', n + 1);
      });
    await Promise.all([countUp(), countUp()]);
    await db.close();
    const again = await varve.open<string, number>('counter');
    const n = await again.get('n');
    await again.close();
    return { n, calls };
  });
  expect(outcome.n).toBe(2);
  expect(outcome.calls).toBeGreaterThan(2);
});

test('a key that appears in a range that was counted is a conflict', async () => {
  const outcome = await page.evaluate(async () => {
    const db = await varve.open<[string, number], string>('seats');
    await db.setMany([
      [['seat', 1], 'Ada'],
      [['seat', 2], 'Bo'],
    ]);
    let calls = 0;
    const book = (name: string): Promise<number> =>
      db.transaction(async (tx) => {
        let last = 0;
        for await (const [, seat] of tx.keys({ prefix: ['seat'] })) last = seat;
        // Another call takes the next seat before the first transaction commits.
        if (++calls === 1) await db.set(['seat', last + 1], 'Cy');
        tx.set(['seat', last + 1], name);
        return last + 1;
      });
    const seat = await book('Di');
    const code = await codeOf(() =>
      db.transaction(
        async (tx) => {
          await tx.count({ prefix: ['seat'] });
          await db.delete(['seat', 1]);
          tx.set(['seat', 9], 'nobody');
        },
        { retries: 0 },
      ),
    );
    const names: string[] = [];
    for await (const name of db.values()) names.push(name);
    await db.close();
    return { seat, calls, code, names };
  });
  expect(outcome).toStrictEqual({ seat: 4, calls: 2, code: 'VARVE_CONFLICT', names: ['Bo', 'Cy', 'Di'] });
});

test('an upgrade that throws leaves the store as it was, for another tab to open', async () => {
  const code = await page.evaluate(async () => {
    const first = await varve.open<string, number>('upgraded', { version: 1, upgrade: (tx) => tx.set('k', 1) });
    await first.close();
    return codeOf(() =>
      varve.open<string, number>('upgraded', {
        version: 2,
        upgrade: (tx) => {
          tx.clear();
          throw new Error('no');
        },
      }),
    );
  });
  expect(code).toBe('Error: no');
  const second = (await profile.openPage()).page;
  const found = await second.evaluate(async () => {
    let oldVersion: number | undefined;
    const upgrade = (_: unknown, versions: { oldVersion: number }): void => {
      oldVersion = versions.oldVersion;
    };
    const db = await varve.open<string, number>('upgraded', { version: 3, lockTimeout: 0, upgrade });
    const entry = { k: await db.get('k'), oldVersion };
    await db.close();
    return { ...entry, older: await codeOf(() => varve.open('upgraded', { version: 2 })) };
  });
  await second.close();
  expect(found).toStrictEqual({ k: 1, oldVersion: 1, older: 'VARVE_VERSION' });
});
