/**
 * The calls of a wave, as the runs that a library with bulk calls makes of them.
 *
 * Invariant: a run has neighbours of one kind. So runs that take effect in their order have the effect of the calls in theirs:
 * a get after a set of the same key in one wave finds the new value.
 */

import type { AsyncSession, BatchEntries, PointCall } from '../core/engine.ts';
import type { Key } from '../core/generator.ts';

export interface Run {
  readonly kind: 'set' | 'get' | 'delete';
  readonly from: number;
  readonly keys: Key[];
  readonly values: Uint8Array[];
}

interface BulkCalls {
  set(run: Run): Promise<unknown>;
  get(run: Run): Promise<readonly (Uint8Array | undefined)[]>;
  delete(run: Run): Promise<unknown>;
}

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
 * A wave as bulk calls that are all under way together. For libraries over IndexedDB, whose transactions take effect in the
 * order in which they begin.
 */
export const waveOfRuns =
  (bulk: BulkCalls): AsyncSession['wave'] =>
  async (calls) => {
    const values = new Array<Uint8Array | undefined>(calls.length);
    const make = async (run: Run): Promise<void> => {
      if (run.kind !== 'get') return void (await bulk[run.kind](run));
      const got = await bulk.get(run);
      for (let i = 0; i < got.length; i++) values[run.from + i] = got[i];
    };
    await Promise.all(runsOf(calls).map(make));
    return values;
  };

type Points = Pick<AsyncSession, 'get' | 'set' | 'delete'>;

export function waveOfCalls({ get, set, delete: remove }: Points): AsyncSession['wave'] {
  const one = ({ key, value }: PointCall): Promise<Uint8Array | undefined> =>
    value === undefined ? get(key) : (value === null ? remove(key) : set(key, value)).then(() => undefined);
  return (calls) => Promise.all(calls.map(one));
}

export const setsOf = ({ keys, values }: BatchEntries): PointCall[] =>
  keys.map((key, i) => ({ key, value: values[i] as Uint8Array }));

/** A transaction as calls of a wave; the first answers are its result. */
export const getsThenSets = (entries: BatchEntries): PointCall[] => [
  ...entries.keys.map((key) => ({ key, value: undefined })),
  ...setsOf(entries),
];

/** For stores in which every write was awaited: there is nothing to wait for. */
export const settled = async (): Promise<boolean> => true;
