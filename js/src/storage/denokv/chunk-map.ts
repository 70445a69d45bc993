/**
 * Which chunks of a store are in Deno KV, and under which generation: the number of the commit that put each there.
 *
 * Deno KV can neither list keys without their values nor delete a range. So the holder of a store keeps this map in memory, and the
 * next holder reads it from the journal.
 *
 * Invariant: a chunk has one generation. Chunks next to each other that one commit put are one run.
 */

import type { ChunkName } from '../buffered/chunk-store.ts';

/** A chunk as it is stored. */
export interface StoredChunk extends ChunkName {
  readonly generation: number;
}

/** Consecutive chunks of one generation. */
export interface ChunkRun extends StoredChunk {
  readonly count: number;
}

/** The chunks of a store. */
export class ChunkMap {
  /** By slot, then by index; 0: there is none. */
  readonly #slots = new Map<number, number[]>();

  /** The generation of a chunk; 0 where there is none. */
  get(slot: number, index: number): number {
    return this.#slots.get(slot)?.[index] ?? 0;
  }

  put(slot: number, index: number, generation: number): void {
    const generations = this.#slots.get(slot) ?? [];
    this.#slots.set(slot, generations);
    while (generations.length < index) generations.push(0);
    generations[index] = generation;
  }

  /** Removes the chunks of `slot` from `index` on. */
  cut(slot: number, index: number): void {
    const generations = this.#slots.get(slot);
    if (generations !== undefined && generations.length > index) generations.length = index;
  }

  /** The chunks of `slot` from `index` on. */
  *from(slot: number, index: number): Generator<StoredChunk> {
    const generations = this.#slots.get(slot) ?? [];
    for (let at = index; at < generations.length; at++) {
      const generation = generations[at] ?? 0;
      if (generation > 0) yield { slot, index: at, generation };
    }
  }

  /** All chunks. */
  *all(): Generator<StoredChunk> {
    for (const slot of this.#slots.keys()) yield* this.from(slot, 0);
  }

  /** Another map with the same chunks. */
  copy(): ChunkMap {
    const copy = new ChunkMap();
    for (const [slot, generations] of this.#slots) copy.#slots.set(slot, generations.slice());
    return copy;
  }
}

/** Chunks as runs. */
export function runsOf(chunks: Iterable<StoredChunk>): ChunkRun[] {
  const sorted = [...chunks].sort((a, b) => a.slot - b.slot || a.index - b.index);
  const runs: { -readonly [K in keyof ChunkRun]: ChunkRun[K] }[] = [];
  for (const { slot, index, generation } of sorted) {
    const last = runs.at(-1);
    const isNext = last?.slot === slot && last.generation === generation && last.index + last.count === index;
    if (last !== undefined && isNext) last.count++;
    else runs.push({ slot, index, count: 1, generation });
  }
  return runs;
}

/** The chunks of runs. */
export function* chunksOf(runs: Iterable<ChunkRun>): Generator<StoredChunk> {
  for (const { slot, index, count, generation } of runs) {
    for (let i = 0; i < count; i++) yield { slot, index: index + i, generation };
  }
}
