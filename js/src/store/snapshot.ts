/**
 * A snapshot of the asynchronous store.
 *
 * Invariant: the engine lets go of it exactly once: when it is closed, or when it is collected. Iterators that began before
 * go on to their ends.
 */

import { VarveError } from '../errors.ts';
import type { Seen } from '../protocol/frame-reader.ts';
import type { KeyCodec } from '../types.ts';
import type { Client } from '../worker/client.ts';
import { whenCollected } from './collected.ts';
import { asyncDispose } from './dispose.ts';
import { type Operations, snapshot_close, snapshot_open } from './operations.ts';
import { levelOfSnapshot, type Moment, ReadView } from './read-view.ts';

interface Held {
  readonly client: Client;
  readonly number: number;
}

/** A snapshot that was taken. */
export interface Taken extends Seen {
  readonly number: number;
}

/** Takes a snapshot of the store at this call; `letGo` ends it. */
export async function take(client: Client): Promise<Taken> {
  const { numbers } = client;
  const number = numbers.ofSnapshot();
  try {
    const seen = await client.submit(snapshot_open, undefined, undefined, levelOfSnapshot(number));
    numbers.snapshots.set(number, seen);
    return { ...seen, number };
  } catch (error) {
    numbers.snapshots.delete(number);
    throw error;
  }
}

/** Lets a snapshot go; its number may be another one's afterwards. */
export function letGo({ client, number }: Held): Promise<void> {
  client.numbers.snapshots.delete(number);
  // A store that is closed has let go of it already.
  return client.submit(snapshot_close, undefined, undefined, levelOfSnapshot(number)).catch(() => undefined);
}

const forgotten = whenCollected<Held>(letGo);

/**
 * The store as it was when `store.snapshot()` was called: all its reads, none of its writes.
 *
 * @example
 * await using snapshot = await db.snapshot();
 * const total = await snapshot.count();
 * for await (const [key, value] of snapshot) show(key, value, total);
 */
export class Snapshot<K, V> extends ReadView<K, V> implements AsyncDisposable {
  /** The sequence of the last write that it sees. */
  readonly sequence: number;
  readonly #held: Held;
  readonly #moment: Moment;

  /** @internal Made by `store.snapshot()`. */
  constructor(client: Client, operations: Operations<K, V>, key_codec: KeyCodec<K> | undefined, taken: Taken) {
    const moment: Moment = { number: taken.number, refusal: undefined };
    super(client, operations, key_codec, moment);
    this.sequence = taken.sequence;
    this.#moment = moment;
    this.#held = { client, number: taken.number };
    forgotten.register(this, this.#held, this);
  }

  /** @internal Its number in the engine. */
  get number(): number {
    return this.#held.number;
  }

  /** Lets go of it; every later read rejects with `VARVE_CLOSED`. Closing twice is closing once. */
  async close(): Promise<void> {
    if (this.#moment.refusal !== undefined) return;
    this.#moment.refusal = new VarveError('VARVE_CLOSED', 'The snapshot is closed. Take a new one.');
    forgotten.unregister(this);
    await letGo(this.#held);
  }

  /** `close()`, for `await using`. */
  [asyncDispose](): Promise<void> {
    return this.close();
  }
}
