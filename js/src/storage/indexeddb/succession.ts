/**
 * The next holder of a store, as the keys of its journal show it: see `chunk-store.ts`.
 *
 *     epoch 1   [1,1] ... [1,17] [1,18]      rows of commits, and the fence that epoch 2 added
 *     epoch 2   [2,1]                        it committed nothing
 *     epoch 3   [3,0]                        nothing yet
 *
 * Invariant: rows of commits are never outdated, however long ago they were added: only a commit that folds the journal removes them.
 */

/** Epoch and number of a row. */
export type RowKey = [number, number];

/** How many former holders are kept out for good. */
const FENCES_MAX = 256;
/** So many fences are read with the rows of commits around them: another request would take longer. */
const FENCES_READ_MAX = 8;

/** The work of the next holder. */
export interface Succession {
  /** The last row; undefined for a new store. */
  readonly last: RowKey | undefined;
  readonly epoch: number;
  /** The rows that keep others out. */
  readonly fences: RowKey[];
  /** Earlier epochs with rows of commits, each with the number of its fence. */
  readonly earlier: RowKey[];
  /** The first and the last epoch of each part of the journal with such rows. */
  readonly parts: readonly [number, number][];
  /** The rows that can be removed: fences of holders that are no longer kept out, and one that the epoch does not need any more. */
  readonly outdated: readonly RowKey[];
}

/** The succession to the holder that added the last of these keys. They are sorted. */
export function successionTo(keys: readonly RowKey[]): Succession {
  const last = keys.at(-1);
  if (last === undefined) return { last, epoch: 1, fences: [[1, 0]], earlier: [], parts: [], outdated: [] };
  const epoch = last[0] + 1;
  const fence: RowKey = [last[0], last[1] + 1];
  const earlier: RowKey[] = [];
  const outdated: RowKey[] = [[last[0], 0]];
  for (let i = 0, first = 0; i < keys.length; i++) {
    const [one, number] = keys[i] as RowKey;
    if (keys[i + 1]?.[0] === one) continue;
    // An epoch that has nothing left but its fence has one row.
    if (one === last[0]) earlier.push(fence);
    else if (i > first) earlier.push([one, number]);
    else if (one < epoch - FENCES_MAX) outdated.push([one, number]);
    first = i + 1;
  }
  const parts: [number, number][] = [];
  for (const [one] of earlier) {
    // Its last holder committed nothing.
    if (one === last[0] && last[1] === 0) continue;
    const part = parts.at(-1);
    if (part !== undefined && one - part[1] <= FENCES_READ_MAX) part[1] = one;
    else parts.push([one, one]);
  }
  return { last, epoch, fences: [fence, [epoch, 0]], earlier, parts, outdated };
}
