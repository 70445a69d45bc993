// An open call whose caller no longer waits. The engine runs in the caller's realm, so there is no worker to end.

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { open } from '../../js/src/index.ts';
import type { LockOptions } from '../../js/src/storage/adapter.ts';
import type { ManagedDevice } from '../../js/src/storage/device.ts';
import { LossyStorage } from '../../js/src/testing.ts';
import { wasm } from './support/engine.ts';

setFlagsFromString('--expose-gc');
const collectGarbage: () => void = runInNewContext('gc');
const PATIENT = { timeout: 30_000 };

/** A storage that opens when the test asks for it. */
class Slow extends LossyStorage {
  opens = 0;
  go: () => void = () => undefined;

  override async open(name: string, options: LockOptions): Promise<ManagedDevice> {
    this.opens++;
    await new Promise<void>((resolve) => {
      this.go = resolve;
    });
    return super.open(name, options);
  }
}

test('a store whose opening was aborted does not stay open', async () => {
  const storage = new Slow();
  const abort = new AbortController();
  const opening = open('left', { storage, wasm, signal: abort.signal });
  const rejected = expect(opening).rejects.toMatchObject({ name: 'AbortError' });
  await expect.poll(() => storage.opens, PATIENT).toBe(1);
  abort.abort();
  await rejected;
  storage.go();
  const again = open('left', { storage, wasm });
  await expect.poll(() => storage.opens, PATIENT).toBe(2);
  storage.go();
  const db = await again;
  await db.set('a', 1);
  await db.close();
});

test('a store whose opening was aborted before the engine was loaded is never opened', async () => {
  const storage = new Slow();
  const abort = new AbortController();
  const opening = open('left', { storage, wasm, signal: abort.signal });
  abort.abort();
  await expect(opening).rejects.toMatchObject({ name: 'AbortError' });
  const again = open('left', { storage, wasm });
  await expect.poll(() => storage.opens, PATIENT).toBeGreaterThan(0);
  storage.go();
  await (await again).close();
  expect(storage.opens).toBe(1);
});

test('a store that was closed releases its storage', async () => {
  let isCollected = false;
  const seen = new FinalizationRegistry(() => {
    isCollected = true;
  });
  await (async () => {
    const storage = new LossyStorage();
    seen.register(storage, undefined);
    const db = await open('closed', { storage, wasm });
    await db.set('a', 1);
    await db.close();
  })();
  await expect
    .poll(() => {
      collectGarbage();
      return isCollected;
    }, PATIENT)
    .toBe(true);
});
