/** What the keys of a store need of the code of key slots. Only an encrypted store needs that code. */

import { addKey, changeKey, createSlots, type Locked, removeKey, rotate, unlock } from '../encryption/slots.ts';
import type { UserKey } from '../encryption/user-key.ts';
import { hasCode, VarveError } from '../errors.ts';
import type { KeyChange } from '../protocol/messages.ts';

/** The code of key slots. */
export interface KeySlots {
  readonly create: typeof createSlots;
  readonly unlock: typeof unlock;
  /** The keys of a store that gets its first key. */
  readonly encrypt: typeof encrypted;
  /** The keys after a change. `inUse` has the numbers of data keys that files have. */
  readonly change: typeof changed;
}

/** Loads the code. */
export type LoadKeySlots = () => Promise<KeySlots>;

export const KEY_SLOTS: KeySlots = { create: createSlots, unlock, encrypt: encrypted, change: changed };

/** The code, where it is loaded with the engine. */
export const keySlots: LoadKeySlots = async () => KEY_SLOTS;

/** If the key opens the store already, the leader that encrypted it ended before it answered: then that is done. */
async function encrypted(now: Locked | undefined, key: UserKey): Promise<Locked> {
  if (now === undefined) return createSlots(key);
  const keys = await unlock(now.slots, key).catch(() => undefined);
  if (keys !== undefined) return { keys, slots: now.slots };
  throw new VarveError('VARVE_KEY', 'The store is encrypted already. Use addEncryptionKey() or changeEncryptionKey().');
}

async function changed(
  { keys, slots }: Locked,
  change: Exclude<KeyChange, { kind: 'encrypt' }>,
  inUse: number[],
): Promise<Locked> {
  switch (change.kind) {
    case 'add':
      return addKey(slots, change.own, change.key);
    case 'remove':
      return removeKey(slots, change.key).catch((error) => {
        if (change.wasThere && hasCode(error, 'VARVE_KEY')) return { keys: keys.slice(), slots };
        throw error;
      });
    case 'change':
      return changeKey(slots, change.from, change.to);
    case 'rotate':
      return rotate(slots, change.keys, { removeOthers: change.removeOthers, inUse });
  }
}
