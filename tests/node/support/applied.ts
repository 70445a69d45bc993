/** A copy of a store with numbers as keys, kept by its changes. */

import type { Change } from '../../../js/src/changes/types.ts';
import type { Key } from '../../../js/src/types.ts';

/** Applies a change that is no gap. */
export function applied(entries: Map<number, unknown>, change: Exclude<Change<Key, unknown>, { type: 'gap' }>): void {
  if (change.type === 'set') entries.set(change.key as number, change.value);
  else if (change.type === 'delete') entries.delete(change.key as number);
  else {
    const { gt = -1, gte = -1, lt = 1e9, lte = 1e9 } = change.range as Record<string, number>;
    const isGone = (key: number): boolean => key > gt && key >= gte && key < lt && key <= lte;
    for (const key of [...entries.keys()].filter(isGone)) entries.delete(key);
  }
}

/** The entries of a copy in the order of their keys. */
export function inOrder(entries: ReadonlyMap<number, unknown>): [number, unknown][] {
  return [...entries].sort(([a], [b]) => a - b);
}
