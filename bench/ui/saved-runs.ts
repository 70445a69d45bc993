/**
 * The runs that this browser keeps, in a Varve store of its own.
 *
 * Invariant: the store is open only for the length of a call, never while something is measured. A run and its line in the
 * list are written and deleted together. Key `['run', id]` has the result, `['info', id]` what the list shows; ids are the
 * dates of the runs, so the list is in order of time.
 */

import { open } from 'varve';
import type { Result } from '../core/report.ts';
import { resultOf } from './result-file.ts';

const NAME = 'bench-runs';

/** What the list says of a run. */
export interface RunInfo {
  readonly id: string;
  readonly name: string;
  /** ISO 8601. */
  readonly date: string;
  readonly rows: number;
  readonly suites: readonly string[];
  readonly userAgent: string;
}

type RunKey = ['info' | 'run', string];
type Store = Awaited<ReturnType<typeof open<RunKey, RunInfo | Result>>>;

/** All runs, newest first. */
export function listRuns(): Promise<RunInfo[]> {
  return withStore(async (store) => {
    const infos: RunInfo[] = [];
    for await (const info of store.values({ prefix: ['info'], reverse: true })) infos.push(info as RunInfo);
    return infos;
  });
}

/** Keeps a run under a name; one of the same date is replaced. */
export function saveRun(result: Result, name: string): Promise<RunInfo> {
  const { date, userAgent } = result.environment;
  const suites = [...new Set(result.rows.map(({ suite }) => suite))];
  const info: RunInfo = { id: date, name, date, rows: result.rows.length, suites, userAgent };
  return withStore(async (store) => {
    await store.batch().set(['info', info.id], info).set(['run', info.id], result).commit();
    return info;
  });
}

/** The result of a run. Throws an Error when it is not there any more. */
export function loadRun(id: string): Promise<Result> {
  return withStore(async (store) => {
    const kept = await store.get(['run', id]);
    if (kept === undefined) throw new Error('This run is not kept any more: another tab deleted it.');
    return resultOf(kept);
  });
}

/** Gives a run another name. */
export function renameRun(id: string, name: string): Promise<void> {
  return withStore(async (store) => {
    await store.update(['info', id], (info) => ({ ...(info as RunInfo), name }));
  });
}

/** Deletes a run. */
export function deleteRun(id: string): Promise<void> {
  return withStore(async (store) => {
    await store.batch().delete(['info', id]).delete(['run', id]).commit();
  });
}

let last: Promise<unknown> = Promise.resolve();

/** One call at a time has the store open. */
function withStore<T>(use: (store: Store) => Promise<T>): Promise<T> {
  const next = last.then(async () => {
    const store = await open<RunKey, RunInfo | Result>(NAME);
    try {
      return await use(store);
    } finally {
      await store.close();
    }
  });
  last = next.catch(() => undefined);
  return next;
}
