/**
 * `varve/testing`: for authors of a storage adapter, tests of the contract that an adapter must keep; for users of the library, a
 * storage in memory that loses power on demand.
 *
 * Invariant: no test framework is needed, and none is loaded.
 */

export { SlotError, type SlotErrorKind } from './storage/device.ts';
export { ContractError } from './testing/assert.ts';
export { storageContract } from './testing/contract.ts';
export { LossyStorage } from './testing/lossy-storage.ts';
export type { ContractOptions, DefineTest } from './testing/subject.ts';
export type { WasmSource } from './wasm/compile.ts';
