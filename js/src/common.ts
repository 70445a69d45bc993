/**
 * The common exports of every entry point that opens stores, besides the stores themselves.
 *
 * Invariant: one list, so that no entry point lacks a part of it.
 */

export type * from './api.ts';
export { bytes, json, structured, utf8 } from './codec/values.ts';
export type * from './encryption/types.ts';
export { type Conflict, VarveError, type VarveErrorCode } from './errors.ts';
export type * from './portable/types.ts';
export type { StorageAdapter } from './storage/adapter.ts';
export { SlotError, type SlotErrorKind } from './storage/device.ts';
export type * from './tools/types.ts';
export type * from './types.ts';
export type { WasmSource } from './wasm/compile.ts';
