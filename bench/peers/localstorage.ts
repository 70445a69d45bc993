/**
 * localStorage: text by name, in the page, at once. Bytes are text of as many characters (latin1), which costs least.
 *
 * Invariant: its rows say `memory`, because a browser writes the data to the disk seconds after the call returns. All stores of
 * an origin share five million characters, so suites with more entries are without it.
 */

import { cannot, type SyncSession } from '../core/engine.ts';
import type { Key } from '../core/generator.ts';
import { engineOf } from './library.ts';
import { settled } from './runs.ts';

const NAME = 'localstorage';
/** Less than the room in Chromium, Firefox and Safari, because names of stores need some of it. */
const CHARS_MAX = 4_500_000;

/** Short, because it is a part of every key. */
const prefixOf = (store: string): string => `${store.replace(`bench-${NAME}-`, '')}/`;

const toText = (bytes: Uint8Array): string => Array.from(bytes, (byte) => String.fromCharCode(byte)).join('');

function sessionOf(prefix: string): SyncSession {
  const set = (key: Key, value: Uint8Array): void => localStorage.setItem(prefix + (key as string), toText(value));
  return {
    kind: 'sync',
    set,
    get: (key) => {
      const text = localStorage.getItem(prefix + (key as string));
      return text === null ? undefined : Uint8Array.from(text, (character) => character.charCodeAt(0));
    },
    delete: (key) => localStorage.removeItem(prefix + (key as string)),
    batch: ({ keys, values }) => {
      for (const [i, key] of keys.entries()) set(key, values[i] as Uint8Array);
    },
    range: () => cannot(NAME, 'range'),
    commit: () => undefined,
    settle: settled,
    close: async () => undefined,
  };
}

export const localStorageEngine = engineOf({
  name: NAME,
  url: 'https://html.spec.whatwg.org/multipage/webstorage.html',
  about: 'localStorage, in the page: bytes as text of as many characters. Written to the disk seconds later.',
  recommended:
    'Nothing recommends it for data of this kind: it blocks the page and has room for five million characters (developer.mozilla.org/docs/Web/API/Storage_API/Storage_quotas_and_eviction_criteria#web_storage).',
  accesses: ['page'],
  abilities: ['set', 'get', 'mixed', 'delete'],
  durabilities: ['memory'],
  bytesMax: CHARS_MAX,
  open: async (store) => sessionOf(prefixOf(store)),
  async remove(store) {
    for (const key of Object.keys(localStorage)) if (key.startsWith(prefixOf(store))) localStorage.removeItem(key);
  },
});
