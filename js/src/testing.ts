/**
 * `varve/testing`: for those who write a storage, the contract that it has to keep, as tests; for those who use one, a
 * storage in memory that loses power on demand.
 *
 * Invariant: no test framework is needed, and none is loaded.
 */

export { SlotError, type SlotErrorKind } from './storage/device.ts';
export { ContractError } from './testing/assert.ts';
export { storageContract } from './testing/contract.ts';
export { LossyStorage } from './testing/lossy-storage.ts';
export type { ContractOptions, DefineTest } from './testing/subject.ts';
