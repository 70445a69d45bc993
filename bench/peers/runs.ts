/**
 * The calls of a wave, as the runs that a library with bulk calls makes of them.
 *
 * Invariant: a run is a stretch of neighbours of one kind, so that runs that take effect in their order are the calls in
 * theirs: a get after a set of the same key in one wave finds what was set.
 */

import type { AsyncSession, PointCall } from '../core/engine.ts';
import type { Key } from '../core/generator.ts';

export interface Run {
  readonly kind: 'set' | 'get' | 'delete';
  /** The place of its first call in the wave. */
  readonly from: number;
  readonly keys: Key[];
  /** As many as keys where it sets; else none. */
  readonly values: Uint8Array[];
}

/** How a library makes each kind of run. */
export interface BulkCalls {
  set(run: Run): Promise<unknown>;
  get(run: Run): Promise<readonly (Uint8Array | undefined)[]>;
  delete(run: Run): Promise<unknown>;
}

/** Splits the calls of a wave into runs. */
export function runsOf(calls: readonly PointCall[]): Run[] {
  const runs: Run[] = [];
  let run: Run | undefined;
  calls.forEach(({ key, value }, from) => {
    const kind = value === undefined ? 'get' : value === null ? 'delete' : 'set';
    if (run?.kind !== kind) {
      run = { kind, from, keys: [], values: [] };
      runs.push(run);
    }
    run.keys.push(key);
    if (value) run.values.push(value);
  });
  return runs;
}

/**
 * Makes the calls of a wave as bulk calls that are all under way together. For libraries over IndexedDB, whose
 * transactions take effect in the order in which they are begun.
 */
export async function waveOfRuns(
  calls: readonly PointCall[],
  bulk: BulkCalls,
): Promise<readonly (Uint8Array | undefined)[]> {
  const values = new Array<Uint8Array | undefined>(calls.length);
  await Promise.all(
    runsOf(calls).map(async (run) => {
      if (run.kind !== 'get') {
        await bulk[run.kind](run);
        return;
      }
      const got = await bulk.get(run);
      for (let i = 0; i < got.length; i++) values[run.from + i] = got[i];
    }),
  );
  return values;
}

/** A wave of single calls that are all under way together. */
export function waveOfCalls({
  get,
  set,
  delete: remove,
}: Pick<AsyncSession, 'get' | 'set' | 'delete'>): AsyncSession['wave'] {
  const one = ({ key, value }: PointCall): Promise<Uint8Array | undefined> =>
    value === undefined ? get(key) : (value === null ? remove(key) : set(key, value)).then(nothing);
  return (calls) => Promise.all(calls.map(one));
}

const nothing = (): undefined => undefined;

/** How stores settle in which every write has been awaited: there is nothing to wait for. */
export const settled = async (): Promise<boolean> => true;
