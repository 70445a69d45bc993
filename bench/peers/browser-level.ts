/**
 * browser-level: the Level interface over IndexedDB. Values are bytes as they are (`view`), which saves an encoding.
 * It sets no durability, so a write has the browser's standard, in Chromium `relaxed`.
 */

import { levelSession } from './level.ts';
import { engineOf } from './library.ts';

type Library = typeof import('browser-level');

/** The library: a CommonJS module, which a bundler exports as `default`, unlike its types. */
async function load(): Promise<Library['BrowserLevel']> {
  const module = (await import('browser-level')) as Library & { readonly default?: Library };
  return (module.default ?? module).BrowserLevel;
}

export const browserLevel = engineOf(
  {
    name: 'browser-level',
    url: 'https://github.com/Level/browser-level',
    about: 'browser-level: put, get and del, one transaction each; in flight and for batches batch() and getMany().',
    recommended:
      'batch() and getMany() for many entries, iterator.all() for a range of known size, and the encoding "view" for bytes (github.com/Level/abstract-level#readme).',
    durabilities: ['relaxed'],
    async open(name) {
      const Database = await load();
      const db = new Database<string, Uint8Array>(name, { keyEncoding: 'utf8', valueEncoding: 'view' });
      await db.open();
      return levelSession(db);
    },
    remove: async (name) => (await load()).destroy(name),
  },
  'tuple',
  'transaction',
);
