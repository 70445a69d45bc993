/** The numbers that a Varve store reports about itself, and the size of its files. */

import type { Engine, Session, SessionOptions, StoreNumbers } from './engine.ts';
import type { Dataset } from './generator.ts';
import { ABSENT, type State } from './trace.ts';

/** A store is sealed, and lets go of files that it does not need, once it has been idle for a while. */
const IDLE_MS = 600;

/** A store at the end of a suite. */
export interface StorageReport {
  readonly suite: string;
  readonly engine: string;
  /** The store was flushed and compacted before the suite, which only read. */
  readonly compacted: boolean;
  readonly entries: number;
  readonly logicalBytes: number;
  /** Bytes of the store's files, as the file system counts them, after closing. */
  readonly diskBytes: number;
  /** Space amplification: those bytes for each byte of keys and values that is there. */
  readonly diskBytesPerLogicalByte: number;
  /** Bytes logged, flushed and compacted for each byte of keys and values that was written; null where none was. */
  readonly writeAmplification: number | null;
  /** Sorted runs that a read may have to visit: memtables, tables of level 0, levels below. */
  readonly readAmplification: number;
  readonly walSegments: number;
  readonly tablesPerLevel: readonly number[];
  /** Memtables, cache, and the indexes and filters of open tables. */
  readonly memoryBytes: number;
  /** Everything the store says about itself. */
  readonly stats?: Readonly<Record<string, unknown>>;
}

/** The store that is weighed. */
interface Weighed {
  readonly engine: Engine;
  readonly session: Session;
  readonly dataset: Dataset;
  readonly state: State;
  readonly name: string;
  readonly options: SessionOptions;
  close(between: () => Promise<void>): Promise<void>;
}

/** Closes the store; of a store of Varve's it answers with what is on disk. */
export async function storageReport(stage: Weighed, suite: string, load: string): Promise<StorageReport | undefined> {
  const { engine, session, dataset, state, name, options } = stage;
  const reports = engine.role === 'varve' && session.report !== undefined;
  if (reports) await new Promise((resolve) => setTimeout(resolve, IDLE_MS));
  const stats = reports ? await session.report?.() : undefined;
  let diskBytes = 0;
  await stage.close(async () => {
    // Files in memory or in a database cannot be weighed.
    const hasFiles = options.storage === undefined || options.storage === 'opfs';
    if (hasFiles && engine.disk !== undefined) diskBytes = (await engine.disk(name)).bytes;
  });
  const entries = state.reduce((sum, value) => sum + (value === ABSENT ? 0 : 1), 0);
  if (stats === undefined || entries === 0) return undefined;
  const entryBytes = dataset.keyBytes + dataset.valueBytes;
  const logicalBytes = entries * entryBytes;
  const tablesPerLevel = stats.levels.map(({ tables }) => tables);
  const [overlapping = 0, ...sorted] = tablesPerLevel;
  return {
    suite,
    compacted: load === 'tables',
    engine: engine.name,
    entries,
    logicalBytes,
    diskBytes,
    diskBytesPerLogicalByte: diskBytes / logicalBytes,
    writeAmplification: stats.writes === 0 ? null : writtenBytes(stats) / (stats.writes * entryBytes),
    readAmplification: 1 + stats.memtable.frozen + overlapping + sorted.filter((tables) => tables > 0).length,
    walSegments: stats.log.segments,
    tablesPerLevel,
    memoryBytes: heldBytes(stats),
    stats,
  };
}

/** Bytes that a store has written since it was opened: logged, flushed and merged. */
export function writtenBytes({ log, flush, compaction }: StoreNumbers): number {
  return log.writtenBytes + flush.writtenBytes + compaction.writtenBytes;
}

/** Bytes that a store holds in memory: memtables, cache, and the indexes and filters of open tables. */
export function heldBytes({ memtable, cache }: Pick<StoreNumbers, 'memtable' | 'cache'>): number {
  return memtable.bytes + memtable.frozenBytes + cache.bytes + cache.indexBytes;
}
