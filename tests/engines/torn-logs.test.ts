// A kill of Chromium can leave half a record at the end of a log in its own files. The next start appends after it. The start after that
// skips the appended records (support/leveldb.ts). A missing table led to this: the manifest named it. The name of its file was made after
// one kill, and was gone after the next one.

import { afterEach, expect, test } from 'vitest';
import { logsOf, tear } from '../support/leveldb.ts';
import { chromium } from './support/chromium.ts';
import type { Tab } from './support/engine.ts';
import { ENGINES, Session } from './support/engines.ts';

let session: Session;

afterEach(() => session.end());

/** Opens a store and adds entries to it, most of which end up in tables; returns how many it has then. */
function fill(tab: Tab, name: string, storage: 'indexeddb' | 'opfs', entries = 6000): Promise<number> {
  return tab.evaluate(
    async (store, where, more) => {
      const options = where === 'opfs' ? {} : { storage: where };
      const db = await varve.open<number, string>(store, { ...options, memoryBytes: 2 << 20 });
      const before = await db.count();
      for (let at = before; at < before + more; at += 500) {
        // Hard to compress.
        const text = (i: number): string => Array.from({ length: 20 }, (_, j) => Math.sin(i * 20 + j)).join();
        await db.setMany(Array.from({ length: 500 }, (_, i): [number, string] => [at + i, text(at + i)]));
      }
      await db.set(-1, 'strict', { durability: 'strict' });
      return db.count();
    },
    name,
    storage,
    entries,
  );
}

/** Kills the browser, tears a log of its own if one is named, and starts it again. */
async function kill(what?: 'indexeddb' | 'names'): Promise<Tab> {
  await session.kill((profile) => {
    if (what === undefined) return;
    const [log, ...others] = logsOf(profile, what).filter((file) => file.endsWith('.log'));
    expect(others).toEqual([]);
    tear(log as string);
  });
  return session.browser.openTab();
}

test.runIf(ENGINES.includes(chromium))(
  'chromium: files made after a kill that tore a name are there after the next kills',
  async () => {
    session = await Session.start(chromium);
    let tab = await session.browser.openTab();
    const first = await fill(tab, 'grows', 'opfs');
    tab = await kill('names');
    // The slots that are made then contain tables, too.
    const second = await fill(tab, 'grows', 'opfs', 30_000);
    const fresh = await fill(tab, 'is made', 'opfs');
    expect(second).toBeGreaterThan(first);
    for (let round = 0; round < 2; round++) {
      tab = await kill();
      for (const [name, before] of [
        ['grows', second],
        ['is made', fresh],
      ] as const) {
        expect(
          await tab.evaluate(async (store) => {
            const db = await varve.open(store);
            const { problems } = await db.check();
            return { entries: await db.count(), problems: problems.length };
          }, name),
        ).toEqual({ entries: before, problems: 0 });
      }
    }
  },
);

test.runIf(ENGINES.includes(chromium))(
  'chromium: a store in IndexedDB that the browser deletes because of a torn log is reported as lost',
  async () => {
    session = await Session.start(chromium);
    let tab = await session.browser.openTab();
    await fill(tab, 'database', 'indexeddb');
    tab = await kill('indexeddb');
    // Few entries, so that they stay in the log, after the torn part.
    const entries = await tab.evaluate(async () => {
      const db = await varve.open<number, string>('database', { storage: 'indexeddb' });
      await db.set(-2, 'one more', { durability: 'strict' });
      return db.count();
    });
    tab = await kill();
    const found = await tab.evaluate(async () => {
      const db = await varve.open('database', { storage: 'indexeddb' });
      return { state: db.recovery.state, entries: await db.count() };
    });
    if (found.state !== 'lost') expect(found).toEqual({ state: 'replayed', entries });
    else expect(found.entries).toBe(0);
  },
);
