/**
 * Chooses the storage of a store, and says why when it is not the one that was wanted.
 *
 * Invariant: never silent. Memory takes the place of OPFS only where the browser has or gives none; a store that is
 * locked, or an origin that is full, is an error instead, because memory would look like an empty store.
 */

import type { StorageReport } from '../types.ts';
import type { ManagedDevice } from './device.ts';
import { MemoryDevice } from './memory.ts';
import { OpfsDevice, type OpfsDeviceOptions } from './opfs.ts';
import { OpfsUnavailable } from './opfs-directory.ts';

/** The device of an open store, and what to tell about it. */
export interface OpenedDevice {
  readonly device: ManagedDevice;
  readonly report: StorageReport;
}

/** Opens the wanted storage, or memory with the reason. */
export async function openDevice(
  name: string,
  kind: 'opfs' | 'memory',
  options: OpfsDeviceOptions,
): Promise<OpenedDevice> {
  if (kind === 'memory') return { device: new MemoryDevice(), report: { kind: 'memory' } };
  try {
    return { device: await OpfsDevice.open(name, options), report: { kind: 'opfs' } };
  } catch (error) {
    if (!(error instanceof OpfsUnavailable)) throw error;
    return { device: new MemoryDevice(), report: { kind: 'memory', reason: error.message } };
  }
}
