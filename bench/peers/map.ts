/**
 * The floor in memory: a JS Map, and its keys in an array that is sorted when a range first needs it.
 * Nothing survives; it shows what the loop itself and JavaScript's own data structures cost.
 */

import type { SyncSession } from '../core/engine.ts';
import { compareKeys, type Key } from '../core/generator.ts';
import { engineOf } from './library.ts';

function mapSession(): SyncSession {
  const entries = new Map<Key, Uint8Array>();
  let sorted: Key[] = [];
  return {
    kind: 'sync',
    set: (key, value) => void entries.set(key, value),
    get: (key) => entries.get(key),
    delete: (key) => void entries.delete(key),
    batch: ({ keys, values }) => {
      for (let i = 0; i < keys.length; i++) entries.set(keys[i] as Key, values[i] as Uint8Array);
    },
    range: (from, limit, sink) => {
      let at = from === undefined ? 0 : firstFrom(sorted, from);
      for (const end = Math.min(at + limit, sorted.length); at < end; at++) {
        const key = sorted[at] as Key;
        sink.take(key, entries.get(key) as Uint8Array);
      }
    },
    commit: () => undefined,
    settle: async () => {
      sorted = [...entries.keys()].sort(compareKeys);
      return true;
    },
    close: async () => entries.clear(),
  };
}

function firstFrom(sorted: readonly Key[], from: Key): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (compareKeys(sorted[middle] as Key, from) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

export const map = engineOf({
  name: 'map',
  about: 'A JS Map in the same thread (ranges: a sorted array of its keys). Nothing is stored.',
  role: 'floor',
  accesses: ['worker'],
  abilities: ['set', 'get', 'miss', 'mixed', 'delete', 'batch', 'range'],
  durabilities: ['memory'],
  open: async () => mapSession(),
  remove: async () => {},
});
