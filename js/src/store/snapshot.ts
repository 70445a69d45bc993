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
import { type OpenSnapshot, releaseSnapshot, type SnapshotHandle } from './snapshot-handle.ts';

const collected = whenCollected<SnapshotHandle>(releaseSnapshot);

/**
 * The store as it was when `store.snapshot()` was called. It has all the reads of a store, and no writes.
 *
 * @example
 * await using snapshot = await db.snapshot();
 * const total = await snapshot.count();
 * for await (const [key, value] of snapshot) show(key, value, total);
 */
export class Snapshot<K, V> extends ReadView<K, V> implements AsyncDisposable {
  /** The sequence of the last write that it sees. */
  readonly sequence: number;
  readonly #held: SnapshotHandle;
  readonly #state: SnapshotState;

  /** @internal Made by `store.snapshot()`. */
  constructor(client: Client, operations: Operations<K, V>, taken: OpenSnapshot) {
    const state: SnapshotState = { number: taken.number, refusal: undefined };
    super(client, operations, state);
    this.sequence = taken.sequence;
    state.owner = this;
    this.#state = state;
    this.#held = { client, number: taken.number };
    collected.register(this, this.#held, this);
  }

  /** @internal Its number in the engine. */
  get number(): number {
    return this.#held.number;
  }

  /** Closes the snapshot; every later read rejects with `VARVE_CLOSED`. A second call has no further effect. */
  async close(): Promise<void> {
    if (this.#state.refusal !== undefined) return;
    this.#state.refusal = new VarveError('VARVE_CLOSED', 'The snapshot is closed. Take a new one.');
    collected.unregister(this);
    await releaseSnapshot(this.#held);
  }

  /** `close()`, for `await using`. */
  [asyncDispose](): Promise<void> {
    return this.close();
  }
}
