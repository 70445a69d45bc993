// The code of the documents that is complete runs: page by page, each with stores of its own. Where a `console.log` has a value behind
// it, that is what it prints. tests/packaging/types.test.ts compiles the same blocks.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { BrowserLevel } from 'browser-level';
import Dexie from 'dexie';
import { IDBFactory, IDBKeyRange } from 'fake-indexeddb';
import * as idbKeyval from 'idb-keyval';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { literal } from '../../docs/.vitepress/theme/show.ts';
import { open as openInline } from '../../js/src/inline.ts';
import type { Store } from '../../js/src/store/store.ts';
import type { Key } from '../../js/src/types.ts';
import { root } from '../../scripts/tools.mjs';
import { blocksOf } from '../support/readme.ts';
import { wasm } from './support/engine.ts';

const FOLDER = join(root, 'build', 'test-docs-blocks');

/** The stores of a page, which all of its blocks share, as they do in a browser. */
const stores = new Map<string, Promise<Store<Key, unknown>>>();

vi.mock('../../js/src/index.ts', () => ({
  open: (name: string) => {
    const store = stores.get(name) ?? openInline(name, { wasm, storage: 'memory' });
    stores.set(name, store);
    return store;
  },
}));

/** Values of `console.log` that were shown behind it. */
let shown: number;

beforeEach(() => {
  shown = 0;
  vi.stubGlobal('expectShown', (values: unknown[], comment: string) => {
    const text = values.map(literal).join(', ');
    expect(comment.slice(0, text.length)).toBe(text); // the comment may go on
    shown++;
  });
  vi.stubGlobal('indexedDB', new IDBFactory());
  vi.stubGlobal('IDBKeyRange', IDBKeyRange);
});

afterEach(async () => {
  for (const store of stores.values()) await (await store).close();
  stores.clear();
  vi.unstubAllGlobals();
});

