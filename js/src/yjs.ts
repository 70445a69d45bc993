/**
 * The package `varve/yjs`: the provider of y-indexeddb 9, over stores of `varve`. All documents are in one store, and tabs that have
 * the same document open see each other's changes.
 *
 *   ['update', document, provider, number]   -> an update of Yjs
 *   ['custom', document, kind, content]      -> [value]: a custom property
 *   ['migrated', document]                   -> true: see `migrate`
 *
 * Invariants: A document is all its updates together, in any order. A provider numbers its updates, under a random number of its own, so
 * tabs never write the same key. It deletes only updates that its document has, in one write with the state of that document.
 */

import { applyUpdate, type Doc, encodeStateAsUpdate, transact } from 'yjs';
import type { AnyStore, StoreOrName } from './adapters/any-store.ts';
import { type IdbKey, toKey } from './adapters/idb-keys.ts';
import { type MigrateOptions, type MigrationReport, moveOnce } from './adapters/migration.ts';
import { storeOf } from './adapters/named-stores.ts';
import { repeated } from './adapters/repeated.ts';
import { hasCode } from './errors.ts';
import { structured } from './index.ts';
import type { View } from './store/view.ts';
import type { Key, Progress } from './types.ts';

export type { AnyStore, IdbKey, MigrateOptions, MigrationReport, Progress, StoreOrName };

/** From this many updates on, a document is stored as one state. */
export const PREFERRED_TRIM_SIZE = 500;

/** The time without an update after which that happens, in milliseconds. */
const TRIM_DELAY_MS = 1000;

/** The name of the store for documents that name none. */
const STORE = 'yjs';

/** In the place of a provider's number: the updates that come from y-indexeddb. */
const MIGRATED = 'y-indexeddb';

/** The key of an update: its provider, and its number there. */
type UpdateKey = readonly [provider: bigint | string, number: number];
type Updates = View<UpdateKey, Uint8Array>;
type Listener = (persistence: VarvePersistence) => void;

const rootOf = async (store: StoreOrName): Promise<View<Key, unknown>> =>
  (await storeOf(store)).at<Key, unknown>([], { values: structured });

const updatesOf = (root: View<Key, unknown>, name: string): Updates => root.at<UpdateKey, Uint8Array>(['update', name]);

/**
 * Keeps a Yjs document in a store: loads what is there, stores every update, and applies the updates that other tabs store. Its
 * interface is that of `IndexeddbPersistence`. Updates that it applies have the provider as their origin.
 *
 * `store` is a store, a view of one, or the promise of one; or a name, `'yjs'` by default. A store has any number of documents. The
 * provider stays with the store that it began with: after that was closed or deleted, or has failed, make a new provider.
 *
 * @example
 * const doc = new Y.Doc();
 * const persistence = new VarvePersistence('note-42', doc);
 * await persistence.whenSynced; // the document is loaded
 * persistence.on('synced', () => console.log('loaded'));
 */
export class VarvePersistence {
  readonly doc: Doc;
  readonly name: string;
  /** Whether the document has what is in the store. */
  synced = false;
  /** Resolves when the document has what is in the store; never, if the provider is destroyed before. Rejects if the store cannot be read. */
  readonly whenSynced: Promise<this>;
  readonly #root: Promise<View<Key, unknown>>;
  readonly #listeners = new Set<Listener>();
  readonly #ending = new AbortController();
  /** The number of this provider. */
  readonly #id = crypto.getRandomValues(new BigUint64Array(1))[0] as bigint;
  /** The updates in the store, once updates of the document are stored. */
  #updates: Updates | undefined;
  /** The last update of each provider that the document has, and the store may have. */
  #seen = new Map<bigint | string, number>();
  /** About how many updates are in the store. */
  #size = 0;
  /** The number of the last update. */
  #last = 0;
  /** The write of the last update. */
  #writing: Promise<unknown> | undefined;
  /** Whether an update could not be written: then the next one has the whole state. */
  #isIncomplete = false;
  /** Whether the document is being deleted: then nothing more is stored. */
  #isCleared = false;
  #trimming: ReturnType<typeof setTimeout> | undefined;

