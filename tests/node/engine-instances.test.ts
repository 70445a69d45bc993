/** Each store has an engine instance of its own. The instance is freed when the store is closed and collected. */

import { expect, test, vi } from 'vitest';
import { open as openInline } from '../../js/src/inline.ts';
import { open } from '../../js/src/synchronous.ts';
import { wasm } from './support/engine.ts';
import { alive, made } from './support/instances.ts';

vi.mock('../../js/src/wasm/instantiate.ts', async (load) =>
  (await import('./support/instances.ts')).counting(await load()),
);

const options = { wasm, storage: 'memory', memoryBytes: 1024 * 1024 } as const;

test('stores have their own', async () => {
  const before = made();
  const stores = await Promise.all([open('a', options), open('b', options), openInline('c', options)]);
  expect(made() - before).toBe(3);
  await Promise.all(stores.map((store) => store.close()));
});

test('a thousand stores, opened and closed one after another, leave none behind', { timeout: 120_000 }, async () => {
  const before = made();
  for (let round = 0; round < 500; round++) {
    const store = await open(`store ${round}`, options);
    store.set('key', round);
    await store.close();
    const other = await openInline(`other ${round}`, options);
    await other.set('key', round);
    await other.close();
  }
  expect(made() - before).toBe(1000);
  await vi.waitFor(async () => expect(await alive()).toBeLessThan(10), { timeout: 20_000 });
});
