/**
 * `varve/storage-adapter`: the types for authors of a storage. `storageContract` of `varve/testing` tests such a storage.
 *
 * Invariant: types only. The error that a storage throws, `SlotError`, is in every entry point that opens stores.
 */

export type { LockOptions, StorageAdapter } from './storage/adapter.ts';
export type { CompactorPort, SpawnCompactor } from './storage/compactor-port.ts';
export type {
  DeferredDevice,
  DeviceCompactor,
  ManagedDevice,
  OutputGate,
  PinnedBytes,
  SlotDevice,
  SlotErrorKind,
} from './storage/device.ts';
