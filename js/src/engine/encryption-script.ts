/** Key slots with a script that the engine worker loads for the first encrypted store. */

import { laterScript, ownError, placeOf } from '../storage/later-script.ts';
import type { KeySlots, LoadKeySlots } from './key-slots.ts';

/** Where the script puts its functions. */
export const place = placeOf<KeySlots>('varve.encryption');

const load = laterScript(place, 'encrypted stores', () => new URL('./encryption-worker.js', import.meta.url));

/** Loads the code of key slots, for the engine worker. */
export const keySlotsByScript: LoadKeySlots = async () => {
  const { create, unlock, encrypt, change } = await load();
  return { create: here(create), unlock: here(unlock), encrypt: here(encrypt), change: here(change) };
};

/** The function, with errors of this realm. */
function here<A extends unknown[], T>(call: (...args: A) => Promise<T>): (...args: A) => Promise<T> {
  return (...args) =>
    call(...args).catch((error: unknown) => {
      throw ownError(error);
    });
}
