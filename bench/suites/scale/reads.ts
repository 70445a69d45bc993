/**
 * Reads while a compaction runs, beside reads while none does.
 *
 * A get returns inside its turn, so a compaction can slow it by competing for processor, caches and disk; between turns it
 * also takes the worker's time: the engine reads inputs for the compactor and installs its results. Both are measured:
 * the time of each get, and how long a turn that was let go of took to come back.
 *
 * Invariant: quiet and compacting spells take turns in one run, over the same keys; a spell is as long as the compaction.
 */

import type { SyncStore } from 'varve/synchronous';
import { now, turn } from '../../core/clock.ts';
import { isValueFor, keyOf, randomBelow, valueFor } from './pairs.ts';

type Store = SyncStore<Uint8Array, Uint8Array>;

const ROUNDS = 3;
/** Keys that are written anew before each compaction, so that it has something to do. */
const REWRITTEN = 50_000;
/** Gets between two turns. */
const BURST = 200;
/** A quiet spell lasts at least so long. */
const SPELL_MS = 1500;

/** Times in milliseconds: of gets, and of turns that were let go of. */
export interface Spell {
  readonly phase: string;
  readonly gets: number[];
  readonly turns: number[];
}

/** Gets random keys until `isOver`, each timed. */
async function readUntil(store: Store, random: () => number, isOver: () => boolean, times: Spell): Promise<void> {
  while (!isOver()) {
    for (let i = 0; i < BURST; i++) {
      const number = random();
      const key = keyOf(number);
      const started = now();
      const value = store.get(key);
      times.gets.push(now() - started);
      if (!isValueFor(value, number)) throw new Error('A read beside a compaction was wrong.');
    }
    const left = now();
    await turn();
    times.turns.push(now() - left);
  }
}

/** Two spells: quiet, and beside compactions. */
export async function readsBesideCompaction(
  store: Store,
  pairs: number,
  progress: (text: string) => void,
): Promise<Spell[]> {
  const quiet: Spell = { phase: 'get, quiet', gets: [], turns: [] };
  const busy: Spell = { phase: 'get, while compacting', gets: [], turns: [] };
  const random = randomBelow(pairs, 11);
  let busy_ms = SPELL_MS;
  for (let round = 0; round < ROUNDS; round++) {
    progress(`reads beside a compaction, round ${round + 1}`);
    for (let i = 0; i < REWRITTEN; i++) {
      const number = random();
      store.set(keyOf(number), valueFor(number));
      if (i % BURST === 0) await turn();
    }
    store.commit();
    const end = now() + busy_ms;
    await readUntil(store, random, () => now() > end, quiet);
    let isDone = false;
    const compacting = store.compact().finally(() => {
      isDone = true;
    });
    const started = now();
    await readUntil(store, random, () => isDone, busy);
    await compacting;
    busy_ms = Math.max(SPELL_MS, now() - started);
  }
  return [quiet, busy];
}
