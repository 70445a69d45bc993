// A program checks, flushes and compacts its stores while it uses them. Nothing is refused, every check finds a sound store, and all
// written entries are there. Each store is open for a second and is opened again. `VARVE_UPKEEP_SECONDS` sets the time in each storage,
// `VARVE_SEED` the writes.

import { EventEmitter, once } from 'node:events';
import { afterEach, expect, test, vi } from 'vitest';
import type { AnyStore } from '../support/api/singles.ts';
import { randomFrom } from '../support/random.ts';
import { numberFrom, runSeed } from '../support/seed.ts';
import { tools } from './support/engine.ts';
import { filePlace, indexedDbPlace, type NodePlace, opfsPlace } from './support/places.ts';

const SECONDS = numberFrom('VARVE_UPKEEP_SECONDS', 3);
const SESSION_MS = 1000;
const KEYS = 300;
const BATCH_MAX = 40;
const BYTES_MAX = 3000;
const COMMITS_MAX = 3;
const SPEC = { memoryBytes: 2 ** 20, durability: 'relaxed', cache: false } as const;
const PLACES = { files: filePlace, indexeddb: indexedDbPlace, opfs: opfsPlace };

const seed = runSeed('js', 'upkeep');
let place: NodePlace | undefined;

afterEach(() => {
  place?.end();
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

test.each(['files', 'indexeddb', 'opfs'] as const)(
  'a store is kept up while it is used: %s',
  {
    timeout: 60_000 + 2000 * SECONDS,
  },
  async (storage) => {
    const here = PLACES[storage]();
    place = here;
    const random = randomFrom(seed);
    const expected = new Map<string, Uint8Array>();
    const end = performance.now() + SECONDS * 1000;
    do {
      const db = await here.open('kept up', SPEC, {});
      expect(await all(db)).toEqual(expected);
      const sessionEnd = Math.min(end, performance.now() + SESSION_MS);
      const commits = new EventEmitter();
      let isOver = false;
      const until = async (step: () => Promise<unknown>): Promise<void> => {
        while (performance.now() < sessionEnd) await step();
      };
      const write = async (): Promise<void> => {
        const key = (): string => `key ${random(KEYS)}`;
        const entry = (): [string, Uint8Array] => [key(), new Uint8Array(random(BYTES_MAX)).fill(random(256))];
        const entries = Array.from({ length: 1 + random(BATCH_MAX) }, entry);
        const gone = key();
        await Promise.all([db.setMany(entries), db.delete(gone)]);
        for (const [name, value] of entries) expected.set(name, value);
        expected.delete(gone);
        commits.emit('commit');
      };
      const writing = until(write).finally(() => {
        isOver = true;
        commits.emit('commit');
      });
      const check = async (): Promise<void> => expect((await db.check({ tools })).problems).toEqual([]);
      const now = (call: 'flush' | 'compact') => async (): Promise<void> => {
        await db[call]();
        for (let left = random(COMMITS_MAX); left > 0 && !isOver; left--) await once(commits, 'commit');
      };
      await Promise.all([writing, until(check), until(check), until(now('flush')), until(now('compact'))]);
      await db.close();
    } while (performance.now() < end);
  },
);

async function all(db: AnyStore): Promise<Map<unknown, unknown>> {
  const found = new Map<unknown, unknown>();
  for await (const [key, value] of db.entries()) found.set(key, value);
  return found;
}
