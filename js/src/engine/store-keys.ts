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
import type { KeyChange, OpeningKeys } from '../protocol/messages.ts';
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
  /** The key, and those that are tried after it. */
  readonly #users: readonly UserKey[];
  readonly #load: LoadKeySlots;
  #locked: Locked | undefined;
  #last: Promise<unknown> = Promise.resolve();

  /** @param opening The keys that the store is opened with. The code for them is loaded now, while the storage answers. */
  constructor({ key, nextKeys = [] }: OpeningKeys, load: LoadKeySlots) {
    this.#user = key;
    this.#users = key === undefined ? nextKeys : [key, ...nextKeys];
    this.#load = load;
    if (this.#users.length > 0) load().catch(() => undefined);
  }

  /** Whether the store is opened with keys: then its key slots are read before it is opened. */
  get areWanted(): boolean {
    return this.#users.length > 0 || this.#locked !== undefined;
  }

  /**
   * The keys to open the store with, by the slots that it has. If it has none, it is new: then it gets new keys. (An old store without
   * slots is refused by the engine.)
   */
  async forOpening(slots: Uint8Array | undefined): Promise<Locked | undefined> {
    // It is opened again, perhaps after it was encrypted.
    if (this.#locked !== undefined) return this.#locked;
    if (this.#users.length === 0) return undefined;
    const { create, unlock } = await this.#load();
    // A key that was only asked for makes no new store.
    if (slots === undefined) this.#locked = this.#user && (await create(this.#user));
    else this.#locked = { keys: await unlock(slots, ...this.#users), slots: slots.slice() };
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

  /** Runs something while no change is under way: during a change the engine may have other keys than those here. */
  between<T>(run: () => T | Promise<T>): Promise<T> {
    const done = this.#last.then(run);
    this.#last = done.catch(() => undefined);
    return done;
  }

  /** Makes a change. Resolves with whether the key with which it was made is replaced by it. */
  change(store: KeyedStore, change: KeyChange): Promise<boolean> {
    return this.between(() => this.#change(store, change));
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
    // A change that was made already writes nothing.
    if (before?.slots === locked.slots) erase(locked.keys);
    else {
      try {
        await store.changeKeys(locked);
      } catch (error) {
        erase(locked.keys);
        throw error;
      }
      if (before !== undefined) erase(before.keys);
      this.#locked = locked;
    }
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
    const now = this.#locked;
    if (change.kind === 'encrypt') return (await this.#load()).encrypt(now, change.key);
    if (now === undefined) throw notEncrypted();
    const inUse = change.kind === 'rotate' ? await store.keysInUse() : [];
    return (await this.#load()).change(now, change, inUse);
  }
}

function notEncrypted(): VarveError {
  return new VarveError('VARVE_KEY', 'The store is not encrypted. Open it without a key, and call encrypt({ key }).');
}
