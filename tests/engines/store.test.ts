// A store in each real engine. Tests are about the place of the store, its contents after the page was loaded again, large values, and
// many tables. Others compare histories with a model, and open stores in workers that have no files.

import type { Store } from 'varve';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { History } from '../support/history.ts';
import { runSeed } from '../support/seed.ts';
import type { Rung, Tab } from './support/engine.ts';
import { ENGINES, leftOpen, rest, Session } from './support/engines.ts';

const seed = runSeed('engines', 'store');
/** Where a store of these tests is: where `open` puts it, or in IndexedDB because the test asked for that. */
const PLACES = [
  { place: 'where open puts it', options: {} },
  { place: 'in IndexedDB', options: { storage: 'indexeddb' } },
] as const;

declare global {
  /** The store that a test leaves open in a page. */
  var db: Store<number, string>;
}

describe.each(ENGINES)('$name', (engine) => {
  let session: Session;
  let tab: Tab;

  beforeAll(async () => {
    session = await Session.start(engine);
    tab = await session.browser.openTab();
  });

  afterAll(async () => {
    await session?.end();
    // No test above may have violated the policy, or left an exception that nobody caught.
    expect(tab.errors).toEqual([]);
  });

  test('open puts a new store in the best place, and reports why it is not in a better one', async () => {
    const storage = await tab.evaluate(async () => {
      const store = await varve.open('rung');
      const { storage } = store;
      await store.close();
      return storage;
    });
    expectRung(storage, engine.rung);
  });

  if (engine.rung.kind !== 'opfs') {
    test('a store that is asked to be in OPFS is refused', async () => {
      const code = await tab.evaluate(() => codeOf(() => varve.open('no files', { storage: 'opfs' })));
      expect(code).toBe('VARVE_UNSUPPORTED');
      expect(await tab.evaluate(() => varve.listStores())).not.toContain('no files');
    });
  }

  test.each(PLACES)(
    'every type of key and value comes back after the page was loaded again ($place)',
    async ({ place, options }) => {
      const name = `types ${place}`;
      await tab.evaluate(
        async (store, given) => {
          const db = await varve.open(store, given);
          await db.setMany(everyType());
          await db.flush();
        },
        name,
        leftOpen(engine, options),
      );
      await rest(engine, tab);
      await tab.reload();
      const wrong = await tab.evaluate(async (store) => {
        const db = await varve.open(store, { lockTimeout: 60_000 });
        const bad: string[] = [];
        for (const [key, value] of everyType()) if (!isSame(await db.get(key), value)) bad.push(String(key));
        const keys: unknown[] = [];
        for await (const key of db.keys()) keys.push(key);
        if (
          !isSame(
            keys,
            everyType().map(([key]) => key),
          )
        )
          bad.push('the order of the keys');
        await db.close();
        return bad;
      }, name);
      expect(wrong).toEqual([]);
    },
  );

  test.each(PLACES)(
    'sets, deletes, ranges, batches and transactions read the same before and after a reload ($place)',
    async ({ place, options }) => {
      const name = `operations ${place}`;
      const before = await tab.evaluate(
        async (store, given) => {
          const db = await varve.open<[string, number], string>(store, given);
          await db.setMany(
            Array.from({ length: 300 }, (_, i) => [['a', i], `value ${i}`] as [[string, number], string]),
          );
          await db.set(['b', 1], 'single', { durability: 'strict' });
          await db.delete(['a', 7]);
          await db.deleteRange({ gte: ['a', 100], lt: ['a', 200] });
          await db.batch().set(['c', 1], 'one').set(['c', 2], 'two').delete(['a', 0]).commit();
          await db.transaction(async (tx) => {
            tx.set(['c', 3], `${await tx.get(['c', 1])} and ${await tx.get(['c', 2])}`);
          });
          const conflict = await codeOf(() => db.set(['c', 3], 'no', { ifSequence: null }));
          const found: unknown[] = [conflict, await db.count()];
          for await (const entry of db.entries({ prefix: ['a'], reverse: true })) found.push(entry);
          for await (const entry of db.entries({ gte: ['b', 0] })) found.push(entry);
          return found;
        },
        name,
        leftOpen(engine, options),
      );
      await rest(engine, tab);
      await tab.reload();
      const after = await tab.evaluate(async (store) => {
        const db = await varve.open<[string, number], string>(store, { lockTimeout: 60_000 });
        const conflict = await codeOf(() => db.set(['c', 3], 'no', { ifSequence: null }));
        const found: unknown[] = [conflict, await db.count()];
        for await (const entry of db.entries({ prefix: ['a'], reverse: true })) found.push(entry);
        for await (const entry of db.entries({ gte: ['b', 0] })) found.push(entry);
        await db.close();
        return found;
      }, name);
      expect(before.slice(0, 3)).toEqual(['VARVE_CONFLICT', 202, [['a', 299], 'value 299']]);
      expect(before.slice(-4)).toEqual([
        [['b', 1], 'single'],
        [['c', 1], 'one'],
        [['c', 2], 'two'],
        [['c', 3], 'one and two'],
      ]);
      expect(after).toEqual(before);
    },
  );

  test.each(PLACES)('values of 5 MB come back, and so do later writes ($place)', async ({ place, options }) => {
    const name = `large ${place}`;
    await tab.evaluate(
      async (store, given) => {
        const db = await varve.open<number, Uint8Array>(store, given);
        for (const i of [0, 1]) {
          const value = Uint8Array.from({ length: 5_000_000 }, (_, at) => (at * (i + 3)) >> 5);
          await db.set(i, value);
        }
        await db.set(4, Uint8Array.of(4), { durability: 'strict' });
      },
      name,
      leftOpen(engine, options),
    );
    await rest(engine, tab);
    await tab.reload();
    const found = await tab.evaluate(async (store) => {
      const db = await varve.open<number, Uint8Array>(store, { lockTimeout: 60_000 });
      const wrong: number[] = [];
      for (const i of [0, 1]) {
        const value = await db.get(i);
        if (value?.length !== 5_000_000 || !value.every((byte, at) => byte === (((at * (i + 3)) >> 5) & 255)))
          wrong.push(i);
      }
      const last = await db.get(4);
      await db.close();
      await varve.deleteStore(store);
      return { wrong, last: [...(last ?? [])] };
    }, name);
    expect(found).toEqual({ wrong: [], last: [4] });
  });

  test.each(PLACES)(
    '20,000 entries are flushed, merged, scanned, checked and opened again ($place)',
    async ({ place, options }) => {
      const found = await tab.evaluate(
        async (name, given) => {
          const value = (i: number): Uint8Array =>
            Uint8Array.from({ length: 300 }, (_, at) => (i * 31 + at * at) & 255);
          const small = { ...given, memoryBytes: 2 * 1024 * 1024 };
          let db = await varve.open<number, Uint8Array>(name, small);
          for (let from = 0; from < 20_000; from += 500) {
            await db.setMany(
              Array.from({ length: 500 }, (_, i) => [((from + i) * 7919) % 20_000, value(from + i)] as const),
            );
          }
          await db.compact();
          const {
            levels,
            flush: { count: flushes },
          } = await db.stats();
          await db.close();
          db = await varve.open<number, Uint8Array>(name, small);
          const { state } = db.recovery;
          const keys: number[] = [];
          for await (const key of db.keys()) keys.push(key);
          const many = await db.getMany(Array.from({ length: 300 }, (_, i) => (i * 7919) % 20_000));
          const { ok, entries, problems } = await db.check();
          await db.close();
          return {
            tables: levels.reduce((sum, level) => sum + level.tables, 0),
            flushes,
            state,
            count: keys.length,
            isSorted: keys.every((key, i) => key === i),
            isFound: many.every((one, i) => one?.every((byte, at) => byte === ((i * 31 + at * at) & 255))),
            check: { ok, entries, problems },
          };
        },
        `many ${place}`,
        options,
      );
      expect(found).toMatchObject({ state: 'clean', count: 20_000, isSorted: true, isFound: true });
      expect(found.check).toEqual({ ok: true, entries: 20_000, problems: [] });
      expect(found.tables).toBeGreaterThan(0);
      expect(found.flushes).toBeGreaterThan(1);
    },
  );

  test.each(PLACES)(
    'a random history of thousands of writes equals a model, opening after opening ($place)',
    async ({ place, options }) => {
      const history = new History();
      const name = `history ${place}`;
      for (let round = 0; round < 3; round++) {
        const open = () => tab.evaluate((store, given) => writer.open(store, given), name, leftOpen(engine, options));
        history.expect(await open());
        const plan = { seed, round, sequence: history.sequence };
        const groups = await tab.evaluate((store, what) => writer.write(store, what, 2000), name, plan);
        // The store is closed, or its page is left while the store is open, or both remain as they are.
        if (round === 0) await tab.evaluate((store) => writer.close(store), name);
        else if (round === 1) {
          await rest(engine, tab);
          await tab.reload();
        } else {
          history.survive(plan, groups, await tab.evaluate((store) => writer.read(store), name));
          await tab.evaluate((store) => writer.close(store), name);
          continue;
        }
        history.survive(plan, groups, await open());
        await tab.evaluate((store) => writer.close(store), name);
      }
      expect(history.size).toBeGreaterThan(1000);
    },
  );

  test('the synchronous API has OPFS, or memory and a reason', async () => {
    const rung = await tab.evaluate(() => workers('/crash-calls-worker.js', 'rung'));
    const inMemory = { kind: 'memory', reason: expect.stringMatching(engine.rung.reason ?? /none/) };
    expect(rung).toEqual(engine.rung.kind === 'opfs' ? { kind: 'opfs' } : inMemory);
  });

  if (engine.rung.kind === 'opfs') {
    test('a worker with the synchronous API writes the same history', async () => {
      const history = new History();
      const call = (path: string, ...args: readonly unknown[]) =>
        tab.evaluate((what, given) => workers('/crash-calls-worker.js', what, ...given), path, args);
      for (let round = 0; round < 2; round++) {
        history.expect((await call('open', 'sync')) as never);
        const plan = { seed, round, sequence: history.sequence };
        const groups = (await call('write', 'sync', plan, 2000)) as number;
        history.survive(plan, groups, (await call('read', 'sync')) as never);
        await call('close', 'sync');
      }
      expect(history.size).toBeGreaterThan(1000);
    });

    test('OPFS keeps the contract of storages', async () => {
      const { names, failures } = (await tab.evaluate(() =>
        workers('/contract-calls-worker.js', 'contract'),
      )) as Awaited<ReturnType<typeof contract>>;
      expect(failures).toEqual([]);
      expect(names.length).toBeGreaterThan(20);
    });
  }

  test('a shared worker keeps stores where it can, and a page opens them', async () => {
    const answer = await tab.evaluate(async () => {
      const posted = await new Promise((resolve) => {
        // Firefox can lose the first connection if it is made while the imports of the module load.
        const connect = (): void => {
          const { port } = new SharedWorker('/shared-worker.js', { type: 'module' });
          port.onmessage = ({ data }) => resolve(data);
          port.postMessage(['shared', [['a', 1]]]);
        };
        connect();
        setTimeout(connect, 15_000);
      });
      const db = await varve.open<string, number>('shared');
      const found = [posted, db.storage.kind, await db.get('a')];
      await db.close();
      return found;
    });
    expect(answer).toEqual([{ kind: engine.sharedWorkerRung, found: [['a', 1]] }, engine.sharedWorkerRung, 1]);
  });

  test('a service worker keeps stores in IndexedDB through varve/inline, and a page opens them', async () => {
    const answer = await tab.evaluate(async () => {
      await navigator.serviceWorker.register('/inbox-service-worker.js', { type: 'module' });
      const { active } = await navigator.serviceWorker.ready;
      const { port1, port2 } = new MessageChannel();
      active?.postMessage(['inbox', [['message', 1]]], [port2]);
      const posted = await new Promise((resolve) => {
        port1.onmessage = ({ data }) => resolve(data);
      });
      const db = await varve.open<string, number>('inbox', { lockTimeout: 60_000 });
      const found = [posted, db.storage.kind, await db.get('message')];
      await db.close();
      return found;
    });
    expect(answer).toEqual([{ kind: 'indexeddb', found: [['message', 1]] }, 'indexeddb', 1]);
  });

  test.each(engine.modes)('$title open takes the best there is, and finds the store again', async (mode) => {
    const own = await Session.start(engine, mode);
    const page = await own.browser.openTab();
    const found = await page.evaluate(async () => {
      const db = await varve.open<number, number>('private');
      const { storage } = db;
      await db.setMany(Array.from({ length: 1000 }, (_, i) => [i, i] as const));
      await db.close();
      const again = await varve.open<number, number>('private');
      const count = await again.count();
      await again.close();
      return { storage, count };
    });
    await own.end();
    expect(found.count).toBe(1000);
    expectRung(found.storage, mode.rung);
  });
});

function expectRung(storage: { kind: string; reason?: string | undefined }, rung: Rung): void {
  expect(storage.kind).toBe(rung.kind);
  if (rung.reason === undefined) expect(storage.reason).toBe(undefined);
  else expect(storage.reason).toMatch(rung.reason);
}
