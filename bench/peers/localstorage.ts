/**
 * localStorage: strings by name, in the page, at once. A value of bytes is a string of as many characters (latin1): what
 * holds most in its five million characters, and costs least.
 *
 * Invariant: its rows say `memory`. A set is in the memory of the browser's processes when it returns, and goes to the
 * disk seconds later; nothing can ask for more. All stores share one room of five million characters, so it runs only the
 * suites whose entries fit, and only one store of it is there at a time.
 */

import type { BatchEntries, Engine, SyncSession } from '../core/engine.ts';
import { cannot } from '../core/engine.ts';
import type { Key } from '../core/generator.ts';

const NAME = 'localstorage';
/** Characters that all keys and values together may have: what Chromium, Firefox and Safari have in common. */
const CHARS_MAX = 5_000_000;
/** Arguments that one call of String.fromCharCode is given at most. */
const ARGUMENTS_MAX = 4096;

class LocalStorageSession implements SyncSession {
  readonly kind = 'sync';
  readonly #storage = globalThis.localStorage;
  readonly #prefix: string;

  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  set(key: Key, value: Uint8Array): void {
    this.#storage.setItem(this.#prefix + (key as string), toText(value));
  }

  get(key: Key): Uint8Array | undefined {
    const text = this.#storage.getItem(this.#prefix + (key as string));
    return text === null ? undefined : toBytes(text);
  }

  delete(key: Key): void {
    this.#storage.removeItem(this.#prefix + (key as string));
  }

  batch({ keys, values }: BatchEntries): void {
    for (let i = 0; i < keys.length; i++) this.set(keys[i] as Key, values[i] as Uint8Array);
  }

  range(): void {
    cannot(NAME, 'range');
  }

  commit(): void {
    // There is nothing that could be asked for.
  }

  async settle(): Promise<boolean> {
    return true;
  }

  async close(): Promise<void> {
    // It is never closed.
  }
}

function toText(bytes: Uint8Array): string {
  if (bytes.length <= ARGUMENTS_MAX) return String.fromCharCode.apply(null, bytes as unknown as number[]);
  let text = '';
  for (let at = 0; at < bytes.length; at += ARGUMENTS_MAX) text += toText(bytes.subarray(at, at + ARGUMENTS_MAX));
  return text;
}

function toBytes(text: string): Uint8Array {
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

/** What the names of a store's entries begin with: short, since it counts against the room of all. */
function prefixOf(name: string): string {
  return `${name.replace(`bench-${NAME}-`, '')}/`;
}

export const localStorageEngine: Engine = {
  name: NAME,
  url: 'https://html.spec.whatwg.org/multipage/webstorage.html',
  about: 'localStorage, in the page: bytes as strings of as many characters. Written to the disk seconds later.',
  recommended:
    'Nothing recommends it for data of this kind: it blocks the page and holds five million characters (developer.mozilla.org/docs/Web/API/Storage_API/Storage_quotas_and_eviction_criteria#web_storage).',
  role: 'peer',
  accesses: ['page'],
  abilities: ['set', 'get', 'mixed', 'delete'],
  durabilities: ['memory'],
  bytesMax: CHARS_MAX,
  open: async (name) => new LocalStorageSession(prefixOf(name)),
  async remove(name) {
    const prefix = prefixOf(name);
    const storage = globalThis.localStorage;
    const names = Array.from({ length: storage.length }, (_, i) => storage.key(i));
    for (const found of names) if (found?.startsWith(prefix)) storage.removeItem(found);
  },
};
