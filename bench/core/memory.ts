/**
 * What a row says about memory: what the store holds in wasm, and the heap of JavaScript where the browser tells.
 *
 * Browsers tell no processor time to pages. The heap is Chromium's `performance.memory`, rounded by the browser: a figure to
 * see growth by, not to compare engines by.
 */

import type { Session, StoreNumbers } from './engine.ts';
import type { Row } from './rows.ts';

export type Memory = NonNullable<Row['memory']>;

interface HeapTelling {
  readonly memory?: { readonly usedJSHeapSize: number };
}

/** Bytes that a store holds in memory: memtables, cache, and the indexes and filters of open tables. */
export function heldBytes({ memtable, cache }: Pick<StoreNumbers, 'memtable' | 'cache'>): number {
  return memtable.bytes + memtable.frozenBytes + cache.bytes + cache.indexBytes;
}

/** Of this thread and this session, now; undefined when nothing is told. */
export async function memoryOf(session: Session): Promise<Memory | undefined> {
  const stats = await session.report?.();
  const heapBytes = (performance as HeapTelling).memory?.usedJSHeapSize;
  if (stats === undefined && heapBytes === undefined) return undefined;
  return {
    ...(stats && { wasmBytes: heldBytes(stats) }),
    ...(heapBytes !== undefined && { heapBytes }),
  };
}
