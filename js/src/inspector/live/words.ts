/**
 * The engine in words: what the picture shows, and each thing that happened.
 * Invariant: everything visible in the picture can also be read here.
 */

import type { StoreStats } from '../../types.ts';
import { formatBytes, plural } from '../format.ts';
import type { EngineEvent } from './engine-events.ts';

/** The picture in sentences. */
export function summaryOf(stats: StoreStats): string {
  const {
    memtable: { bytes: memtableBytes, maxBytes: memtableBytesMax, frozen },
    log: { segmentBytes: walSegmentBytes, segments: walSegments },
    levels,
  } = stats;
  const part = Math.round((100 * memtableBytes) / Math.max(1, memtableBytesMax));
  const waiting =
    frozen === 0 ? '' : `, ${plural(frozen, 'frozen memtable waits', 'frozen memtables wait')} for a flush`;
  const log = `${plural(walSegments, 'log segment', 'log segments')}, the last of ${formatBytes(walSegmentBytes)}`;
  const tables = levels.flatMap(({ tables: count, bytes }, number) =>
    count === 0 ? [] : [`level ${number}: ${plural(count, 'table', 'tables')}, ${formatBytes(bytes)}`],
  );
  const rest = tables.length === 0 ? 'no tables yet' : tables.join('; ');
  return `Memtable ${part} % full${waiting}; ${log}; ${rest}.`;
}

/** An event in a sentence. */
export function sentenceOf(event: EngineEvent): string {
  switch (event.kind) {
    case 'flush':
      return `Flush: ${event.tables === 1 ? 'a memtable became a table' : `${event.tables} memtables became tables`} of level 0, ${formatBytes(event.bytes)} in all.`;
    case 'compaction': {
      const jobs = event.jobs === 1 ? 'Compaction' : `${event.jobs} compactions`;
      const from =
        event.from.length === 0 ? 'tables' : `${plural(event.tables, 'table', 'tables')} of ${levelsOf(event)}`;
      const left =
        event.dropped === 0 ? '' : `; ${plural(event.dropped, 'superseded entry', 'superseded entries')} left out`;
      const bytes = `${formatBytes(event.bytesRead)} read, ${formatBytes(event.bytesWritten)} written`;
      return `${jobs}: ${from} merged into level ${event.into}, ${bytes}${left}.`;
    }
    case 'move':
      return `${plural(event.tables, 'table', 'tables')} went down to level ${event.into} without being rewritten, because they overlapped nothing there.`;
    case 'drop':
      return `${plural(event.tables, 'table', 'tables')} dropped without being read, because a deleted range covers them.`;
    case 'cut':
      return `Log cut: ${plural(event.segments, 'segment', 'segments')} deleted. All entries in the log up to there are in tables now.`;
    case 'stall':
      return 'Writers wait: flushes or merges have to catch up.';
    case 'resume':
      return 'Writers continue.';
  }
}

function levelsOf({ from }: { readonly from: readonly number[] }): string {
  return from.length === 1 ? `level ${from[0]}` : `levels ${from.join(' and ')}`;
}

/** `3 tables, merged from 8 on, 1.3 MB`; shorter in a narrow picture. */
export function fullness(level: number, stats: StoreStats, isNarrow: boolean): string {
  const found = stats.levels[level];
  if (found === undefined) return '';
  const { tables, bytes, targetBytes: target, score } = found;
  if (level === 0) {
    const merged = isNarrow ? '' : `, merged from ${stats.compaction.levelZeroTrigger} on`;
    return `${plural(tables, 'table', 'tables')}${merged}, ${formatBytes(bytes)}`;
  }
  const of = target > 0 ? ` of ${formatBytes(target)}` : '';
  const due = score >= 1 ? ', compaction due' : '';
  return `${plural(tables, 'table', 'tables')}, ${formatBytes(bytes)}${of}${due}`;
}