  constructor(name: string, doc: Doc, store: StoreOrName = STORE) {
    this.name = name;
    this.doc = doc;
    this.#root = rootOf(store);
    this.whenSynced = new Promise((resolve, reject) => {
      this.#load().then((isLoaded) => isLoaded && resolve(this), reject);
    });
    doc.on('update', this.#store);
    doc.on('destroy', this.destroy);
  }

  /** Calls a function when the document is loaded. */
  on(event: 'synced', listener: Listener): void {
    if (event === 'synced') this.#listeners.add(listener);
  }

  /** Like `on`. The event comes once at most. */
  once(event: 'synced', listener: Listener): void {
    this.on(event, listener);
  }

  off(_event: 'synced', listener: Listener): void {
    this.#listeners.delete(listener);
  }

  /**
   * Ends the provider, and resolves when all updates are stored. The store stays open. It is called when the document is destroyed. After
   * it, custom properties are an `InvalidStateError`.
   */
  readonly destroy = async (): Promise<void> => {
    clearTimeout(this.#trimming);
    this.doc.off('update', this.#store);
    this.doc.off('destroy', this.destroy);
    this.#ending.abort();
    // Their errors are reported elsewhere: by `whenSynced`, and as unhandled rejections.
    await Promise.allSettled([this.#root]);
    // Edits from before the load are stored from here on.
    await Promise.allSettled([this.#writing]);
  };

  /** Destroys the provider, and deletes the document and its custom properties. Providers of other tabs end, too. */
  async clearData(): Promise<void> {
    this.#isCleared = true;
    await this.destroy();
    await clearDocument(this.name, await this.#root);
  }

  /** The value of a custom property, or undefined. Its keys are those of IndexedDB: another one is a `DataError`. */
  async get(key: IdbKey): Promise<unknown> {
    const found = await repeated(async () => (await this.#custom()).get(toKey(key)));
    return found?.[0];
  }

  /** Sets a custom property of the document, which is not shared with other peers. Resolves with the key. */
  async set<K extends IdbKey>(key: K, value: unknown): Promise<K> {
    await (await this.#custom()).set(toKey(key), [value]);
    return key;
  }

  /** Deletes a custom property. */
  async del(key: IdbKey): Promise<void> {
    await (await this.#custom()).delete(toKey(key));
  }

  /** @internal Stores the state of the document in the place of its updates: see `storeState`. */
  async trim(isForced: boolean): Promise<void> {
    await this.#open();
    await this.whenSynced;
    const updates = this.#updates as Updates;
    const size = await repeated(() => updates.count());
    this.#size = size;
    if (this.#isDestroyed || (!isForced && size < PREFERRED_TRIM_SIZE)) return;
    const replaced = [...this.#seen];
    const batch = updates.batch();
    for (const [provider, last] of replaced) batch.deleteRange({ gte: [provider, 0], lte: [provider, last] });
    await batch.set(this.#nextKey(), encodeStateAsUpdate(this.doc)).commit();
    // Not before: if the commit fails, the next one has to delete them. Later updates may have arrived meanwhile.
    for (const [provider, last] of replaced) if (this.#seen.get(provider) === last) this.#seen.delete(provider);
    this.#size -= size - 1;
  }

  get #isDestroyed(): boolean {
    return this.#ending.signal.aborted;
  }

  async #open(): Promise<View<Key, unknown>> {
    const root = await this.#root;
    if (this.#isDestroyed) throw new DOMException('The provider is destroyed.', 'InvalidStateError');
    return root;
  }

  async #custom(): Promise<View<Key, [unknown]>> {
    return (await this.#open()).at<Key, [unknown]>(['custom', this.name]);
  }

  /** Returns whether the document is loaded: not if the provider was destroyed meanwhile. */
  async #load(): Promise<boolean> {
    const updates = updatesOf(await this.#root, this.name);
    this.#updates = updates;
    // Also when the provider was destroyed meanwhile: nobody else has what was written before.
    const state = encodeStateAsUpdate(this.doc);
    if (!isEmpty(state) && !this.#isCleared) this.#write(state);
    if (this.#isDestroyed) return false;
    const changes = updates.changes({ signal: this.#ending.signal });
    const stored = await entriesOf(updates);
    if (this.#isDestroyed) return false;
    this.#apply(stored);
    this.synced = true;
    for (const listener of this.#listeners) queueMicrotask(() => listener(this));
    void this.#follow(updates, changes);
    return true;
  }

  /** Applies what other providers store. */
  async #follow(updates: Updates, changes: ReturnType<Updates['changes']>): Promise<void> {
    // In a separate microtask: an update that cannot be applied must not end this.
    const apply = (stored: [UpdateKey, Uint8Array][]): void =>
      queueMicrotask(() => this.#isDestroyed || this.#apply(stored));
    try {
      for await (const change of changes) {
        if (change.type === 'set') {
          if (change.key[0] !== this.#id) apply([[change.key, change.value]]);
        } else if (change.type === 'deleteRange') {
          // A provider that trims deletes only a range of updates.
          if (Object.keys(change.range).length === 0) return await this.#end(updates);
        } else if (change.type === 'gap') {
          const stored = await entriesOf(updates);
          // The updates from before the gap were deleted in it.
          if (stored.length === 0 && this.#seen.size > 0) return await this.#end(updates);
          apply(stored);
        }
      }
    } catch (error) {
      if (!this.#isDestroyed && !hasCode(error, 'VARVE_CLOSED')) throw error;
    }
  }

  /** The document was deleted: ends this provider, and deletes what it has stored since then. */
  async #end(updates: Updates): Promise<void> {
    void this.destroy();
    await updates.deleteRange({ prefix: [this.#id] });
  }

  /** The document has the updates also if one of its observers throws: that error is reported, and ends nothing. */
  #apply(stored: readonly [UpdateKey, Uint8Array][]): void {
    let isApplied = false;
    try {
      transact(
        this.doc,
        () => {
          for (const [[provider, number], update] of stored) {
            applyUpdate(this.doc, update, this);
            this.#seen.set(provider, Math.max(number, this.#seen.get(provider) ?? 0));
          }
          isApplied = true;
        },
        this,
        false,
      );
    } catch (error) {
      if (!isApplied) throw error;
      queueMicrotask(() => {
        throw error;
      });
    }
    this.#size += stored.length;
  }

  readonly #store = (update: Uint8Array, origin: unknown): void => {
    if (origin === this || this.#updates === undefined) return;
    this.#write(this.#isIncomplete ? encodeStateAsUpdate(this.doc) : update);
    if (++this.#size < PREFERRED_TRIM_SIZE) return;
    clearTimeout(this.#trimming);
    this.#trimming = setTimeout(() => this.trim(false), TRIM_DELAY_MS);
  };

  #write(update: Uint8Array): void {
    this.#isIncomplete = false;
    this.#writing = this.#updates?.set(this.#nextKey(), update);
    // Nobody waits for it: an error is an unhandled rejection.
    this.#writing?.catch((error) => {
      this.#isIncomplete = true;
      throw error;
    });
  }

  #nextKey(): UpdateKey {
    this.#seen.set(this.#id, ++this.#last);
    return [this.#id, this.#last];
  }
}

/** Whether an update of Yjs has neither content nor deletions. */
function isEmpty(update: Uint8Array): boolean {
  return update.length === 2 && update[0] === 0 && update[1] === 0;
}

const entriesOf = (updates: Updates): Promise<[UpdateKey, Uint8Array][]> =>
  repeated(async () => updates.entries().toArray());

/**
 * Deletes a document and its custom properties. Providers that have it open end, in every tab: their documents stay, and are not stored
 * any more.
 *
 * @example
 * await clearDocument('note-42');
 */
export async function clearDocument(name: string, store: StoreOrName = STORE): Promise<void> {
  const batch = (await rootOf(store)).batch();
  await batch
    .deleteRange({ prefix: ['update', name] })
    .deleteRange({ prefix: ['custom', name] })
    .commit();
}

/**
 * Stores the state of a document in the place of its updates. That happens by itself a second after an update if there are
 * `PREFERRED_TRIM_SIZE` (500) of them. With false as second argument, nothing happens if there are fewer.
 *
 * @example
 * await storeState(persistence);
 */
export async function storeState(persistence: VarvePersistence, forceStore = true): Promise<void> {
  await persistence.trim(forceStore);
}

/**
 * Copies a document and its custom properties from y-indexeddb's database of the same name, once. Call it before the document is opened.
 * The database stays until you delete it. If the copying is cut off, the next call begins anew; nothing is lost, and nothing is there twice.
 * Tabs may call it at the same time: no call resolves before everything is there. The report counts updates and properties.
 *
 * @example
 * await migrate('note-42', { onProgress: ({ done, total }) => show(done / total) });
 * indexedDB.deleteDatabase('note-42');
 * const persistence = new VarvePersistence('note-42', doc);
 */
export async function migrate(
  name: string,
  options: MigrateOptions = {},
  store: StoreOrName = STORE,
): Promise<MigrationReport> {
  const move = {
    database: name,
    stores: {
      updates: (key: IdbKey, value: unknown) => [['update', name, MIGRATED, key as number], value] as const,
      custom: (key: IdbKey, value: unknown) => [['custom', name, ...(toKey(key) as Key[])], [value]] as const,
    },
    view: await rootOf(store),
    mark: [['migrated', name], true] as const,
  };
  return moveOnce(move, options);
}
