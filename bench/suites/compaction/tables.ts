/**
 * A store with many overlapping tables: written so that the engine has no chance to merge them before they are looked at.
 *
 * Each batch here is larger than a memtable, so it is a memtable of its own, flushed to a table of its own. Seven such tables
 * may lie in level 0 for ever; with the eighth a compaction is due, which begins between two turns. So the rest is written
 * inside one turn, in which the engine flushes what it must and merges nothing before it has twenty.
 *
 * Invariant: `burst` returns in the turn it was called in, and what is measured before the next `await` meets these tables.
 */

import type { OpenOptions, SyncStore } from 'varve/synchronous';
import { turn } from '../../core/clock.ts';
import type { SessionOptions, SyncSession } from '../../core/engine.ts';
import { at, type Dataset, type Key } from '../../core/generator.ts';
import { ABSENT, emptyState, type State } from '../../core/trace.ts';
import { syncSession, varveSync } from '../../peers/varve-sync.ts';

/** The tables on disk. */
export interface OnDisk {
  readonly files: number;
  readonly bytes: number;
  /** Entries of all tables: older versions and tombstones count. */
  readonly entries: number;
}

/** Varve's least `memory`: its memtables are 128 KiB. */
export const MEMORY_BYTES_MIN = 1 << 20;
/** A memtable is an eighth of the memory, and no more than this. */
const MEMTABLE_BYTES_MAX = 4 << 20;
/** Tables that the engine leaves alone in level 0. */
export const TABLES_KEPT = 7;
/** One less than the number at which the engine merges inside the turn. */
export const TABLES_MAX = 19;
const WAIT_MS_MAX = 20_000;

/** How the store is opened, where the usual way will not do: in tests, which have no workers. */
export type Opening = Pick<OpenOptions<Key, Uint8Array>, 'storage' | 'compactor' | 'wasm'>;

/** Entries of a batch that is larger than a memtable. */
export function batchOf(memoryBytes: number, entryBytes: number): number {
  return Math.ceil((1.1 * Math.min(MEMTABLE_BYTES_MAX, memoryBytes / 8)) / entryBytes);
}

type Store = SyncStore<Key, Uint8Array>;

/** One batch: for each key the number of a value, or ABSENT to delete it. */
export interface Part {
  readonly numbers: readonly number[];
  readonly value: (number: number) => number;
}

/** A store of the compaction suite and what it must hold. */
export class Tables {
  readonly engine = varveSync;
  readonly options: SessionOptions;
  readonly session: SyncSession;
  readonly state: State;
  /** Entries of a batch that is larger than a memtable. */
  readonly batchEntries: number;

  constructor(
    readonly name: string,
    readonly store: Store,
    readonly dataset: Dataset,
    memoryBytes: number,
  ) {
    this.options = { durability: 'relaxed', valueBytes: dataset.valueBytes, memoryBytes };
    this.session = syncSession(store);
    this.state = emptyState(dataset);
    this.batchEntries = batchOf(memoryBytes, dataset.keyBytes + dataset.valueBytes);
  }

  /** Writes one batch. */
  write({ numbers, value }: Part): void {
    const batch = this.store.batch();
    for (const number of numbers) {
      const chosen = value(number);
      if (chosen === ABSENT) batch.delete(at(this.dataset.keys, number));
      else batch.set(at(this.dataset.keys, number), at(this.dataset.pool, chosen));
    }
    batch.commit();
    for (const number of numbers) this.state[number] = value(number);
  }

  /** Writes in a turn of its own, and waits until all of it lies in tables. */
  async flushed(part: Part): Promise<void> {
    this.write(part);
    await this.#until(({ memtable }) => memtable.frozen === 0 && memtable.entries === 0);
  }

  /**
   * Writes batch after batch without letting go of the turn. Returns the number of sorted runs over the same keys: tables of
   * level 0, and memtables that wait for their flush.
   */
  burst(parts: readonly Part[]): number {
    for (const part of parts) this.write(part);
    const { levels, memtable } = this.store.stats();
    return (levels[0]?.tables ?? 0) + memtable.frozen;
  }

  onDisk(): OnDisk {
    const { levels } = this.store.stats();
    const sum = (of: (level: (typeof levels)[number]) => number): number =>
      levels.reduce((total, level) => total + of(level), 0);
    return {
      files: sum(({ tables }) => tables),
      bytes: sum(({ bytes }) => bytes),
      entries: sum(({ entries }) => entries),
    };
  }

  /** Flushes and merges everything; answers with how long that took. */
  async compact(): Promise<number> {
    const started = performance.now();
    await this.store.compact();
    return performance.now() - started;
  }

  /** Deletes everything and merges it away. */
  async clear(): Promise<void> {
    this.store.clear();
    this.state.fill(ABSENT);
    await this.compact();
  }

  /** Waits for a state of the store, turn by turn. */
  async #until(reached: (stats: ReturnType<Store['stats']>) => boolean): Promise<void> {
    const end = performance.now() + WAIT_MS_MAX;
    while (!reached(this.store.stats())) {
      if (performance.now() > end) throw new Error('The store did not flush what was written.');
      await turn();
    }
  }
}
