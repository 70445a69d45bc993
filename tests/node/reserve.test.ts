/**
 * The room that a store sets aside in an asynchronous storage, from one session to the next.
 *
 * The story: a store on a full Deno KV was opened again. It did not know that it had used part of its reserve, and used the rest of the
 * reserve for the first sets. Then no flush found room, and no write was answered.
 */

import 'fake-indexeddb/auto';
import { expect, test } from 'vitest';
import type { ChunkReserve, ChunkStore } from '../../js/src/storage/buffered/chunk-store.ts';
import { DenoKvChunks } from '../../js/src/storage/denokv/chunk-store.ts';
import { IndexedDbChunks } from '../../js/src/storage/indexeddb/chunk-store.ts';
import { FakeKv } from './support/fake-kv.ts';

type Reserved = ChunkStore & { readonly reserve: ChunkReserve };

const kv = new FakeKv();
const stores: Record<string, () => Reserved> = {
  'Deno KV': () =>
    new DenoKvChunks(
      { kv, prefix: ['varve'], name: 'a' },
      { store: 'a', leaseMs: 60_000, create: true, lockTimeout: 0 },
    ),
  IndexedDB: () => new IndexedDbChunks('a'),
};

/** Opens, asks whether the store had used part of its reserve before, and does something. */
async function session(store: Reserved, act: (reserve: ChunkReserve) => Promise<unknown>): Promise<boolean> {
  await store.takeOver(() => []);
  const wasGiven = store.reserve.wasGiven();
  await act(store.reserve);
  await store.close();
  return wasGiven;
}

test.each(Object.entries(stores))('%s: the next session knows that the reserve was given', async (_, store) => {
  const nothing = async (): Promise<void> => undefined;
  expect(await session(store(), nothing)).toBe(false);
  expect(await session(store(), (reserve) => reserve.complete())).toBe(false);
  expect(await session(store(), (reserve) => reserve.give('any'))).toBe(false);
  expect(await session(store(), nothing)).toBe(true);
  // The same is true after all of the reserve was used.
  const giveAll = async (reserve: ChunkReserve): Promise<void> => {
    while (await reserve.give('small'));
  };
  expect(await session(store(), giveAll)).toBe(true);
  expect(await session(store(), (reserve) => reserve.complete())).toBe(true);
  expect(await session(store(), nothing)).toBe(false);
});
