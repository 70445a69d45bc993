// Opening the store of the cities, and what the address asks for.
// Invariant: a store that somebody holds without sharing it, or that a busy tab leads, is waited for, however long, and the page says so.

import { open, VarveError } from 'varve';
import type { CityStore } from './gazetteer.ts';

const STORE = 'cities';
/** How long to wait for somebody who does not share the store before saying so, and then between two looks. */
const WAIT_MS = 1000;
const WAIT_LOCKED_MS = 30_000;

/** Opens the store, as soon as nobody holds it who does not share it and its leader answers; until then the page is `locked`. */
export async function openCities(
  onLocked: (error: VarveError) => void,
): Promise<{ store: CityStore; took_ms: number }> {
  for (let wait = WAIT_MS; ; wait = WAIT_LOCKED_MS) {
    const start = performance.now();
    try {
      const store: CityStore = await open(STORE, { wait });
      return { store, took_ms: performance.now() - start };
    } catch (error) {
      if (!(error instanceof VarveError) || error.code !== 'VARVE_LOCKED') throw error;
      onLocked(error);
      document.body.dataset['state'] = 'locked';
    }
  }
}

/** How many cities the address asks for; all of them when it does not say. */
export function askedCities(): number {
  const asked = Number(new URLSearchParams(location.search).get('cities') ?? Number.NaN);
  return Number.isInteger(asked) && asked > 0 ? asked : Number.POSITIVE_INFINITY;
}
