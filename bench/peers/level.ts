/** The Level interface of browser-level and of classic-level on Node: `batch` and `getMany` for many calls. */

import type { AsyncSession, BatchEntries } from '../core/engine.ts';
import { type Run, settled, waveOfRuns } from './runs.ts';

type Operation = { type: 'put'; key: string; value: Uint8Array } | { type: 'del'; key: string };

interface LevelDb {
  put(key: string, value: Uint8Array, options: object): Promise<void>;
  get(key: string): Promise<Uint8Array | undefined>;
  getMany(keys: string[]): Promise<(Uint8Array | undefined)[]>;
  del(key: string, options: object): Promise<void>;
  clear(range: { readonly gte: string; readonly lt: string }): Promise<void>;
  batch(operations: Operation[], options: object): Promise<void>;
  iterator(range: { readonly gte?: string; readonly limit: number }): { all(): Promise<[string, Uint8Array][]> };
  close(): Promise<void>;
}

/** `own` are the calls that one of the two makes in another way, and `options` those of each write. */
export function levelSession(db: LevelDb, options = {}, own: Partial<AsyncSession> = {}): AsyncSession {
  const batch = ({ keys, values }: BatchEntries): Promise<void> => {
    const puts = keys.map((key, i): Operation => ({ type: 'put', key: key as string, value: values[i] as Uint8Array }));
    return db.batch(puts, options);
  };
  const remove = ({ keys }: Run): Promise<void> => {
    const operations = keys.map((key): Operation => ({ type: 'del', key: key as string }));
    return db.batch(operations, options);
  };
  return {
    kind: 'async',
    set: (key, value) => db.put(key as string, value, options),
    get: (key) => db.get(key as string),
    delete: (key) => db.del(key as string, options),
    deleteRange: (from, to) => db.clear({ gte: from as string, lt: to as string }),
    batch,
    range: async (from, limit, sink) => {
      const bounds = from === undefined ? {} : { gte: from as string };
      for (const [key, value] of await db.iterator({ ...bounds, limit }).all()) sink.take(key, value);
    },
    wave: waveOfRuns({ set: batch, get: ({ keys }) => db.getMany(keys as string[]), delete: remove }),
    settle: settled,
    close: () => db.close(),
    ...own,
  };
}
