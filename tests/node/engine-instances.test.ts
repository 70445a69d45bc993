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

test('where the browser has no room for another engine, as Chromium has for some 125, the store is refused and says so', async () => {
  const one = await open('one', options);
  vi.spyOn(WebAssembly, 'Instance').mockImplementation(
    class {
      constructor() {
        throw new RangeError('WebAssembly.Instance(): Out of memory: Cannot allocate Wasm memory for new instance');
      }
    } as never,
  );
  const refused = { code: 'VARVE_UNAVAILABLE', message: expect.stringContaining('about 100 open at once') };
  await expect(open('another', options)).rejects.toMatchObject(refused);
  await expect(openInline('another', options)).rejects.toMatchObject(refused);
  vi.restoreAllMocks();
  one.set('key', 1);
  expect(one.get('key')).toBe(1);
  await one.close();
  await (await open('another', options)).close();
});
