// The package as it ships, on Node: the synchronous store with its data in memory.

import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

/** The built entry; its types are those of the sources that it was built from. */
const entry: typeof import('varve/sync') = await import(
  /* @vite-ignore */ fileURLToPath(new URL('../../dist/sync.js', import.meta.url))
);

test('varve/sync keeps a store in memory', async () => {
  const db = await entry.open('runtime', { storage: 'memory', compactor: false });
  db.set(['note', 42], { title: 'Silt' });
  db.set(['note', 7], { title: 'Clay' });
  expect(db.get(['note', 42])).toEqual({ title: 'Silt' });
  expect([...db.keys({ prefix: ['note'] })]).toEqual([
    ['note', 7],
    ['note', 42],
  ]);
  expect(db.storage.kind).toBe('memory');
  await db.close();
});
