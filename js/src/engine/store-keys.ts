/**
 * The keys of one open store: its key slots, and the data keys in them.
 *
 * Invariant: the slots here are those of the manifest. Changes are made one after another, each from the slots that the one before left; a
 * change that fails leaves everything as it was. The data keys are overwritten when the store is closed.
 */

import { erase } from '../encryption/data-keys.ts';
import type { Locked } from '../encryption/slots.ts';
import type { UserKey } from '../encryption/user-key.ts';
import { VarveError } from '../errors.ts';
import type { KeyChange } from '../protocol/messages.ts';
import type { LoadKeySlots } from './key-slots.ts';

/** Applies changed keys to the engine's store. */
interface KeyedStore {
  changeKeys(locked: Locked): Promise<void>;
  /** The numbers of data keys that files have. */
  keysInUse(): Promise<number[]>;
}

/** The keys of a store. */
export class StoreKeys {
  readonly #user: UserKey | undefined;
  readonly #load: LoadKeySlots;
  #locked: Locked | undefined;
  #last: Promise<unknown> = Promise.resolve();

  /** @param user The key that the store is opened with. The code for it is loaded now, while the storage answers. */
  constructor(user: UserKey | undefined, load: LoadKeySlots) {
    this.#user = user;
    this.#load = load;
    if (user !== undefined) load().catch(() => undefined);
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
    const { create, unlock } = await this.#load();
    if (slots === undefined) this.#locked ??= await create(user);
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
    const { unlock } = await this.#load();
    erase(await unlock(this.#locked.slots, user));
  }

  async #change(store: KeyedStore, change: KeyChange): Promise<boolean> {
    const before = this.#locked;
    const locked = await this.#changed(store, change);
    try {
      await store.changeKeys(locked);
    } catch (error) {
      erase(locked.keys);
      throw error;
    }
    if (before !== undefined) erase(before.keys);
    this.#locked = locked;
    if (change.kind !== 'change') return false;
    const { unlock } = await this.#load();
    return unlock(locked.slots, change.own).then(
      (keys) => {
        erase(keys);
        return false;
      },
      () => true,
    );
  }

  /** The keys after a change. */
  async #changed(store: KeyedStore, change: KeyChange): Promise<Locked> {
    const slots = this.#locked?.slots;
    if (change.kind !== 'encrypt') {
      if (slots === undefined) throw notEncrypted();
      const inUse = change.kind === 'rotate' ? await store.keysInUse() : [];
      return (await this.#load()).change(slots, change, inUse);
    }
    if (slots === undefined) return (await this.#load()).create(change.key);
    throw new VarveError('VARVE_KEY', 'The store is encrypted already. Use addKey() or changeKey().');
  }
}

function notEncrypted(): VarveError {
  return new VarveError('VARVE_KEY', 'The store is not encrypted. Open it without a key, and call encrypt({ key }).');
}
