/**
 * `varve/async-storage` under the libraries that it is for, and one behaviour at a time. redux-persist and apollo3-cache-persist use the
 * same three methods, with null for an absent key.
 */

import { QueryClient } from '@tanstack/query-core';
import { experimental_createQueryPersister, type PersistedQuery } from '@tanstack/query-persist-client-core';
import { atom, createStore as createJotai } from 'jotai/vanilla';
import { atomWithStorage, createJSONStorage as jotaiJson } from 'jotai/vanilla/utils';
import { expect, expectTypeOf, test, vi } from 'vitest';
import { createJSONStorage, persist, type StorageValue } from 'zustand/middleware';
import { createStore } from 'zustand/vanilla';
import { asyncStorage } from '../../js/src/async-storage.ts';
import { bytes } from '../../js/src/index.ts';
import { openStore } from '../../js/src/store/open.ts';
import type { Store } from '../../js/src/store/store.ts';
import type { Key } from '../../js/src/types.ts';
import { spawnServer, wasm } from './support/engine.ts';
import { goneOnce } from './support/gone.ts';
import { closedAfterTest } from './support/stores.ts';

async function open(): Promise<Store<Key, unknown>> {
  return closedAfterTest(await openStore<Key, unknown>('test', { wasm, storage: 'memory' }, spawnServer));
}

test('strings are set, read, listed and removed; an absent key is null, or the second argument', async () => {
  const db = await open();
  const storage = asyncStorage(db);
  expectTypeOf(storage.getItem('a')).resolves.toEqualTypeOf<string | null>();
  expect(await storage.getItem('a')).toBeNull();
  expect(await storage.getItem('a', 'else')).toBe('else');
  expect(await asyncStorage<string | undefined>(db).getItem('a', undefined)).toBeUndefined();
  expect(await storage.setItem('b', 'two')).toBeUndefined();
  await storage.setItem('', '');
  expect(await storage.getItem('b', 'else')).toBe('two');
  expect(await storage.getItem('', 'else')).toBe('');
  expect(await storage.entries()).toEqual([
    ['', ''],
    ['b', 'two'],
  ]);
  expect(await storage.removeItem('b')).toBeUndefined();
  await storage.removeItem('b');
  expect(await storage.getItem('b')).toBeNull();
});

test('a prefix and a view lead to a part of the store; keys of other types are no items', async () => {
  const db = await open();
  await db.setMany([
    [['app', 'a'], 'A'],
    [['app', 'a', 'b'], 'deeper'],
    [['app', 1], 'number'],
    ['a', 'outside'],
  ]);
  expect(await asyncStorage(db, { prefix: ['app'] }).entries()).toEqual([['a', 'A']]);
  expect(await asyncStorage(db.at(['app'])).entries()).toEqual([['a', 'A']]);
  expect(await asyncStorage(db).entries()).toEqual([['a', 'outside']]);
});

test('calls before the store is open wait for it, in their order; methods need no object', async () => {
  let opened = (_: Store<Key, unknown>): void => undefined;
  const { getItem, setItem, removeItem } = asyncStorage(new Promise<Store<Key, unknown>>((done) => (opened = done)));
  const calls = [getItem('a'), setItem('a', '1'), getItem('a'), removeItem('a'), getItem('a')];
  opened(await open());
  expect(await Promise.all(calls)).toEqual([null, undefined, '1', undefined, null]);
});

test('every call rejects with the error of the opening; a subscription just ends', async () => {
  const failure = new Error('locked');
  const storage = asyncStorage(Promise.reject(failure));
  storage.subscribe('a', () => undefined)();
  for (const call of [storage.getItem('a'), storage.setItem('a', ''), storage.removeItem('a'), storage.entries()]) {
    await expect(call).rejects.toBe(failure);
  }
});

test('errors of the store reach the caller', async () => {
  const db = await open();
  const storage = asyncStorage<unknown>(db);
  await expect(storage.setItem('\ud800', 1)).rejects.toMatchObject({ code: 'VARVE_INVALID_KEY' });
  await expect(storage.setItem('a', () => 1)).rejects.toMatchObject({ code: 'VARVE_INVALID_VALUE' });
  await db.close();
  await expect(storage.getItem('a')).rejects.toMatchObject({ code: 'VARVE_CLOSED' });
  await expect(storage.setItem('a', 1)).rejects.toMatchObject({ code: 'VARVE_CLOSED' });
});

test('values have the codec of a view', async () => {
  const view = (await open()).at<string, Uint8Array>(['raw'], { values: bytes });
  const storage = asyncStorage<Uint8Array>(view);
  await storage.setItem('a', Uint8Array.of(1, 2));
  expect(await view.get('a')).toEqual(Uint8Array.of(1, 2));
});

test('a subscription hears of changes from elsewhere only, and of none that this storage has overwritten', async () => {
  const db = await open();
  const storage = asyncStorage(db, { prefix: ['app'] });
  const heard: unknown[] = [];
  const end = storage.subscribe('a', (value) => heard.push(value), 'none');
  const others = asyncStorage(db, { prefix: ['app'] });
  await others.setItem('b', 'another key');
  await others.setItem('a', '1');
  await vi.waitFor(() => expect(heard).toEqual(['1']));
  await storage.setItem('a', '2');
  // Both are on their way at once: the second write wins.
  await Promise.all([others.setItem('a', '3'), storage.setItem('a', '4')]);
  await others.removeItem('a');
  await vi.waitFor(() => expect(heard).toEqual(['1', 'none']));
  await db.set(['app', 'a'], '5');
  await db.clear();
  await vi.waitFor(() => expect(heard).toEqual(['1', 'none', '5', 'none']));
  end();
  end();
  await others.setItem('a', '6');
  const next = vi.fn();
  storage.subscribe('a', next);
  await others.removeItem('a');
  await vi.waitFor(() => expect(next).toHaveBeenCalledWith(null));
  expect(heard).toHaveLength(4);
});

