/**
 * The common exports of every entry point that opens stores, besides the stores themselves.
 *
 * Invariant: one list, so that no entry point lacks a part of it.
 */

export { bytes, json, structured, utf8 } from './codec/values.ts';
export { type Conflict, VarveError, type VarveErrorCode } from './errors.ts';
export type {
  ExportedBytes,
  ExportOptions,
  ImportOptions,
  ImportReport,
  ImportSource,
  PortableProgress,
} from './portable/types.ts';
export type { StorageAdapter } from './storage/adapter.ts';
export { SlotError, type SlotErrorKind } from './storage/device.ts';
export type {
  CheckOptions,
  CheckProblem,
  CheckProblemKind,
  CheckReport,
  LostPart,
  RepairReport,
  ToolsOptions,
  ToolsProgress,
} from './tools/types.ts';
export type {
  CompactionStats,
  CompactOptions,
  CompactProgress,
  Condition,
  CountOptions,
  DeleteKeyOptions,
  DiskStats,
  Durability,
  Entry,
  FlushStats,
  Key,
  KeyCodec,
  KeyRange,
  LevelStats,
  Lifetime,
  LogStats,
  MemtableStats,
  OriginStorage,
  Receipt,
  RecoveryReport,
  ScanOptions,
  SetItemOptions,
  SetOptions,
  SharingReport,
  StorageKind,
  StorageReport,
  StoreStats,
  TableCacheStats,
  TransactionOptions,
  UpdateLifetime,
  UpdateOptions,
  UpgradeVersions,
  ValueCodec,
  WaitOptions,
  WriteOptions,
} from './types.ts';
