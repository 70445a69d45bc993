/** Repairs stores with a script that the engine worker loads at the first repair. */

import { laterScript, ownError, placeOf } from '../storage/later-script.ts';
import type { RepairStore } from './repair.ts';

/** Where the script puts its function. */
export const place = placeOf<RepairStore>('varve.repair');

const load = laterScript(place, 'repairs', () => new URL('./repair-worker.js', import.meta.url));

/** Repairs a store, for the engine worker. */
export const repairByScript: RepairStore = async (...request) => {
  const repair = await load();
  try {
    return await repair(...request);
  } catch (error) {
    throw ownError(error);
  }
};
