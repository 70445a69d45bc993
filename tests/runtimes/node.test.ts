// The package as it ships, on Node: the synchronous store with its data in memory.

import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

/** The built entry; its types are those of the sources that it was built from. */
const entry: typeof import('varve/sync') = await import(
  /* @vite-ignore */ fileURLToPath(new URL('../../dist/sync.js', import.meta.url))
);

const page: typeof import('varve') = await import(
  /* @vite-ignore */ fileURLToPath(new URL('../../dist/index.js', import.meta.url))
);

test('varve runs its engine in the realm of the caller where there are no workers', async () => {
  const db = await page.open('runtime', { storage: 'memory' });
  await Promise.all([db.set('a', 1), db.set('b', 2)]);
  expect(await db.getMany(['a', 'b', 'c'])).toEqual([1, 2, undefined]);
  await expect(db.set('a', 2, { ifSequence: 7 })).rejects.toBeInstanceOf(page.VarveError);
  await db.close();
});

test('where there is no origin private file system, a store in memory says why', async () => {
  const db = await page.open('runtime');
  expect(db.storage).toMatchObject({ kind: 'memory', reason: expect.any(String) });
  await db.close();
});

test('an error is of the same class in every entry', () => {
  expect(page.VarveError).toBe(entry.VarveError);
});

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
