/** Stores over the real engine that are closed after each test, and what their tests compare. */

import { afterEach, expect, vi } from 'vitest';
import type { Port } from '../../../js/src/client/client.ts';
import { openStore } from '../../../js/src/store/open.ts';
import type { Store } from '../../../js/src/store/store.ts';
import { open, type SyncStore } from '../../../js/src/synchronous.ts';
import type { Key } from '../../../js/src/types.ts';
import { spawnServer, wasm } from './engine.ts';
import { bytesOf } from './exports.ts';
import { held, tabs } from './two-tabs.ts';

const stores: { close(): Promise<void> }[] = [];

// The stores need the mocks and stubs of their test until they are closed. A file that uses this needs no cleanup for those.
afterEach(async () => {
  for (const store of stores.splice(0)) await store.close();
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

/** The store, which is closed after the test. */
export function closedAfterTest<S extends { close(): Promise<void> }>(store: S): S {
  stores.push(store);
  return store;
}

/** A store of `varve`; `spawn` passes the port to its worker. */
export async function openAsync(spawn = spawnServer): Promise<Store<Key, unknown>> {
  return closedAfterTest(
    await openStore<Key, unknown>('test', { wasm, storage: 'memory', memoryBytes: 2 ** 20 }, spawn),
  );
}

/** One store as several tabs have it; the frames of the first tab wait for the promise of `before`. */
export async function openTabs(
  count: number,
  before: () => Promise<unknown> | undefined = () => undefined,
): Promise<Store<Key, unknown>[]> {
  const opened: Store<Key, unknown>[] = [];
  const [first, ...others] = tabs(count) as [() => Port, ...(() => Port)[]];
  for (const spawn of [held(first, before), ...others]) {
    const options = { wasm, storage: 'memory', memoryBytes: 2 ** 20, cache: false } as const;
    opened.push(await openStore<Key, unknown>('test', options, spawn));
  }
  stores.push(...opened);
  return opened;
}

/** An export of a store with these entries and nothing else: no collection was ever opened in it. */
export async function plainExport(entries: Iterable<readonly [Key, unknown]>): Promise<Uint8Array<ArrayBuffer>> {
  const db = await openAsync();
  await db.setMany(entries);
  return bytesOf(db.export());
}

/** A store of `varve/synchronous`. */
export async function openSync(): Promise<SyncStore<Key, unknown>> {
  return closedAfterTest(await open<Key, unknown>('test', { wasm, storage: 'memory', memoryBytes: 2 ** 20 }));
}

/** All items of an iterator. */
export async function collect<T>(items: AsyncIterable<T> | Iterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

/** An error with this code. */
export const code = (name: string): unknown => expect.objectContaining({ code: name });

/** A conflict over this key. */
export const conflict = (key: unknown, sequence: number | null): unknown =>
  expect.objectContaining({ code: 'VARVE_CONFLICT', conflict: { key, sequence } });

/** One more than the value; 1 if there is no value. */
export const add = (n: unknown): number => ((n as number | undefined) ?? 0) + 1;
