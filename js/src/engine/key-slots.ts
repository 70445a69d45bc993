/** What the keys of a store need of the code of key slots. Only an encrypted store needs that code. */

import { addKey, changeKey, createSlots, type Locked, removeKey, rotate, unlock } from '../encryption/slots.ts';
import type { KeyChange } from '../protocol/messages.ts';

/** The code of key slots. */
export interface KeySlots {
  readonly create: typeof createSlots;
  readonly unlock: typeof unlock;
  /** The slots after a change. `inUse` has the numbers of data keys that files have. */
  readonly change: typeof changed;
}

/** Loads the code. */
export type LoadKeySlots = () => Promise<KeySlots>;

export const KEY_SLOTS: KeySlots = { create: createSlots, unlock, change: changed };

/** The code, where it is loaded with the engine. */
export const keySlots: LoadKeySlots = async () => KEY_SLOTS;

function changed(slots: Uint8Array, change: Exclude<KeyChange, { kind: 'encrypt' }>, inUse: number[]): Promise<Locked> {
  switch (change.kind) {
    case 'add':
      return addKey(slots, change.own, change.key);
    case 'remove':
      return removeKey(slots, change.key);
    case 'change':
      return changeKey(slots, change.from, change.to);
    case 'rotate':
      return rotate(slots, change.keys, { removeOthers: change.removeOthers, inUse });
  }
}
