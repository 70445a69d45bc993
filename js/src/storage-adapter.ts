/**
 * `varve/storage-adapter`: the types for authors of a storage. `storageContract` of `varve/testing` tests such a storage.
 *
 * Invariant: types only. The error that a storage throws, `SlotError`, is in every entry point that opens stores.
 */

export type { LockOptions, StorageAdapter } from './storage/adapter.ts';
export type { CompactorPort, SpawnCompactor } from './storage/compactor-port.ts';
export type {
  DeviceCompactor,
  HeldBytes,
  ManagedDevice,
  OutputGate,
  SettlingDevice,
  SlotDevice,
  SlotErrorKind,
} from './storage/device.ts';
