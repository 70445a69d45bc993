/**
 * The statistics that the engine returns for a store, by name.
 *
 * Invariant: the order is that of `stats_numbers` in `crates/varve-wasm/src/control.rs`.
 */

import type { LevelStats, StoreStats } from '../types.ts';

const NAMES = [
  'writeAmplification',
  'sequence',
  'memtableEntries',
  'memtableBytes',
  'memtableBytesMax',
  'frozen',
  'frozenBytes',
  'walSegments',
  'walSegmentBytes',
  'walBytes',
  'walSyncs',
  'writes',
  'cacheBytes',
  'cacheBytesMax',
  'cacheHits',
  'cacheMisses',
  'filterChecks',
  'filterNegatives',
  'residentBytes',
  'retainedBytes',
  'memoryBytesMax',
  'flushes',
  'flushBytes',
  'lastFlushAt',
  'compactions',
  'compactionBytesRead',
  'compactionBytesWritten',
  'entriesDropped',
  'lastCompactionAt',
  'moves',
  'drops',
  'compacting',
  'compactBytes',
  'compactBytesMax',
  'stalled',
  'frozenMax',
  'levelZeroTrigger',
  'levelZeroStall',
  'diskBytes',
  'cursors',
  'snapshots',
  'snapshotAge',
  'obsoleteFiles',
  'epoch',
] as const satisfies readonly (keyof StoreStats)[];

/** After these numbers come those of each level: tables, bytes, entries, target, and score in thousandths. */
const LEVEL_NUMBERS = 5;

/** Names the engine's numbers. */
export function statsOf(numbers: Float64Array): StoreStats {
  const stats = Object.fromEntries(NAMES.map((name, at) => [name, numbers[at] ?? 0])) as Record<
    (typeof NAMES)[number],
    number
  >;
  const levels: LevelStats[] = [];
  for (let at = NAMES.length; at < numbers.length; at += LEVEL_NUMBERS) {
    const [tables = 0, bytes = 0, entries = 0, target = 0, score = 0] = numbers.subarray(at, at + LEVEL_NUMBERS);
    levels.push({ tables, bytes, entries, target, score: score / 1000 });
  }
  return { ...stats, levels };
}
