/** `migrate` of `varve/idb-keyval` and `varve/yjs`: from the originals, over an IndexedDB in memory. */

import 'fake-indexeddb/auto';
import { IDBFactory } from 'fake-indexeddb';
import * as original from 'idb-keyval';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { IndexeddbPersistence } from 'y-indexeddb';
import * as Y from 'yjs';
import { invalid } from '../../js/src/errors.ts';
import * as keyval from '../../js/src/idb-keyval.ts';
import { openStore } from '../../js/src/store/open.ts';
import type { Store } from '../../js/src/store/store.ts';
import type { Key } from '../../js/src/types.ts';
import * as yjs from '../../js/src/yjs.ts';
import { spawnServer, wasm } from './support/engine.ts';

let db: Store<Key, unknown>;

beforeEach(async () => {
  vi.stubGlobal('indexedDB', new IDBFactory());
  db = await openStore<Key, unknown>('test', { wasm, storage: 'memory' }, spawnServer);
});

afterEach(async () => {
  vi.unstubAllGlobals();
  await db.close();
});

/** A view whose nth transaction waits until it is released. */
function heldAt(nth: number, target: keyval.UseStore) {
  let isWaiting = (): void => undefined;
  const waiting = new Promise<void>((resolve) => {
    isWaiting = resolve;
  });
  let release = (): void => undefined;
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  let parts = 0;
  const slow: keyval.UseStore = async () => {
    const view = await target();
    const transaction = view.transaction.bind(view);
    view.transaction = async (...args) => {
      if (++parts === nth) {
        isWaiting();
        await released;
      }
      return transaction(...args);
    };
    return view;
  };
  return { slow, waiting, release: () => release() };
}

const FROM = { dbName: 'app', storeName: 'settings' };

const KEYS: keyval.IdbKey[] = [0, -1.5, new Date(3), '', '\ud800', Uint8Array.of(1, 2).buffer, [1, ['a', new Date(1)]]];

const copied = (count: number): keyval.MigrationReport => ({ copied: count, state: 'copied' });
const BEFORE: keyval.MigrationReport = { copied: 0, state: 'before' };
const ABSENT: keyval.MigrationReport = { copied: 0, state: 'absent' };

/** A database of idb-keyval with keys of every type and 200 numbers more, and the view to which it is moved. */
async function setUp(): Promise<{ source: original.UseStore; target: keyval.UseStore; total: number }> {
  const source = original.createStore(FROM.dbName, FROM.storeName);
  const values = [undefined, null, 'text', new Map([[1, new Date(2)]]), Uint8Array.of(7), { deep: [1n] }, /a/g];
  const entries = KEYS.map((key, index): [IDBValidKey, unknown] => [key as IDBValidKey, values[index]]);
  for (let i = 1; i <= 200; i++) entries.push([i, { number: i }]);
  await original.setMany(entries, source);
  return { source, target: keyval.createStore(db, 'settings'), total: entries.length };
}

test('everything is copied once, and stays where it was; a key that is there keeps its value', async () => {
  const { source, target, total } = await setUp();
  const before = await original.entries(source);
  await keyval.set(5, 'newer', target);
  const seen: keyval.Progress[] = [];
  const onProgress = (progress: keyval.Progress) => seen.push(progress);
  expect(await keyval.migrate({ ...FROM, onProgress }, target)).toEqual(copied(total - 1));
  expect(seen.length).toBeGreaterThan(2);
  expect(seen.at(-1)).toEqual({ done: total, total });
  expect(seen.map(({ done }) => done)).toEqual(seen.map(({ done }) => done).toSorted((a, b) => a - b));
  const expected = before.map(([key, value]) => [key, key === 5 ? 'newer' : value]);
  expect(await keyval.entries(target)).toEqual(expected);
  expect(await keyval.keys(target)).toHaveLength(total);
  expect(await keyval.values(target)).toHaveLength(total);
  expect(await original.entries(source)).toEqual(before);

  // Deleted entries do not come back.
  await keyval.clear(target);
  expect(await keyval.migrate({ ...FROM, onProgress: () => expect.unreachable() }, target)).toEqual(BEFORE);
  expect(await keyval.entries(target)).toEqual([]);
  // The database of another name is another move.
  await original.set('a', 1);
  expect(await keyval.migrate({}, target)).toEqual(copied(1));
  expect(await keyval.entries(target)).toEqual([['a', 1]]);
});

