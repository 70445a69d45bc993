/**
 * The floor in memory: a JS Map, and its keys in an array that is sorted when a range first needs it.
 * Nothing survives; it shows what the loop itself and JavaScript's own data structures cost.
 */

import type { BatchEntries, Engine, Sink, SyncSession } from '../core/engine.ts';
import { compareKeys, type Key } from '../core/generator.ts';

class MapSession implements SyncSession {
  readonly kind = 'sync';
  readonly #map = new Map<Key, Uint8Array>();
  #sorted: Key[] = [];

  set(key: Key, value: Uint8Array): void {
    this.#map.set(key, value);
  }

  get(key: Key): Uint8Array | undefined {
    return this.#map.get(key);
  }

  delete(key: Key): void {
    this.#map.delete(key);
  }

  batch({ keys, values }: BatchEntries): void {
    for (let i = 0; i < keys.length; i++) this.#map.set(keys[i] as Key, values[i] as Uint8Array);
  }

  range(from: Key | undefined, limit: number, sink: Sink): void {
    const sorted = this.#sorted;
    let at = from === undefined ? 0 : firstFrom(sorted, from);
    for (const end = Math.min(at + limit, sorted.length); at < end; at++) {
      const key = sorted[at] as Key;
      sink.take(key, this.#map.get(key) as Uint8Array);
    }
  }

  commit(): void {
    // A Map has nothing to hand over.
  }

  async settle(): Promise<boolean> {
    this.#sorted = [...this.#map.keys()].sort(compareKeys);
    return true;
  }

  async close(): Promise<void> {
    this.#map.clear();
  }
}

/** The index of the first key that is not before `from`. */
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

export const map: Engine = {
  name: 'map',
  about: 'A JS Map in the same thread (ranges: a sorted array of its keys). Nothing is stored.',
  role: 'floor',
  accesses: ['worker'],
  abilities: ['set', 'get', 'miss', 'mixed', 'delete', 'batch', 'range'],
  durabilities: ['memory'],
  open: async () => new MapSession(),
  remove: async () => {},
};
