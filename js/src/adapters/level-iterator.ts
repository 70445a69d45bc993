/**
 * Iterators and snapshots of a Level database.
 *
 * Invariant: an iterator reads one snapshot, that of its creation or the caller's. So `seek` can open the range again.
 */

import { AbstractIterator, type AbstractIteratorOptions, type AbstractLevel, AbstractSnapshot } from 'abstract-level';
import type { ReadView } from '../store/read-view.ts';
import type { Snapshot } from '../store/snapshot.ts';
import type { View } from '../store/view.ts';
import type { Key, KeyRange, RangeIterator } from '../types.ts';
import { type Bounds, rangeAfter, rangeFrom, rangeOf } from './level-range.ts';

/** The view in which a database keeps its entries. */
export type LevelView = View<Key, Uint8Array>;

/** A database that keeps keys and values as bytes. */
type Level = AbstractLevel<Uint8Array, never, never>;

/** An explicit snapshot. */
export class LevelSnapshot extends AbstractSnapshot {
  /** The view as it was. */
  readonly reads: Snapshot<Key, Uint8Array>;

  constructor(options: object, view: LevelView) {
    // @ts-expect-error: abstract-level has no types for implementations.
    super(options);
    this.reads = view.snapshot();
  }

  _close(): Promise<void> {
    return this.reads.close();
  }
}

/** Options of an iterator, as abstract-level passes them on. */
export interface IteratorOptions extends Bounds {
  readonly keys: boolean;
  readonly values: boolean;
  readonly reverse: boolean;
  readonly snapshot?: LevelSnapshot | null;
}

/** An entry; undefined for what was not asked for. */
type Item = [key: Uint8Array | undefined, value: Uint8Array | undefined];

/** How many entries are read at once after a `seek`. A caller that seeks often reads few entries between. */
const SOUGHT = 16;

/** An iterator over entries. abstract-level makes those over keys and values of it. */
export class LevelIterator extends AbstractIterator<Level, Uint8Array, Uint8Array> {
  readonly #options: IteratorOptions;
  readonly #reads: ReadView<Key, Uint8Array>;
  /** The snapshot to close. */
  readonly #own: Snapshot<Key, Uint8Array> | undefined;
  /** The rest of the range; undefined if nothing is left. */
  #range: KeyRange<Key> | undefined;
  /** How many entries of the range are read before it is opened again. */
  #left = Number.POSITIVE_INFINITY;
  /** The open range, if it is open. */
  #items: RangeIterator<Key, unknown> | undefined;

  constructor(db: Level, options: IteratorOptions, view: LevelView) {
    super(db, options as unknown as AbstractIteratorOptions<Uint8Array, Uint8Array>);
    this.#options = options;
    if (!options.snapshot) this.#own = view.snapshot();
    this.#reads = options.snapshot?.reads ?? (this.#own as Snapshot<Key, Uint8Array>);
    this.#range = rangeOf(options);
  }

  async _next(): Promise<Item | undefined> {
    return (await this._nextv(1))[0];
  }

  async _nextv(size: number): Promise<Item[]> {
    const { keys, values, reverse } = this.#options;
    const found: Item[] = [];
    while (found.length < size && this.#range !== undefined) {
      this.#items ??= this.#open(this.#range);
      const items = await this.#items.nextv(Math.min(size - found.length, this.#left));
      const read = items.map((item) => (values ? item : [item, undefined]) as Item);
      const last = read.at(-1);
      this.#left -= read.length;
      if (last === undefined) this.#range = undefined;
      else if (this.#left === 0) this.#goTo(rangeAfter(this.#options, last[0] as Uint8Array, reverse));
      for (const [key, value] of read) found.push([keys ? key : undefined, value]);
    }
    return found;
  }

  _seek(target: Uint8Array): void {
    this.#goTo(rangeFrom(this.#options, target, this.#options.reverse), SOUGHT);
  }

  async _close(): Promise<void> {
    await this.#items?.return?.();
    await this.#own?.close();
  }

  /** Goes on in another range. */
  #goTo(range: KeyRange<Key> | undefined, left = Number.POSITIVE_INFINITY): void {
    void this.#items?.return?.();
    this.#items = undefined;
    this.#range = range;
    this.#left = left;
  }

  #open(range: KeyRange<Key>): RangeIterator<Key, unknown> {
    const { values, reverse } = this.#options;
    const limit = Math.min(this.#left, this.limit - this.count);
    const options = { ...range, reverse, limit: limit === Number.POSITIVE_INFINITY ? undefined : limit };
    return values ? this.#reads.entries(options) : this.#reads.keys(options);
  }
}