test('no database, and none with such a store: nothing is copied, or created, and a later one is', async () => {
  const target = keyval.createStore(db, 'settings');
  expect(await keyval.migrate(FROM, target)).toEqual(ABSENT);
  expect(await indexedDB.databases()).toEqual([]);
  await original.set('a', 1, original.createStore(FROM.dbName, 'other'));
  expect(await keyval.migrate(FROM, target)).toEqual(ABSENT);
  expect(await keyval.migrate({ ...FROM, storeName: 'other' }, target)).toEqual(copied(1));
  expect(await db.has(['settings', 'none'])).toBe(false);
});

test.for([1, 2, 3, 4])('a move that ends after part %i begins anew, and loses nothing', async (part) => {
  const { source, target, total } = await setUp();
  const aborting = new AbortController();
  const reason = new Error('of the page');
  let parts = 0;
  const onProgress = () => {
    if (++parts === part) aborting.abort(reason);
  };
  await expect(keyval.migrate({ ...FROM, signal: aborting.signal, onProgress }, target)).rejects.toBe(reason);
  const cut = await keyval.keys(target);
  expect(cut.length).toBeGreaterThan(0);
  // The page goes on to use it, and moves the rest later.
  await keyval.set(1, 'newer', target);
  expect(await keyval.migrate(FROM, target)).toEqual(copied(total - cut.length));
  const expected = (await original.entries(source)).map(([key, value]) => [key, key === 1 ? 'newer' : value]);
  expect(await keyval.entries(target)).toEqual(expected);
  expect(parts).toBe(part);
});

test('an aborted signal moves nothing', async () => {
  const { target } = await setUp();
  await expect(keyval.migrate({ ...FROM, signal: AbortSignal.abort('no') }, target)).rejects.toBe('no');
  expect(await keyval.keys(target)).toEqual([]);
});

test('a tab that is slower than another one moves nothing more when all is there: what is deleted then stays so', async () => {
  const { target, total } = await setUp();
  const { slow, waiting, release } = heldAt(2, target);
  const moving = keyval.migrate(FROM, slow);
  await waiting;
  // The first part is the slow tab's.
  expect(await keyval.migrate(FROM, target)).toEqual(copied(total - 64));
  await keyval.clear(target);
  release();
  expect(await moving).toEqual({ copied: 64, state: 'before' });
  expect(await keyval.keys(target)).toEqual([]);
});

test('tabs that move at the same time write every entry once, and none reports an end before all is there', async () => {
  const { source, target, total } = await setUp();
  const expected = await original.entries(source);
  const move = async (): Promise<keyval.MigrationReport> => {
    const report = await keyval.migrate(FROM, target);
    expect(await keyval.entries(target)).toEqual(expected);
    return report;
  };
  const reports = await Promise.all([move(), move(), move()]);
  expect(reports.reduce((sum, report) => sum + report.copied, 0)).toBe(total);
  expect(reports.map(({ state }) => state)).toContain('copied');
  expect(await keyval.migrate(FROM, target)).toEqual(BEFORE);
});

test('what another tab has moved is flushed before it is reported, also if the database is deleted already', async () => {
  const { target, total } = await setUp();
  expect(await keyval.migrate(FROM, target)).toEqual(copied(total));
  let flushes = 0;
  let looks = 0;
  const late: keyval.UseStore = async () => {
    const view = await target();
    const [has, flush] = [view.has.bind(view), view.flush.bind(view)];
    // The mark is written between the first look and the second one.
    view.has = async (...args) => ++looks > 1 && has(...args);
    view.flush = async (options) => {
      await flush(options);
      flushes++;
    };
    return view;
  };
  // The database is there: the first part finds the mark.
  expect(await keyval.migrate(FROM, late)).toEqual(BEFORE);
  expect([looks, flushes]).toEqual([1, 1]);
  // It is deleted: the second look does.
  vi.stubGlobal('indexedDB', new IDBFactory());
  looks = 0;
  expect(await keyval.migrate(FROM, late)).toEqual(BEFORE);
  expect([looks, flushes]).toEqual([2, 2]);
});

