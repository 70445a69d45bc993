// Opening the store of the cities, and the parameters in the address.
// Invariant: a store that is open elsewhere without being shared, or that a busy tab leads, is waited for, however long, and the page
// shows this.

import { open, VarveError } from 'varve';
import type { CityStore } from './gazetteer.ts';

const STORE = 'cities';
/** How long to wait for an opener that does not share the store before the page shows this, and then between two attempts. */
const WAIT_MS = 1000;
const WAIT_LOCKED_MS = 30_000;

/** Opens the store, as soon as every other opener shares it and its leader answers; until then the page is `locked`. */
export async function openCities(onLocked: (error: VarveError) => void): Promise<{ store: CityStore; tookMs: number }> {
  for (let wait = WAIT_MS; ; wait = WAIT_LOCKED_MS) {
    const start = performance.now();
    try {
      const store: CityStore = await open(STORE, { lockTimeout: wait });
      return { store, tookMs: performance.now() - start };
    } catch (error) {
      if (!(error instanceof VarveError) || error.code !== 'VARVE_LOCKED') throw error;
      onLocked(error);
      document.body.dataset['state'] = 'locked';
    }
  }
}

/** The number of cities in the address; all of them when it has none. */
export function askedCities(): number {
  const asked = Number(new URLSearchParams(location.search).get('cities') ?? Number.NaN);
  return Number.isInteger(asked) && asked > 0 ? asked : Number.POSITIVE_INFINITY;
}
