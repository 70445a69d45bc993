/**
 * The statistics that the engine returns for a store, by name.
 *
 * Invariant: the order is that of `stats_numbers` in `crates/varve-wasm/src/control.rs`.
 */

import type { LevelStats, StoreStats } from '../types.ts';

/** How many numbers a level has: tables, bytes, entries, target, and score in thousandths. */
const LEVEL_NUMBERS = 5;

/** Names the engine's numbers. A time of 0 means never. */
export function statsOf(numbers: Float64Array): StoreStats {
  let at = 0;
  const next = (): number => numbers[at++] ?? 0;
  const writeAmplification = next();
  const sequence = next();
  const memtable = { entries: next(), bytes: next(), maxBytes: next(), frozen: next(), frozenBytes: next() };
  const log = { segments: next(), segmentBytes: next(), writtenBytes: next(), syncs: next() };
  const writes = next();
  const cache = { bytes: next(), maxBytes: next(), hits: next(), misses: next() };
  const filters = { filterChecks: next(), filterNegatives: next() };
  const indexBytes = next();
  const retainedBytes = next();
  const memoryBytes = next();
  const flush = { count: next(), writtenBytes: next(), lastAt: next() || undefined };
  const merges = { count: next(), readBytes: next(), writtenBytes: next(), droppedEntries: next() };
  const moves = { lastAt: next() || undefined, movedTables: next(), droppedTables: next() };
  const sweep = { running: next() !== 0, doneBytes: next(), plannedBytes: next() };
  const stalled = next() !== 0;
  const maxFrozen = next();
  const levelZero = { levelZeroTrigger: next(), levelZeroStall: next() };
  const diskBytes = next();
  const scans = next();
  const snapshots = next();
  const snapshotAge = next();
  const disk = { bytes: diskBytes, obsoleteFiles: next() };
  const epoch = next();
  const levels: LevelStats[] = [];
  for (; at < numbers.length; at += LEVEL_NUMBERS) {
    const [tables = 0, bytes = 0, entries = 0, targetBytes = 0, score = 0] = numbers.subarray(at, at + LEVEL_NUMBERS);
    levels.push({ tables, bytes, entries, targetBytes, score: score / 1000 });
  }
  return {
    ...{ epoch, sequence, writes, stalled, memoryBytes, log, flush, levels, disk, scans, snapshots },
    snapshotAge: snapshots === 0 ? undefined : snapshotAge,
    memtable: { ...memtable, maxFrozen, retainedBytes },
    compaction: { ...merges, ...moves, writeAmplification, ...levelZero, ...sweep },
    cache: { ...cache, indexBytes, ...filters },
  };
}
