/**
 * How a collection reads: from the current store, or at a fixed read point, which is a snapshot or a transaction.
 *
 * Invariant: an index is read only where it is known to be complete at the read point, and only by the definition that it was
 * built for. Index entries and the documents that they name are read at the same read point.
 */

import { hasCode } from '../errors.ts';
import { untilAborted } from '../runtime/until-aborted.ts';
import type { ReadView } from '../store/read-view.ts';
import type { Transaction } from '../store/transaction.ts';
import type { View } from '../store/view.ts';
import type { Key, StoreIterator } from '../types.ts';
import type { Layout } from './definition.ts';
import { tooOld } from './errors.ts';
import type { Kept, Readiness } from './readiness.ts';

/** A source of reads: the store, a snapshot or a transaction. */
export type Source = ReadView<Key, unknown> | Transaction<Key, unknown>;

/** A running scan of an index, and the view from which its documents are read. */
export interface Walk<T> {
  readonly scan: StoreIterator<T>;
  readonly view: Source;
  /** Releases what was opened for it. */
  close(): void;
}

/** How a collection reads. */
export interface Access {
  readonly view: Source;
  /** Runs a read of documents, after the calls made before it. The signal ends the wait for indexes, here and below. */
  plain<T>(read: () => Promise<T>, signal: AbortSignal | undefined): Promise<T>;
  /** Runs a read that needs only an index. If the index was not complete, it passes the result to `drop` and reads again. */
  indexed<T>(read: () => Promise<T>, signal: AbortSignal | undefined, drop?: (result: T) => void): Promise<T>;
  /** Opens an index whose documents are then read at the same read point. `open` is called with the view to scan. */
  walk<T>(open: (view: Source) => StoreIterator<T>, signal: AbortSignal | undefined): Promise<Walk<T>>;
}

/** The documents with these store keys. If they are too large for one answer, they are read in halves. */
export async function readMany(view: Source, places: readonly Key[], signal?: AbortSignal): Promise<unknown[]> {
  try {
    return await view.getMany(places, { signal });
  } catch (error) {
    const half = places.length >> 1;
    if (half === 0 || !hasCode(error, 'VARVE_INVALID_ARGUMENT')) throw error;
    const first = await readMany(view, places.slice(0, half), signal);
    return [...first, ...(await readMany(view, places.slice(half), signal))];
  }
}

/** Reads of the current store at each call. */
export class StoreAccess implements Access {
  readonly view: View<Key, unknown>;
  readonly #readiness: Readiness;

  constructor(view: View<Key, unknown>, readiness: Readiness) {
    this.view = view;
    this.#readiness = readiness;
  }

  plain<T>(read: () => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    return this.#readiness.run(read, signal);
  }

  async indexed<T>(read: () => Promise<T>, signal: AbortSignal | undefined, drop?: (result: T) => void): Promise<T> {
    for (;;) {
      let generation = 0;
      const [result, isOver] = await this.plain(async () => {
        ({ generation } = this.#readiness);
        // Both are called in one turn, so the check costs no extra time.
        const results = [read(), this.#readiness.isOver(generation, signal)] as const;
        // If the check fails, nobody gets the result of the read.
        results[1].catch(() => results[0].then(drop)).catch(() => undefined);
        return Promise.all(results);
      }, signal);
      if (!isOver) return result;
      drop?.(result);
      await this.#readiness.renew(generation, signal);
    }
  }

  async walk<T>(open: (view: Source) => StoreIterator<T>, signal: AbortSignal | undefined): Promise<Walk<T>> {
    return this.indexed(
      () => this.#walk(open),
      signal,
      ({ scan, close }) => {
        void scan.return?.();
        close();
      },
    );
  }

  /** Opens a scan of the index in a snapshot, from which the documents are read, too. */
  async #walk<T>(open: (view: Source) => StoreIterator<T>): Promise<Walk<T>> {
    const view = this.view.snapshot();
    const close = (): void => void view.close();
    try {
      return { scan: open(view), view, close };
    } catch (error) {
      close();
      throw error;
    }
  }
}

/** A fixed read point: a snapshot or a transaction. */
export class SnapshotAccess implements Access {
  readonly view: Source;
  readonly #layout: Layout;
  readonly #readiness: Readiness;
  #checked: Promise<boolean> | undefined;

  constructor(view: Source, readiness: Readiness) {
    this.view = view;
    this.#layout = readiness.layout;
    this.#readiness = readiness;
  }

  plain<T>(read: () => Promise<T>): Promise<T> {
    return read();
  }

  async indexed<T>(read: () => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    await this.check(signal);
    return read();
  }

  async walk<T>(open: (view: Source) => StoreIterator<T>, signal: AbortSignal | undefined): Promise<Walk<T>> {
    await this.check(signal);
    const { view } = this;
    return { scan: open(view), view, close: () => undefined };
  }

  /**
   * Resolves when the indexes are complete at this read point, with whether the collection existed there. After a failure, the next call
   * asks again.
   */
  check(signal?: AbortSignal): Promise<boolean> {
    if (this.#checked === undefined) {
      const checked = this.#readiness.run(() => this.#check());
      checked.catch(() => {
        this.#checked = undefined;
      });
      this.#checked = checked;
    }
    return untilAborted(this.#checked, signal);
  }

  async #check(): Promise<boolean> {
    const { definition, documents, name, own } = this.#layout;
    const kept = (await this.view.at(own).get(definition)) as Kept | undefined;
    if (await this.#isWhole(kept)) return true;
    // Other clients may have begun a generation that this client does not know. Or no client has begun one yet after an import.
    await this.#readiness.renew(this.#readiness.generation);
    if (await this.#isWhole(kept)) return true;
    if (kept === undefined && (await this.view.count({ prefix: documents })) === 0) return false;
    throw tooOld(name);
  }

  async #isWhole(kept: Kept | undefined): Promise<boolean> {
    const { generation } = this.#readiness;
    if (kept?.generation !== generation || kept.building.length > 0) return false;
    return !(await this.view.has(this.#layout.imported(generation)));
  }
}
