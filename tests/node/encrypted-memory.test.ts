/** When an encrypted store is closed, no data key is left in the memory of an engine: not of the store, and not of its jobs. */

import { expect, test, vi } from 'vitest';
import { open } from '../../js/src/inline.ts';
import { ChunkAdapter } from './support/chunk-adapter.ts';
import { wasm } from './support/engine.ts';

const engines = vi.hoisted(() => ({ memories: [] as WebAssembly.Memory[], dataKeys: [] as Uint8Array[] }));

vi.mock('../../js/src/wasm/instantiate.ts', async (load) => {
  const real = await load<typeof import('../../js/src/wasm/instantiate.ts')>();
  const instantiate: typeof real.instantiate = (module) => {
    const engine = real.instantiate(module);
    engines.memories.push(engine.exports.memory);
    return engine;
  };
  return { ...real, instantiate };
});

vi.mock('../../js/src/wasm/data-keys.ts', async (load) => {
  const real = await load<typeof import('../../js/src/wasm/data-keys.ts')>();
  const encodeKeys: typeof real.encodeKeys = (given) => {
    // Behind its number.
    engines.dataKeys.push(given.keys.slice(2, 34));
    return real.encodeKeys(given);
  };
  return { ...real, encodeKeys };
});

/** How often a data key is in the memory of an engine. */
function copies(): number {
  const found = engines.memories.flatMap(({ buffer }) => {
    const memory = Buffer.from(buffer);
    return engines.dataKeys.map((key) => {
      let count = 0;
      for (let at = memory.indexOf(key); at >= 0; at = memory.indexOf(key, at + 1)) count++;
      return count;
    });
  });
  return found.reduce((sum, count) => sum + count, 0);
}

test('jobs leave no copy of a data key behind, and a closed store none at all', async () => {
  // Its jobs run in an engine of their own.
  const storage = new ChunkAdapter();
  const encryption = { key: new Uint8Array(32).fill(7) };
  const db = await open<string, string>('secret', { wasm, storage, memoryBytes: 2 ** 20, encryption });
  const kept = copies();
  expect(kept).toBeGreaterThan(0);
  for (let n = 0; n < 5; n++) {
    await db.setMany(Array.from({ length: 100 }, (_, i) => [`key ${i * n}`, `value ${n} `.repeat(50)] as const));
    await db.flush();
  }
  await db.compact();
  const { flush, compaction } = await db.stats();
  expect([flush.count > 2, compaction.count > 0, engines.memories.length]).toEqual([true, true, 2]);
  expect(copies()).toBe(kept);
  await db.close();
  expect(copies()).toBe(0);
});
