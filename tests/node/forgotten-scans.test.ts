// A synchronous scan that was forgotten and whose store was closed: its number in the engine is another store's by then. Collecting
// it once ended a scan of that store.

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { open } from '../../js/src/sync.ts';
import { wasm } from './support/engine.ts';

setFlagsFromString('--expose-gc');
const collectGarbage: () => void = runInNewContext('gc');

async function opened(name: string) {
  const db = await open<number, Uint8Array>(name, { storage: 'memory', wasm, compactor: false });
  for (let i = 0; i < 5000; i++) db.set(i, new Uint8Array(200));
  return db;
}

test('a scan forgotten with its store leaves scans of other stores alone', async () => {
  const first = await opened('first');
  let isCollected = false;
  const seen = new FinalizationRegistry(() => {
    isCollected = true;
  });
  (() => {
    const forgotten = first.keys();
    forgotten.next();
    seen.register(forgotten, undefined);
  })();
  await first.close();
  const second = await opened('second');
  const scan = second.keys();
  scan.next();
  await expect
    .poll(
      () => {
        collectGarbage();
        return isCollected;
      },
      { timeout: 30_000 },
    )
    .toBe(true);
  // Finalizers of one collection run in turns of their own.
  for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve));
  expect([...scan].length).toBe(4999);
  await second.close();
});
