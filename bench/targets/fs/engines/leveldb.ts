/**
 * LevelDB by classic-level, as its README has it: values as Uint8Arrays, `getSync` for single reads, `nextv` with room enough for
 * a range, `sync: true` where a write must be flushed. Compression stays at its default (Snappy).
 */

import { ClassicLevel } from 'classic-level';
import { versionOf } from '../../packages.ts';
import type { FileEngine } from '../engine.ts';

/** Bytes that a range may read at once: enough for all its entries. */
const RANGE_BYTES = 1 << 20;
/** After every key of the bench. */
const LAST = '\u{10ffff}';

/** LevelDB over files. */
export function leveldb(): FileEngine {
  return {
    name: 'leveldb',
    version: `classic-level ${versionOf('classic-level')}`,
    writes: { relaxed: 'sync: false, each awaited', strict: 'sync: true, each awaited' },
    open: async (directory, level) => {
      const db = new ClassicLevel<string, Uint8Array>(directory, { keyEncoding: 'utf8', valueEncoding: 'view' });
      await db.open();
      const options = { sync: level === 'strict' };
      return {
        set: (key, value) => db.put(key, value, options),
        get: (key) => db.getSync(key),
        delete: (key) => db.del(key, options),
        batch: (pairs) =>
          db.batch(
            pairs.map(([key, value]) => ({ type: 'put', key, value })),
            options,
          ),
        range: async (gte, limit) => {
          const iterator = db.iterator({ gte, limit, highWaterMarkBytes: RANGE_BYTES });
          try {
            return await iterator.nextv(limit);
          } finally {
            await iterator.close();
          }
        },
        deleteRange: (gte, lt) => db.clear({ gte, lt }),
        all: () => db.iterator(),
        settle: () => db.compactRange('', LAST),
        close: () => db.close(),
      };
    },
  };
}
