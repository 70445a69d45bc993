/**
 * browser-level: the Level interface over IndexedDB. `put`, `get`, `del` for one, `batch` and `getMany` for many, entries
 * by its iterator. Values are bytes as they are (`view`), which spares them an encoding.
 *
 * Invariant: it asks for no durability, so a write has the browser's standard, in Chromium `relaxed`. It has no strict.
 */

import type { BrowserLevel } from 'browser-level';
import type { AsyncSession, BatchEntries, Engine, PointCall, Sink } from '../core/engine.ts';
import type { Key } from '../core/generator.ts';
import { waveOfRuns } from './runs.ts';
import { versionOf } from './versions.ts';

const NAME = 'browser-level';

type Library = typeof import('browser-level');

/** The library: a CommonJS module, which a bundler hands over as `default`, whatever its types say. */
async function load(): Promise<Library['BrowserLevel']> {
  const module = (await import('browser-level')) as Library & { readonly default?: Library };
  return (module.default ?? module).BrowserLevel;
}

class LevelSession implements AsyncSession {
  readonly kind = 'async';
  readonly #db: BrowserLevel<string, Uint8Array>;

  constructor(db: BrowserLevel<string, Uint8Array>) {
    this.#db = db;
  }

  set(key: Key, value: Uint8Array): Promise<void> {
    return this.#db.put(key as string, value);
  }

  get(key: Key): Promise<Uint8Array | undefined> {
    return this.#db.get(key as string);
  }

  delete(key: Key): Promise<void> {
    return this.#db.del(key as string);
  }

  deleteRange(from: Key, to: Key): Promise<void> {
    return this.#db.clear({ gte: from as string, lt: to as string });
  }

  batch({ keys, values }: BatchEntries): Promise<void> {
    return this.#db.batch(keys.map((key, i) => put(key, values[i] as Uint8Array)));
  }

  async range(from: Key | undefined, limit: number, sink: Sink): Promise<void> {
    const bounds = from === undefined ? {} : { gte: from as string };
    for (const [key, value] of await this.#db.iterator({ ...bounds, limit }).all()) sink.take(key, value);
  }

  wave(calls: readonly PointCall[]): Promise<readonly (Uint8Array | undefined)[]> {
    return waveOfRuns(calls, {
      set: (run) => this.batch(run),
      get: ({ keys }) => this.#db.getMany(keys as string[]),
      delete: ({ keys }) => this.#db.batch(keys.map((key) => ({ type: 'del' as const, key: key as string }))),
    });
  }

  async settle(): Promise<boolean> {
    // Nothing to wait for: every write has been awaited.
    return true;
  }

  close(): Promise<void> {
    return this.#db.close();
  }
}

function put(key: Key, value: Uint8Array): { type: 'put'; key: string; value: Uint8Array } {
  return { type: 'put', key: key as string, value };
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
    return new LevelSession(db);
  },
  async remove(name) {
    await (await load()).destroy(name);
  },
};
