/**
 * browser-level: the Level interface over IndexedDB. `put`, `get`, `del` for one, `batch` and `getMany` for many, entries
 * by its iterator. Values are bytes as they are (`view`), which spares them an encoding.
 *
 * Invariant: it asks for no durability, so a write has the browser's standard, in Chromium `relaxed`. It has no strict.
 */

import type { Engine } from '../core/engine.ts';
import { levelSession } from './level.ts';
import { versionOf } from './versions.ts';

const NAME = 'browser-level';

type Library = typeof import('browser-level');

/** The library: a CommonJS module, which a bundler hands over as `default`, whatever its types say. */
async function load(): Promise<Library['BrowserLevel']> {
  const module = (await import('browser-level')) as Library & { readonly default?: Library };
  return (module.default ?? module).BrowserLevel;
}

export const browserLevel: Engine = {
  name: NAME,
  version: versionOf(NAME),
  url: 'https://github.com/Level/browser-level',
  about: 'browser-level: put, get and del, one transaction each; in flight and for batches batch() and getMany().',
  recommended:
    'batch() and getMany() for many entries, iterator.all() for a range of known size, and the encoding "view" for bytes (github.com/Level/abstract-level#readme).',
  role: 'peer',
  accesses: ['worker', 'page', 'inflight'],
  abilities: ['set', 'get', 'miss', 'mixed', 'delete', 'batch', 'range', 'deleteRange', 'open'],
  durabilities: ['relaxed'],
  async open(name) {
    const Database = await load();
    const db = new Database<string, Uint8Array>(name, { keyEncoding: 'utf8', valueEncoding: 'view' });
    await db.open();
    return levelSession(db);
  },
  async remove(name) {
    await (await load()).destroy(name);
  },
};