test('a value that cannot be stored is a DataCloneError; after it is deleted, the rest is moved', async () => {
  const { source, target, total } = await setUp();
  const key = await crypto.subtle.generateKey({ name: 'AES-GCM', length: 128 }, false, ['encrypt']);
  await original.set(100, 'x', source);
  // The IndexedDB in memory clones no such key: the view is given one instead.
  const refusing: keyval.UseStore = async () => {
    const view = await target();
    const { transaction } = view;
    view.transaction = (run, options) =>
      transaction.call(
        view,
        (tx) => {
          const { set } = tx;
          tx.set = (at, value) => set.call(tx, at, value[0] === 'x' ? ([key] as [unknown]) : value);
          return run(tx as never);
        },
        options,
      ) as never;
    return view;
  };
  await expect(keyval.migrate(FROM, refusing)).rejects.toMatchObject({
    name: 'DataCloneError',
    message: expect.stringContaining('Delete 100 in IndexedDB'),
  });
  // The entries before it are there.
  expect(await keyval.get(99, target)).toEqual({ number: 99 });
  await original.del(100, source);
  const there = (await keyval.keys(target)).length;
  expect(await keyval.migrate(FROM, refusing)).toEqual(copied(total - 1 - there));
  expect(await keyval.entries(target)).toEqual(await original.entries(source));
});

// Story: 64 pictures of 5 MB are too long for one batch. That error has another code than a value that is too long, so no move ever ended.
test('entries that are together too long for one batch are moved in parts', async () => {
  const { source, target, total } = await setUp();
  const small: keyval.UseStore = async () => {
    const view = await target();
    const { transaction } = view;
    view.transaction = (run, options) =>
      transaction.call(
        view,
        (tx) => {
          const { set } = tx;
          let sets = 0;
          tx.set = (key, value) => {
            // As a batch of more than 256 MiB does.
            if (++sets > 10) throw invalid('A batch takes at most 256 MiB. Split it.');
            set.call(tx, key, value);
          };
          return run(tx as never);
        },
        options,
      ) as never;
    return view;
  };
  expect(await keyval.migrate(FROM, small)).toEqual(copied(total));
  expect(await keyval.entries(target)).toEqual(await original.entries(source));
});

test('a document of y-indexeddb is moved with its properties, once', async () => {
  const doc = new Y.Doc();
  const old = new IndexeddbPersistence('note', doc);
  await old.whenSynced;
  for (let i = 0; i < 150; i++) doc.getText('text').insert(0, `${i} `);
  await old.set('seen', new Date(1));
  await old.destroy();

  const aborting = new AbortController();
  const onProgress = () => aborting.abort();
  await expect(yjs.migrate('note', { signal: aborting.signal, onProgress }, db)).rejects.toThrow();
  const seen: yjs.Progress[] = [];
  expect(await yjs.migrate('note', { onProgress: (progress) => seen.push(progress) }, db)).toEqual(copied(152 - 64));
  expect(seen.at(-1)).toEqual({ done: 152, total: 152 });
  const moved = new Y.Doc();
  const persistence = new yjs.VarvePersistence('note', moved, db);
  await persistence.whenSynced;
  expect(moved.getText('text').toString()).toBe(doc.getText('text').toString());
  expect(await persistence.get('seen')).toEqual(new Date(1));
  await yjs.storeState(persistence);
  expect(await db.count({ prefix: ['update', 'note'] })).toBe(1);
  await persistence.clearData();
  expect(await yjs.migrate('note', {}, db)).toEqual(BEFORE);
  expect(await db.count({ prefix: ['update'] })).toBe(0);
  expect((await indexedDB.databases()).map(({ name }) => name)).toEqual(['note']);
});

// A key that no store can have once stopped every move, at each start, with an error that did not name it.
test.each<[string, keyval.IdbKey, string]>([
  ['long', 'k'.repeat(40_000), `"${'k'.repeat(79)}`],
  ['deep', Array.from({ length: 20 }).reduce<keyval.IdbKey>((inner) => [inner], 'a'), '[[[['],
])('a key that is too %s is named; after it is deleted, the rest is moved', async (_, key, named) => {
  const { source, target, total } = await setUp();
  await original.set(key as IDBValidKey, 1, source);
  const error = await keyval.migrate(FROM, target).catch((thrown) => thrown);
  expect(error).toMatchObject({ code: 'VARVE_INVALID_KEY', message: expect.stringContaining(`Delete ${named}`) });
  expect(error.message.length).toBeLessThan(250);
  // The entries before it are there.
  expect(await keyval.get(200, target)).toEqual({ number: 200 });
  await original.del(key as IDBValidKey, source);
  const there = (await keyval.keys(target)).length;
  expect(await keyval.migrate(FROM, target)).toEqual(copied(total - there));
  expect(await keyval.entries(target)).toEqual(await original.entries(source));
});
