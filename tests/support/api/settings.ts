// The model fuzz over one place: how long, from which seed, and how a failure is reproduced.

import fc from 'fast-check';
import { numberFrom } from '../seed.ts';
import { histories, type Limits } from './arbitrary.ts';
import type { History } from './history.ts';

/** Seconds of a run over all places, by default. */
const SECONDS = 60;
/** The time limit for making a failure smaller, in seconds. */
const SHRINKING_S = 120;

/** A place, its share of the time in hundredths, and the features of its histories. */
export interface FuzzedPlace extends Limits {
  readonly name: string;
  readonly hundredths: number;
}

/**
 * Runs histories until the time is over: at least one, each from a seed of its own. Throws when one fails, with the smallest history that
 * fails. `VARVE_API_SECONDS` and `VARVE_API_SEED` set how long and from which seed. With `VARVE_API_PLACE` one place alone runs for the
 * whole time. With `VARVE_API_PATH` only one history of the seed runs, already made smaller. `VARVE_API_SHRINK_SECONDS` is how long a
 * failure is made smaller.
 */
export async function fuzz(place: FuzzedPlace, run: (history: History) => Promise<void>): Promise<void> {
  const { VARVE_API_PLACE: wanted, VARVE_API_PATH: path } = process.env;
  if (wanted !== undefined && wanted !== place.name) return;
  const first = numberFrom('VARVE_API_SEED', Math.floor(Math.random() * 2 ** 30));
  const seconds = numberFrom('VARVE_API_SECONDS', SECONDS) * (wanted === undefined ? place.hundredths / 100 : 1);
  const end = performance.now() + seconds * 1000;
  let seed = first;
  do await fuzzOnce(place, { seed, path }, run);
  while (path === undefined && ++seed && performance.now() < end);
  console.log(`${place.name}: histories of the seeds from ${first} to before ${seed}`);
}

async function fuzzOnce(
  place: FuzzedPlace,
  { seed, path }: { seed: number; path: string | undefined },
  run: (history: History) => Promise<void>,
): Promise<void> {
  let failedAt: number | undefined;
  const shrinkingMs = numberFrom('VARVE_API_SHRINK_SECONDS', SHRINKING_S) * 1000;
  const property = fc.asyncProperty(histories(place), async (history) => {
    // It looks for no smaller ones after that.
    if (failedAt !== undefined && performance.now() > failedAt + shrinkingMs) return;
    try {
      await run(history);
    } catch (error) {
      failedAt ??= performance.now();
      throw error;
    }
  });
  // Neighbouring seeds of fast-check's generator begin alike.
  const mixed = Math.imul(seed ^ (seed >>> 15), 0x9e3779b1) | 0;
  const parameters = { seed: mixed, numRuns: 1, ...(path === undefined ? {} : { path, endOnFailure: true }) };
  const { failed, counterexample, counterexamplePath, errorInstance, numShrinks } = await fc.check(
    property,
    parameters,
  );
  if (!failed) return;
  const again = `npm run fuzz -- --api --place ${place.name} --seed ${seed} --path ${counterexamplePath}`;
  const message = errorInstance instanceof Error ? errorInstance.message : String(errorInstance);
  throw new Error(
    `${message}\nMade smaller ${numShrinks} times. Once more: ${again}\n${JSON.stringify(counterexample?.[0])}`,
    { cause: errorInstance },
  );
}
