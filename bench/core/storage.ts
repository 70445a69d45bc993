/**
 * The storage report: what a loaded store of Varve's says about itself, and what its files really weigh.
 */

import type { StoreNumbers } from './engine.ts';
import { heldBytes } from './memory.ts';
import type { StorageReport } from './plan.ts';
import type { Stage } from './stage.ts';
import { ABSENT } from './trace.ts';
import type { Suite } from './workloads.ts';

/** A store is sealed, and lets go of files that it does not need, once it has been idle for a while. */
const IDLE_MS = 600;

/** Closes the stage; of a store of Varve's it tells what is on disk. */
export async function storageReport(stage: Stage, suite: Suite): Promise<StorageReport | undefined> {
  const { engine, session, dataset, state, name, options } = stage;
  const reports = engine.role === 'varve' && session.report !== undefined;
  if (reports) await new Promise((resolve) => setTimeout(resolve, IDLE_MS));
  const stats = reports ? await session.report?.() : undefined;
  let diskBytes = 0;
  await stage.close(async () => {
    // Where the files are in memory, or in a database, nobody weighs them.
    const hasFiles = options.storage === undefined || options.storage === 'opfs';
    if (hasFiles && engine.disk !== undefined) diskBytes = (await engine.disk(name)).bytes;
  });
  const entries = state.reduce((count, value) => count + (value === ABSENT ? 0 : 1), 0);
  if (stats === undefined || entries === 0) return undefined;
  const logicalBytes = entries * (dataset.keyBytes + dataset.valueBytes);
  return {
    suite: suite.name,
    compacted: suite.load === 'tables',
    engine: engine.name,
    entries,
    logicalBytes,
    diskBytes,
    diskBytesPerLogicalByte: diskBytes / logicalBytes,
    ...figuresOf(stats, dataset.keyBytes + dataset.valueBytes),
    stats,
  };
}

/** How a store is doing, by its own numbers. */
export function amplificationOf(
  stats: StoreNumbers,
  { dataset, state }: Pick<Stage, 'dataset' | 'state'>,
): { write: number; read: number; space: number | undefined } {
  const entryBytes = dataset.keyBytes + dataset.valueBytes;
  const { writeAmplification, readAmplification } = figuresOf(stats, entryBytes);
  const entries = state.reduce((count, value) => count + (value === ABSENT ? 0 : 1), 0);
  const diskBytes = stats.disk.bytes;
  return {
    write: writeAmplification ?? 0,
    read: readAmplification,
    space: entries > 0 ? diskBytes / (entries * entryBytes) : undefined,
  };
}

/** Bytes that a store has written since it was opened: logged, flushed and merged. */
export function writtenBytes({ log, flush, compaction }: StoreNumbers): number {
  return log.writtenBytes + flush.writtenBytes + compaction.writtenBytes;
}

type Figures = Pick<
  StorageReport,
  'writeAmplification' | 'readAmplification' | 'walSegments' | 'tablesPerLevel' | 'memoryBytes'
>;

function figuresOf(stats: StoreNumbers, entryBytes: number): Figures {
  const tablesPerLevel = stats.levels.map(({ tables }) => tables);
  const [overlapping = 0, ...sorted] = tablesPerLevel;
  return {
    writeAmplification: stats.writes === 0 ? null : writtenBytes(stats) / (stats.writes * entryBytes),
    readAmplification: 1 + stats.memtable.frozen + overlapping + sorted.filter((tables) => tables > 0).length,
    walSegments: stats.log.segments,
    tablesPerLevel,
    memoryBytes: heldBytes(stats),
  };
}