test('a write that fails hides no change; a callback that throws ends nothing', async () => {
  const db = await open();
  const [storage, others] = [asyncStorage<unknown>(db), asyncStorage<unknown>(db)];
  const heard: unknown[] = [];
  const unhandled = vi.fn();
  process.once('uncaughtException', unhandled);
  storage.subscribe('a', (value) => {
    heard.push(value);
    if (value === 1) throw new Error('of the callback');
  });
  await Promise.all([others.setItem('a', 1), storage.setItem('a', () => 2).catch(() => undefined)]);
  await others.setItem('a', 3);
  await vi.waitFor(() => expect(heard).toEqual([1, 3]));
  expect(unhandled).toHaveBeenCalledOnce();
});

test('TanStack Query: queries are persisted one by one, restored without a fetch, collected and removed', async () => {
  const db = open();
  const storage = asyncStorage(db, { prefix: ['query'] });
  const fetched = vi.fn(async () => ({ title: 'Silt' }));
  const load = async (persister: ReturnType<typeof experimental_createQueryPersister>): Promise<unknown> =>
    new QueryClient().fetchQuery({
      queryKey: ['note', 1],
      queryFn: fetched,
      persister: persister.persisterFn as never,
    });
  const persister = experimental_createQueryPersister({ storage });
  expect(await load(persister)).toEqual({ title: 'Silt' });
  await vi.waitFor(async () => expect(await storage.entries()).toHaveLength(1));
  // Another page load.
  expect(await load(experimental_createQueryPersister({ storage, refetchOnRestore: false }))).toEqual({
    title: 'Silt',
  });
  expect(fetched).toHaveBeenCalledOnce();
  const client = new QueryClient();
  await persister.restoreQueries(client, { queryKey: ['note'] });
  expect(client.getQueryData(['note', 1])).toEqual({ title: 'Silt' });
  await experimental_createQueryPersister({ storage, buster: 'next' }).persisterGc();
  expect(await storage.entries()).toEqual([]);
  await persister.removeQueries();
});

test('TanStack Query: structured values need no JSON, so dates stay dates', async () => {
  const storage = asyncStorage<PersistedQuery>(open(), { prefix: ['query'] });
  const whole = { serialize: (query: PersistedQuery) => query, deserialize: (query: PersistedQuery) => query };
  const persister = experimental_createQueryPersister<PersistedQuery>({ storage, ...whole });
  const client = new QueryClient();
  const edited = new Date(0);
  client.setQueryData(['note'], { edited });
  await persister.persistQueryByKey(['note'], client);
  const restored = new QueryClient();
  await persister.restoreQueries(restored);
  expect(restored.getQueryData(['note'])).toEqual({ edited });
});

interface Bears {
  count: number;
  since: Date;
}

test('Zustand: a state is persisted as JSON and as it is, and rehydrated', async () => {
  const db = open();
  const text = asyncStorage(db, { prefix: ['json'] });
  const whole = asyncStorage<StorageValue<Bears>>(db, { prefix: ['whole'] });
  const create = (storage: ReturnType<typeof createJSONStorage<Bears>>) =>
    createStore<Bears>()(persist(() => ({ count: 0, since: new Date(0) }), { name: 'bears', storage }));
  for (const [storage, since] of [
    [createJSONStorage<Bears>(() => text), '1970-01-01T00:00:00.001Z'],
    [whole, new Date(1)],
  ] as const) {
    const bears = create(storage);
    await vi.waitFor(() => expect(bears.persist.hasHydrated()).toBe(true));
    expect(bears.getState().count).toBe(0);
    bears.setState({ count: 3, since: new Date(1) });
    const reloaded = create(storage);
    await vi.waitFor(() => expect(reloaded.persist.hasHydrated()).toBe(true));
    expect(reloaded.getState()).toEqual({ count: 3, since });
    await reloaded.persist.clearStorage();
  }
  expect(await text.getItem('bears')).toBeNull();
});

test('Jotai: atoms begin with their initial value, read what is stored, and follow other tabs', async () => {
  const db = open();
  const storage = asyncStorage<string>(db, { prefix: ['whole'] });
  const text = asyncStorage(db, { prefix: ['json'] });
  for (const kept of [storage, jotaiJson<string>(() => text)]) {
    const theme = atomWithStorage('theme', 'light', kept);
    const seen = createJotai();
    const current = atom(async (get) => get(theme));
    const end = seen.sub(current, () => undefined);
    await vi.waitFor(async () => expect(await seen.get(current)).toBe('light'));
    await seen.set(theme, 'dark');
    expect(await seen.get(current)).toBe('dark');
    const others = kept === storage ? storage : text;
    expect(await others.getItem('theme')).toBe(kept === storage ? 'dark' : '"dark"');
    const [of, value] = kept === storage ? ['whole', 'blue'] : ['json', '"blue"'];
    await (await db).set([of, 'theme'], value);
    await vi.waitFor(async () => expect(await seen.get(current)).toBe('blue'));
    await (await db).delete([of, 'theme']);
    await vi.waitFor(async () => expect(await seen.get(current)).toBe('light'));
    end();
  }
});

test('reads whose read point is gone, because another tab leads the store, are made again', async () => {
  const storage = asyncStorage(await open());
  await storage.setItem('a', 'one');
  const failed = goneOnce();
  expect(await storage.getItem('a')).toBe('one');
  expect(await storage.entries()).toEqual([['a', 'one']]);
  expect(failed()).toBe(2);
});
