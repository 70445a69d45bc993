/**
 * The work of an engine between two looks at it: flushes, compactions, tables that moved or were dropped, log that was cut.
 * Invariant: everything is derived from two `stats()`; it reports nothing that their difference does not show. Counts go back
 * to 0 where another tab took the store over: a difference below 0 is no event.
 */

import type { LevelStats, StoreStats } from '../../types.ts';

/** Something that happened between two looks. Bytes are bytes; tables and segments are counts. */
export type EngineEvent =
  /** Memtables were written to tables of level 0. */
  | { readonly kind: 'flush'; readonly tables: number; readonly bytes: number }
  /** Tables of the levels `from` were merged into the level `into`. */
  | {
      readonly kind: 'compaction';
      readonly jobs: number;
      readonly from: readonly number[];
      readonly into: number;
      /** Tables that left the levels `from`. */
      readonly tables: number;
      readonly bytesRead: number;
      readonly bytesWritten: number;
      /** Superseded and deleted entries left out, including those left out by flushes between the same two looks. */
      readonly dropped: number;
    }
  /** Tables moved a level down unchanged. */
  | { readonly kind: 'move'; readonly tables: number; readonly into: number }
  /** Tables that a deleted range covered were dropped without being read. */
  | { readonly kind: 'drop'; readonly tables: number }
  /** Log segments were deleted: all of their entries are in tables. */
  | { readonly kind: 'cut'; readonly segments: number }
  | { readonly kind: 'stall' }
  | { readonly kind: 'resume' };

const NO_LEVEL: LevelStats = { tables: 0, bytes: 0, entries: 0, targetBytes: 0, score: 0 };

/** The events between two looks, in the order of a write's way down. */
export function eventsBetween(before: StoreStats, after: StoreStats): EngineEvent[] {
  const events: EngineEvent[] = [];
  const flushes = rise(before.flush.count, after.flush.count);
  if (flushes > 0) {
    events.push({ kind: 'flush', tables: flushes, bytes: rise(before.flush.writtenBytes, after.flush.writtenBytes) });
  }
  const segments = rise(after.log.segments, before.log.segments);
  if (segments > 0) events.push({ kind: 'cut', segments });
  const moves = rise(before.compaction.movedTables, after.compaction.movedTables);
  const { from, into, tables } = ways(before, after, flushes);
  if (moves > 0) events.push({ kind: 'move', tables: moves, into });
  const jobs = rise(before.compaction.count, after.compaction.count);
  if (jobs > 0) {
    events.push({
      kind: 'compaction',
      jobs,
      from,
      into,
      tables,
      bytesRead: rise(before.compaction.readBytes, after.compaction.readBytes),
      bytesWritten: rise(before.compaction.writtenBytes, after.compaction.writtenBytes),
      dropped: rise(before.compaction.droppedEntries, after.compaction.droppedEntries),
    });
  }
  const drops = rise(before.compaction.droppedTables, after.compaction.droppedTables);
  if (drops > 0) events.push({ kind: 'drop', tables: drops });
  if (after.stalled !== before.stalled) events.push({ kind: after.stalled ? 'stall' : 'resume' });
  return events;
}

interface Ways {
  readonly from: number[];
  readonly into: number;
  readonly tables: number;
}

/** The levels that tables left, and the deepest one that changed. */
function ways(before: StoreStats, after: StoreStats, flushes: number): Ways {
  const from: number[] = [];
  let into = 0;
  let tables = 0;
  after.levels.forEach((level, number) => {
    const was = before.levels[number] ?? NO_LEVEL;
    const had = was.tables + (number === 0 ? flushes : 0);
    if (level.tables !== had || level.bytes !== was.bytes) into = number;
    if (level.tables < had) {
      from.push(number);
      tables += had - level.tables;
    }
  });
  // The target level of a merge had its tables rewritten: it is no source.
  const above = from.filter((number) => number < into);
  return { from: above.length > 0 ? above : from, into, tables };
}

function rise(from: number, to: number): number {
  return Math.max(0, to - from);
}