/** Runs the blocks of a page in their order; returns what they export. */
async function run(page: string): Promise<Record<string, never>> {
  const exported = {};
  for (const [name, code] of blocksOf(join('docs', page))) {
    if (!code.startsWith('import ') || !name.endsWith('.ts')) continue;
    // Values that are shown behind a call of console.log become its second argument.
    const checked = code.replaceAll(
      /console\.log\((.*)\);\s*\/\/ (?=['\d[{]|undefined)(.*)/g,
      (_, values: string, shown: string) => `expectShown([${values}], ${JSON.stringify(shown)});`,
    );
    mkdirSync(FOLDER, { recursive: true });
    writeFileSync(join(FOLDER, name), checked);
    Object.assign(exported, await import(pathToFileURL(join(FOLDER, name)).href));
  }
  return exported;
}

test('Get started', async () => {
  vi.spyOn(console, 'log').mockReturnValue();
  await run('guide/get-started.md');
  expect(shown).toBe(2);
  const diary = await stores.get('diary');
  expect([await diary?.count({ prefix: ['entry'] }), await diary?.get('visits')]).toEqual([3, 1]);
});

test('Coming from localStorage', async () => {
  vi.stubGlobal(
    'localStorage',
    Object.create({ getItem: (name: string) => `value of ${name}` }, { a: { enumerable: true } }),
  );
  await run('coming-from/local-storage.md');
  expect(shown).toBe(2);
  expect(await (await stores.get('app'))?.get('a')).toBe('value of a');
});

test('Coming from idb-keyval', async () => {
  await idbKeyval.set('old', 7);
  await idbKeyval.set('size', 'large', idbKeyval.createStore('app', 'settings'));
  await run('coming-from/idb-keyval.md');
  expect(shown).toBe(2);
  // The page once read what migrate() had copied with calls of the store, which have other keys: nothing was found.
  expect(await (await stores.get('app'))?.get(['own', 'settings', 'size'])).toBe('large');
  const values = await Promise.all([...stores.values()].map(async (store) => (await store).values().next()));
  expect(JSON.stringify(values)).toContain('7');
});

test('Coming from Dexie', async () => {
  Dexie.dependencies.indexedDB = indexedDB;
  Dexie.dependencies.IDBKeyRange = IDBKeyRange;
  const old = new Dexie('app');
  old.version(1).stores({ notes: 'id, edited' });
  await old.table('notes').add({ id: 'a', slug: 'old', tags: [], edited: new Date() });
  old.close();
  await run('coming-from/dexie.md');
  expect(shown).toBe(2);
  expect(await (await stores.get('app'))?.get(['notes', 'doc', 'a'])).toMatchObject({ slug: 'old' });
});

test('Coming from Level', async () => {
  const old = new BrowserLevel<string, unknown>('app', { valueEncoding: 'json' });
  await old.put('old', { a: 1 });
  await old.close();
  await run('coming-from/level.md');
  expect(shown).toBe(1);
  expect(await (await stores.get('app'))?.get('old')).toEqual({ a: 1 });
});

test('Coming from SQLite', async () => {
  await run('coming-from/sqlite.md');
  expect(shown).toBe(1);
});

test('Offline queue', async () => {
  const { saveNote, sendAll } = (await run('recipes/offline-queue.md')) as unknown as {
    saveNote(id: string, text: string): Promise<void>;
    sendAll(send: (job: { id: string }) => Promise<void>): Promise<void>;
  };
  for (const id of ['a', 'b', 'c']) await saveNote(id, 'text');
  const sent: string[] = [];
  const offline = async ({ id }: { id: string }): Promise<void> => {
    if (id === 'b') throw new Error('offline');
    sent.push(id);
  };
  await expect(sendAll(offline)).rejects.toThrow('offline');
  await sendAll(async ({ id }) => void sent.push(id));
  await sendAll(async ({ id }) => void sent.push(id));
  expect(sent).toEqual(['a', 'b', 'c']);
});

test('Undo and redo', async () => {
  const { change, undo, redo } = (await run('recipes/undo.md')) as unknown as {
    change(key: string, value: unknown): Promise<void>;
    undo(): Promise<unknown>;
    redo(): Promise<unknown>;
  };
  const db = await stores.get('app');
  const seen: unknown[] = [];
  const see = async (step: Promise<unknown>): Promise<void> => void seen.push([await step, await db?.get('a')]);
  await see(change('a', 1));
  await see(change('a', 2));
  await see(change('a', undefined));
  for (const step of [undo, undo, redo, undo, undo, undo]) await see(step());
  await see(redo());
  await see(change('a', 9));
  await see(redo());
  expect(seen).toEqual([
    ...[
      [undefined, 1],
      [undefined, 2],
      [undefined, undefined],
    ],
    ...[
      ['a', 2],
      ['a', 1],
      ['a', 2],
      ['a', 1],
      ['a', undefined],
      [undefined, undefined],
    ],
    ...[
      ['a', 1],
      [undefined, 9],
      [undefined, 9],
    ],
  ]);
});

test('Prefix search', async () => {
  const { notes, search } = (await run('recipes/prefix-search.md')) as unknown as {
    notes: { insert(note: { text: string }): Promise<unknown> };
    search(input: string): Promise<{ text: string }[]>;
  };
  for (const text of ['Mud of a lake', 'Lakes', 'Clay, mud']) await notes.insert({ text });
  const found = async (input: string): Promise<string[]> => (await search(input)).map(({ text }) => text);
  expect(await found('lak mu')).toEqual(['Mud of a lake']);
  expect((await found('lake')).sort()).toEqual(['Lakes', 'Mud of a lake']);
  expect([await found('ake'), await found('')]).toEqual([[], []]);
});

test('Sessions on the edge', async () => {
  const { startSession, readSession, endSession } = (await run('recipes/edge-sessions.md')) as unknown as Record<
    'startSession' | 'readSession' | 'endSession',
    (db: unknown, text: string) => Promise<unknown>
  >;
  await using db = await openInline<[string, string], unknown>('sessions', { wasm, storage: 'memory' });
  const secret = (await startSession(db, 'ada')) as string;
  expect([await readSession(db, secret), await readSession(db, 'other')]).toEqual([{ user: 'ada' }, undefined]);
  const left = Number((await db.getEntry(['session', secret]))?.expiresAt) - Date.now();
  expect(left > 29 * 60_000 && left <= 30 * 60_000).toBe(true);
  await endSession(db, secret);
  expect(await readSession(db, secret)).toBeUndefined();
});
