// A store over a storage that commits later ends at any of its commits, over and over. The acknowledged writes are there, and the
// content is a prefix of history. `VARVE_CRASH_STORES` and `VARVE_CRASH_ROUNDS` set how many, `VARVE_SEED` which.

import { expect, test } from 'vitest';
import { open } from '../../js/src/index.ts';
import { read, write } from '../support/async-writer.ts';
import { History, type Plan } from '../support/history.ts';
import { numberFrom } from '../support/seed.ts';
import { ChunkAdapter } from './support/chunk-adapter.ts';
import { randomFrom, wasm } from './support/engine.ts';

const ROUNDS = numberFrom('VARVE_CRASH_ROUNDS', 4);
const SEED = numberFrom('VARVE_SEED', 1);

test.each(Array.from({ length: numberFrom('VARVE_CRASH_STORES', 2) }, (_, i) => SEED + i))(
  'a store that dies at some commit of every round (seed %i)',
  { timeout: 600_000 },
  async (seed) => {
    const random = randomFrom(seed);
    const storage = new ChunkAdapter();
    const history = new History();
    for (let round = 0; round < ROUNDS; round++) {
      const db = await open<number, unknown>('crashing', { storage, wasm, memoryBytes: 2 << 20 });
      const found = await read(db);
      const plan: Plan = { seed, round, sequence: found.sequence };
      let acknowledged = 0;
      const died = storage.chunks.dieAfter(1 + random(400));
      const writing = write(db, plan, Number.POSITIVE_INFINITY, (groups) => {
        acknowledged = groups;
      });
      writing.catch(() => undefined);
      await died;
      await writing.catch(() => undefined);
      await db.close().catch(() => undefined);
      const again = await open<number, unknown>('crashing', { storage, wasm, memoryBytes: 2 << 20 });
      const left = await read(again);
      history.survive(plan, acknowledged, left);
      storage.chunks.die();
      await again.close().catch(() => undefined);
    }
    expect(history.size).toBeGreaterThan(500);
  },
);
