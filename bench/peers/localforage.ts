/**
 * localForage over its IndexedDB driver. It has no call for many entries, no order for ranges, and sets no durability: in
 * Chromium that is `relaxed`.
 *
 * Invariant: it promises no order for two calls on one key at once. So in a wave a call waits for an earlier write of its key,
 * as a program must.
 */

import { type AsyncSession, cannot, type PointCall } from '../core/engine.ts';
import type { Key } from '../core/generator.ts';
import { engineOf } from './library.ts';
import { settled } from './runs.ts';

const NAME = 'localforage';
const STORE = 'entries';

type Library = typeof import('localforage');

/** The library: a CommonJS module, which a bundler exports as `default`. */
async function load(): Promise<Library> {
  const module: { readonly default: Library } = await import('localforage');
  return module.default;
}

function sessionOf(store: Library): AsyncSession {
  const get = async (key: Key): Promise<Uint8Array | undefined> =>
    (await store.getItem<Uint8Array>(key as string)) ?? undefined;
  const write = (key: Key, value: Uint8Array | null): Promise<unknown> =>
    value === null ? store.removeItem(key as string) : store.setItem(key as string, value);
  return {
    kind: 'async',
    set: write,
    get,
    delete: (key) => write(key, null),
    batch: ({ keys, values }) => Promise.all(keys.map((key, i) => write(key, values[i] as Uint8Array))),
    range: async () => cannot(NAME, 'range'),
    wave: (calls) => {
      const written = new Map<Key, Promise<undefined>>();
      const make = async ({ key, value }: PointCall): Promise<Uint8Array | undefined> => {
        const before = written.get(key);
        if (value === undefined) return before === undefined ? get(key) : before.then(() => get(key));
        const made = (async () => {
          if (before !== undefined) await before;
          await write(key, value);
          return undefined;
        })();
        written.set(key, made);
        return made;
      };
      return Promise.all(calls.map(make));
    },
    settle: settled,
    // The library keeps a database open until it drops it, so it has no suite of opening.
    close: async () => undefined,
  };
}

/** The instances of this thread: only they can drop their databases, since they keep them open. */
const instances = new Map<string, Library>();

export const localForage = engineOf({
  name: NAME,
  url: 'https://localforage.github.io/localForage/',
  about: 'localForage over IndexedDB: setItem, getItem, removeItem, one transaction each; in flight: 100 of them.',
  recommended:
    'An instance by createInstance with the IndexedDB driver, and typed arrays stored as they are (localforage.github.io/localForage).',
  abilities: ['set', 'get', 'miss', 'mixed', 'delete'],
  durabilities: ['relaxed'],
  async open(name) {
    const library = await load();
    const store = library.createInstance({ name, storeName: STORE, driver: library.INDEXEDDB });
    await store.ready();
    instances.set(name, store);
    return sessionOf(store);
  },
  async remove(name) {
    await instances.get(name)?.dropInstance({ name });
    instances.delete(name);
  },
});
