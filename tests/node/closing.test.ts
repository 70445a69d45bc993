/** Closing when a part of it fails: this must not lock out the next caller that opens the store. */

import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { EngineHost } from '../../js/src/engine/engine-host.ts';
import { keySlots } from '../../js/src/engine/key-slots.ts';
import { SlotError } from '../../js/src/storage/device.ts';
import { MemoryDevice } from '../../js/src/storage/memory.ts';
import { SyncStore } from '../../js/src/synchronous/store.ts';
import { wasm } from './support/engine.ts';
import { FakeLocks } from './support/fake-opfs.ts';

/** A device under a lock, like the devices of browsers. */
class Locked extends MemoryDevice {
  override readonly kind = 'opfs' as never;
}

/** A device that fails when it is closed. */
class Stuck extends Locked {
  override async closeAll(): Promise<void> {
    await super.closeAll();
    throw new Error('cannot be closed');
  }
}

beforeEach(() => {
  vi.stubGlobal('navigator', { locks: new FakeLocks() });
});
afterEach(() => vi.unstubAllGlobals());

const opened = (device: MemoryDevice): Promise<EngineHost> =>
  EngineHost.open('stuck', { keySlots, wasm, device, lockTimeout: 0 });

test('a device that cannot be closed releases the lock', async () => {
  const host = await opened(new Stuck());
  await expect(host.close()).rejects.toThrow('cannot be closed');
  await (await opened(new Locked())).close();
});

test('a device that cannot be closed releases the lock of a store that did not open, and the error is reported', async () => {
  const device = new Stuck();
  vi.spyOn(device, 'read').mockImplementation(() => {
    throw new Error('no bytes');
  });
  device.write(0, new Uint8Array(8192).fill(7), 0);
  await expect(opened(device)).rejects.not.toThrow('cannot be closed');
  await (await opened(new Locked())).close();
});

// The story: the disk failed while a store was closed. The engine dropped the buffered writes and was poisoned, and the error of a poisoned
// store counts as known. So `close` resolved, and nobody heard that they were lost.
test.each(['write', 'flush'] as const)('a %s that fails while a store is closed fails the close', async (call) => {
  const device = new Locked();
  const store = new SyncStore(await opened(device), {}, undefined);
  store.set('kept', 1, { durability: 'strict' });
  store.set('lost', 2);
  const fail = (): never => {
    throw new SlotError('io', 'The disk is gone.');
  };
  Object.assign(device, { [call]: fail });
  await expect(store.close()).rejects.toMatchObject({ code: 'VARVE_IO' });
  await (await opened(new Locked())).close();
});
