/**
 * The storage report: what a loaded store of Varve's says about itself, and what its files really weigh.
 */

import type { StorageReport } from './plan.ts';
import type { Stage } from './stage.ts';
import { ABSENT } from './trace.ts';
import type { Suite } from './workloads.ts';

/** Closes the stage; of a store of Varve's it tells what is on disk. */
export async function storageReport(stage: Stage, suite: Suite): Promise<StorageReport | undefined> {
  const { engine, session, dataset, state, name } = stage;
  const stats = engine.role === 'varve' ? await session.report?.() : undefined;
  let diskBytes = 0;
  await stage.close(async () => {
    if (engine.filesOf !== undefined) diskBytes = await engine.filesOf(name);
  });
  if (stats === undefined) return undefined;
  const entries = state.reduce((count, value) => count + (value === ABSENT ? 0 : 1), 0);
  const logicalBytes = entries * (dataset.keyBytes + dataset.valueBytes);
  return {
    suite: suite.name,
    engine: engine.name,
    entries,
    logicalBytes,
    diskBytes,
    diskBytesPerLogicalByte: diskBytes / logicalBytes,
    stats,
  };
}
