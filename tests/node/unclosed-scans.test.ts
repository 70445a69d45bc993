// Scans that are left open when their synchronous store is closed. Later the number of the store in the engine, and the numbers of its
// scans, belong to another store. The garbage collection of such a scan once ended a scan of the other store. So did a scan that was left
// early, and an export.

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test, vi } from 'vitest';
import { SlotError } from '../../js/src/storage/device.ts';
import { open } from '../../js/src/synchronous.ts';
import type { KeyCodec } from '../../js/src/types.ts';
import { wasm } from './support/engine.ts';
import { KeptDevices } from './support/kept-devices.ts';

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

/**
 * The story: in the engine a scan that failed stays open. A loop, a count or an export over a table that could not be read left its scan
 * behind, and so did a loop whose key codec threw. Each kept its tables until the store was closed.
 */
test('a scan that fails is closed', async () => {
  const storage = new KeptDevices();
  const opening = vi.spyOn(storage, 'open');
  let isPicky = true;
  const keys: KeyCodec<number> = {
    name: 'picky',
    encode: (key) => key,
    decode: (key) => {
      if (isPicky) throw new RangeError('no key');
      return key as number;
    },
  };
  const options = { storage, wasm, keys, memoryBytes: 2 ** 20, compactor: false };
  const db = await open<number, Uint8Array>('failing', options);
  for (let i = 0; i < 20_000; i++) db.set(i, crypto.getRandomValues(new Uint8Array(200)));
  await db.compact();
  expect(() => db.keys()).toThrow();
  expect(db.stats().scans).toBe(0);
  isPicky = false;
  const device = await (opening.mock.results[0]?.value as ReturnType<KeptDevices['open']>);
  const reading = vi.spyOn(device, 'read').mockImplementation(() => {
    throw new SlotError('io', 'EIO');
  });
  const unreadable = expect.objectContaining({ code: 'VARVE_IO' });
  expect(() => [...db.values()]).toThrow(unreadable);
  expect(db.stats().scans).toBe(0);
  expect(() => db.count()).toThrow(unreadable);
  expect(db.stats().scans).toBe(0);
  await expect(new Response(db.export()).arrayBuffer()).rejects.toThrow(unreadable);
  await expect.poll(() => db.stats().scans, { timeout: 30_000 }).toBe(0);
  reading.mockRestore();
  await db.close();
});
