/**
 * A snapshot of the asynchronous store.
 *
 * Invariant: the engine releases it exactly once: when it is closed, or when it is garbage collected. Iterators that began before
 * continue to their ends.
 */

import type { Client } from '../client/client.ts';
import type { Operations } from '../client/operations.ts';
import { VarveError } from '../errors.ts';
import { whenCollected } from '../runtime/collected.ts';
import { asyncDispose } from '../runtime/dispose.ts';
import { ReadView, type SnapshotState } from './read-view.ts';
import { releaseSnapshot, type SnapshotHandle, takeSnapshot } from './snapshot-handle.ts';

const collected = whenCollected<SnapshotHandle>(releaseSnapshot);

/**
 * The store as it was when `store.snapshot()` was called. It has all the reads of a store, and no writes. If the engine could not take
 * it, all reads reject with the reason.
 *
 * @example
 * await using snapshot = db.snapshot();
 * const total = await snapshot.count();
 * for await (const [key, value] of snapshot) show(key, value, total);
 */
export class Snapshot<K, V> extends ReadView<K, V> implements AsyncDisposable {
  /** The sequence of the last write that it sees; the engine reports it. */
  readonly sequence: Promise<number>;
  readonly #handle: SnapshotHandle;
  readonly #state: SnapshotState;

  /** @internal Made by `store.snapshot()`. */
  constructor(client: Client, operations: Operations<K, V>) {
    const handle = { client, number: client.numbers.ofSnapshot() };
    const taken = takeSnapshot(handle);
    const state: SnapshotState = { number: handle.number, refusal: undefined, taken };
    super(client, operations, state);
    this.sequence = taken.then(({ sequence }) => sequence);
    state.owner = this;
    this.#state = state;
    this.#handle = handle;
    collected.register(this, handle, state);
    const opened = (): void => {
      state.taken = undefined;
    };
    this.sequence.then(opened, (error: unknown) => {
      if (state.refusal !== undefined) return;
      state.refusal = error;
      collected.unregister(state);
      void releaseSnapshot(handle);
    });
  }

  /** @internal Its number in the engine. */
  get number(): number {
    return this.#handle.number;
  }

  /** Closes the snapshot; every later read rejects with `VARVE_CLOSED`. A second call has no further effect. */
  async close(): Promise<void> {
    if (this.#state.refusal !== undefined) return;
    this.#state.refusal = new VarveError('VARVE_CLOSED', 'The snapshot is closed. Take a new one.');
    collected.unregister(this.#state);
    await releaseSnapshot(this.#handle);
  }

  /** `close()`, for `await using`. */
  [asyncDispose](): Promise<void> {
    return this.close();
  }
}
