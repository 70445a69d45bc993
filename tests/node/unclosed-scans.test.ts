// Scans that are left open when their synchronous store is closed. Later the number of the store in the engine, and the numbers of its
// scans, belong to another store. The garbage collection of such a scan once ended a scan of the other store. So did a scan that was left
// early, and an export.

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { open } from '../../js/src/synchronous.ts';
import { wasm } from './support/engine.ts';

setFlagsFromString('--expose-gc');
const collectGarbage: () => void = runInNewContext('gc');

async function opened(name: string) {
  const db = await open<number, Uint8Array>(name, { storage: 'memory', wasm, compactor: false });
  for (let i = 0; i < 5000; i++) db.set(i, new Uint8Array(200));
  return db;
}

test('the garbage collection of a scan and its store does not affect scans of other stores', async () => {
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
  // Finalizers of one garbage collection run in separate turns.
  for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve));
  expect([...scan].length).toBe(4999);
  await second.close();
});

test('a scan that is left after its store was closed does not affect scans of other stores', async () => {
  const first = await opened('first');
  const left = first.keys();
  left.next();
  await first.close();
  const second = await opened('second');
  const scan = second.keys();
  scan.next();
  left.return?.();
  expect([...scan].length).toBe(4999);
  await second.close();
});

test('an export whose store was closed does not affect scans of other stores', async () => {
  const first = await opened('first');
  const reader = first.export().getReader();
  // The export waits with its snapshot until somebody reads.
  await expect.poll(() => first.stats().snapshots, { timeout: 30_000 }).toBe(1);
  await first.close();
  const second = await opened('second');
  const scan = second.keys();
  scan.next();
  const rest = async (): Promise<void> => {
    while (!(await reader.read()).done);
  };
  await expect(rest()).rejects.toMatchObject({ code: 'VARVE_CLOSED' });
  expect([...scan].length).toBe(4999);
  await second.close();
});

test('a compaction whose store is closed fails with VARVE_CLOSED', async () => {
  const first = await opened('first');
  const compacting = first.compact();
  const rejected = expect(compacting).rejects.toMatchObject({ code: 'VARVE_CLOSED' });
  await first.close();
  await rejected;
});
