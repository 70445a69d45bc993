/** The free room of a storage that the engine is given, here of the origin of a browser. */

import { afterEach, expect, test, vi } from 'vitest';
import { Quota } from '../../js/src/engine/quota.ts';
import { OpfsDevice } from '../../js/src/storage/opfs.ts';
import type { EngineStore } from '../../js/src/wasm/store.ts';

afterEach(() => {
  vi.unstubAllGlobals();
});

function quotaOf(estimate: () => Promise<StorageEstimate>): { quota: Quota; rooms: number[]; asked: () => number } {
  let asked = 0;
  const counted = (): Promise<StorageEstimate> => {
    asked++;
    return estimate();
  };
  vi.stubGlobal('navigator', { storage: { estimate: counted } });
  const rooms: number[] = [];
  const store = { setRoom: (bytes: number) => rooms.push(bytes) } as unknown as EngineStore;
  return { quota: new Quota(store, OpfsDevice.prototype), rooms, asked: () => asked };
}

const turn = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 0));

test('the engine gets the room that the quota leaves, and never less than 0', async () => {
  const some = quotaOf(async () => ({ quota: 1000, usage: 400 }));
  some.quota.look();
  await turn();
  expect(some.rooms).toEqual([600]);
  const none = quotaOf(async () => ({ quota: 1000, usage: 1200 }));
  none.quota.look();
  await turn();
  expect(none.rooms).toEqual([0]);
});

test('the browser is not asked again at once', async () => {
  const { quota, asked } = quotaOf(async () => ({ quota: 10, usage: 1 }));
  quota.look();
  quota.look();
  await turn();
  expect(asked()).toBe(1);
});

test('a closed store is not called, whenever the answer comes', async () => {
  let answer: (estimate: StorageEstimate) => void = () => undefined;
  const { quota, rooms } = quotaOf(() => new Promise((resolve) => (answer = resolve)));
  quota.look();
  quota.shutDown();
  answer({ quota: 10, usage: 1 });
  await turn();
  expect(rooms).toEqual([]);
});

test('a browser that refuses or does not answer changes nothing', async () => {
  for (const estimate of [() => Promise.reject(new TypeError('no')), async () => ({})]) {
    const { quota, rooms } = quotaOf(estimate);
    quota.look();
    await turn();
    expect(rooms).toEqual([]);
  }
});
