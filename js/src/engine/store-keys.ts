/**
 * The keys of one open store: its key slots, and the data keys in them.
 *
 * Invariant: the slots here are those of the manifest. Changes are made one after another, each from the slots that the one before left; a
 * change that fails leaves everything as it was. The data keys are overwritten when the store is closed.
 */

import { erase } from '../encryption/data-keys.ts';
import { addKey, changeKey, createSlots, type Locked, removeKey, rotate, unlock } from '../encryption/slots.ts';
import type { UserKey } from '../encryption/user-key.ts';
import { VarveError } from '../errors.ts';
import type { KeyChange } from '../protocol/messages.ts';

/** Applies changed keys to the engine's store. */
export interface KeyedStore {
  changeKeys(locked: Locked): Promise<void>;
  /** The numbers of data keys that files have. */
  keysInUse(): Promise<number[]>;
}

/** The keys of a store. */
export class StoreKeys {
  readonly #user: UserKey | undefined;
  #locked: Locked | undefined;
  #last: Promise<unknown> = Promise.resolve();

  /** @param user The key that the store is opened with. */
  constructor(user: UserKey | undefined) {
    this.#user = user;
  }

  /** Whether the store is opened with a key: then its key slots are read before it is opened. */
  get areWanted(): boolean {
    return this.#user !== undefined;
  }

  /**
   * The keys to open the store with, by the slots that it has. If it has none, it is new: then it gets new keys. (An old store without
   * slots is refused by the engine.)
   */
  async forOpening(slots: Uint8Array | undefined): Promise<Locked | undefined> {
    const user = this.#user;
    if (user === undefined) return undefined;
    if (slots === undefined) this.#locked ??= await createSlots(user);
    else this.#locked ??= { keys: await unlock(slots, user), slots: slots.slice() };
    return this.#locked;
  }

  /** Verifies the key of another tab; undefined if there is nothing to wait for. Rejects with `VARVE_KEY`. */
  verify(user: UserKey | undefined): Promise<void> | undefined {
    if (this.#locked === undefined && user === undefined) return undefined;
    return this.#verify(user);
  }

  /** The data keys, for a check. */
  get now(): Locked | undefined {
    return this.#locked;
  }

  /** Makes a change. Resolves with whether the key with which it was made is replaced by it. */
  change(store: KeyedStore, change: KeyChange): Promise<boolean> {
    const made = this.#last.then(() => this.#change(store, change));
    this.#last = made.catch(() => undefined);
    return made;
  }

  /** Overwrites the data keys: the store is closed. */
  erase(): void {
    if (this.#locked !== undefined) erase(this.#locked.keys);
    this.#locked = undefined;
  }

  async #verify(user: UserKey | undefined): Promise<void> {
    if (this.#locked === undefined) throw notEncrypted();
    if (user === undefined) {
      throw new VarveError(
        'VARVE_KEY',
        'The store is encrypted. Open it with its key: open(name, { encryption: { key } }).',
      );
    }
    erase(await unlock(this.#locked.slots, user));
  }

  async #change(store: KeyedStore, change: KeyChange): Promise<boolean> {
    const before = this.#locked;
    const locked = await changed(before?.slots, change, () => store.keysInUse());
    try {
      await store.changeKeys(locked);
    } catch (error) {
      erase(locked.keys);
      throw error;
    }
    if (before !== undefined) erase(before.keys);
    this.#locked = locked;
    if (change.kind !== 'change') return false;
    return unlock(locked.slots, change.own).then(
      (keys) => {
        erase(keys);
        return false;
      },
      () => true,
    );
  }
}

/** The keys after a change. */
async function changed(
  slots: Uint8Array | undefined,
  change: KeyChange,
  keysInUse: () => Promise<number[]>,
): Promise<Locked> {
  if (change.kind === 'encrypt') {
    if (slots === undefined) return createSlots(change.key);
    throw new VarveError('VARVE_KEY', 'The store is encrypted already. Use addKey() or changeKey().');
  }
  if (slots === undefined) throw notEncrypted();
  switch (change.kind) {
    case 'add':
      return addKey(slots, change.own, change.key);
    case 'remove':
      return removeKey(slots, change.key);
    case 'change':
      return changeKey(slots, change.from, change.to);
    case 'rotate':
      return rotate(slots, change.keys, { removeOthers: change.removeOthers, inUse: await keysInUse() });
  }
}

function notEncrypted(): VarveError {
  return new VarveError('VARVE_KEY', 'The store is not encrypted. Open it without a key, and call encrypt({ key }).');
}
