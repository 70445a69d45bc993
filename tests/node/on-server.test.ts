/** Opening a store on a server without a location: the error says what to do, whatever else is missing there. */

import { expect, test } from 'vitest';
import { open } from '../../js/src/index.ts';
import * as inline from '../../js/src/inline.ts';
import { MemoryDevice } from '../../js/src/storage/memory.ts';
import * as sync from '../../js/src/synchronous.ts';
import { wasm } from './support/engine.ts';

const refusal = {
  name: 'VarveError',
  code: 'VARVE_UNSUPPORTED',
  message: expect.stringMatching(/^This is a server.* Open it in the browser.* files\(\) of varve\/fs/),
};
/** A place where no bundler has put the engine. */
const nowhere = new URL('file:///nowhere/varve.wasm');

// This test is first: a module that was compiled once is not looked for again.
test('the error names the server, not the WebAssembly that is missing there', async () => {
  await expect(open('notes', { wasm: nowhere })).rejects.toMatchObject(refusal);
  await expect(inline.open('notes', { wasm: nowhere })).rejects.toMatchObject(refusal);
  await expect(open('notes', { wasm: nowhere, storage: 'memory' })).rejects.toMatchObject({
    code: 'VARVE_UNSUPPORTED',
    message: expect.stringContaining('WebAssembly could not be loaded'),
  });
});

test.each([
  ['varve', open],
  ['varve/inline', inline.open],
  ['varve/synchronous', sync.open],
] as const)('%s makes no store in memory that requests would share', async (_, openIt) => {
  await expect(openIt('notes', { wasm })).rejects.toMatchObject(refusal);
  await expect(openIt('notes', { wasm, storage: 'opfs' })).rejects.toMatchObject(refusal);
  const db = await openIt('notes', { wasm, storage: 'memory' });
  expect(db.storage).toEqual({ kind: 'memory' });
  await db.close();
  const storage = {
    kind: 'own',
    open: async () => new MemoryDevice(),
    list: async () => [],
    delete: async () => false,
  };
  const own = await openIt('notes', { wasm, storage });
  expect(own.storage).toEqual({ kind: 'own' });
  await own.close();
});
