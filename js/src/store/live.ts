/**
 * Queries that are kept up to date.
 *
 * Invariant: each value that subscribers get is from one read point. When writes have stopped, the last value is that of the store
 * as it then is. However many changes arrive while a query runs, it runs once after them. Once stopped, it reads nothing more.
 */

import { feedOf, pageOf } from '../changes/changes.ts';
import { Reader } from '../changes/feed.ts';
import type { LiveCount, LiveRange } from '../changes/types.ts';
import type { Client } from '../client/client.ts';
import type { Operations } from '../client/operations.ts';
import type { ByteRange } from '../codec/range.ts';
import { hasCode } from '../errors.ts';
import { type Operation, rawBytes } from '../protocol/frame-writer.ts';
import { backOff } from '../transaction/retry.ts';
import type { KeyRange } from '../types.ts';
import type { ReadView } from './read-view.ts';
import type { Snapshot } from './snapshot.ts';

/** A value, and the sequence after which changes may change it. */
interface Reading {
  readonly value: unknown;
  readonly since: number;
}

/** What a query returns for its range. A count has neither `reverse` nor `limit`. */
export interface LiveTarget extends Omit<LiveRange<never>, 'as' | keyof KeyRange> {
  as?: LiveRange<never>['as'] | LiveCount<never>['as'];
}

/** A query. */
interface Query<K, V> {
  readonly client: Client;
  readonly store: ReadView<K, V> & { snapshot(): Snapshot<K, V> };
  readonly operations: Operations<K, V>;
  /** The target of its reads: a function that reads a snapshot, or the options for a range; if undefined, the value of a key. */
  readonly target: ((view: Snapshot<K, V>) => unknown) | LiveTarget | undefined;
  /** The bytes that it depends on: the range, or a range with only the key. */
  readonly bytes: ByteRange;
  /** Asks for the sequence of the store at the call. */
  readonly now: Operation<undefined, undefined, number>;
}

/** Runs a query until the signal aborts: at once, and again after changes. */
export async function keepLive<K, V>(
  query: Query<K, V>,
  emit: (value: unknown) => void,
  signal: AbortSignal,
): Promise<void> {
  const { client } = query;
  const feed = feedOf(client);
  // One change is enough to run the query again.
  const wanted = pageOf(query.bytes, true, 1);
  const read = readerOf(query);
  const reader = new Reader();
  signal.addEventListener('abort', () => reader.end(), { once: true });
  for (let attempt = 1; !signal.aborted; ) {
    const { aborts } = client;
    const reading = await read().catch((error: unknown) => {
      // If all calls were given up meanwhile (the leader does not answer, or its engine failed), the error may come from that.
      if (client.aborts === aborts) orAgain(error);
    });
    if (signal.aborted) return;
    if (reading === undefined) {
      await backOff(attempt++, undefined);
      continue;
    }
    attempt = 1;
    emit(reading.value);
    await feed.next(wanted, reading.since, reader);
  }
}

/**
 * Throws the error, unless another read point may answer the query: an import has put the indexes of a collection out of date, or the
 * leader is gone.
 */
function orAgain(error: unknown): void {
  if (!hasCode(error, 'VARVE_RETRY', 'VARVE_LEADER_STALLED')) throw error;
}

/** A function that reads the value of a query. Reads called in one turn have one read point. */
function readerOf<K, V>(query: Query<K, V>): () => Promise<Reading> {
  const { client, store, target, now } = query;
  const sequence = (): Promise<number> => client.submit(now, undefined, undefined, 0);
  if (typeof target === 'function') {
    return async () => {
      const asked = sequence();
      const view = store.snapshot();
      try {
        const [since, value] = await Promise.all([asked, (async () => target(view))()]);
        return { value, since };
      } finally {
        await view.close();
      }
    };
  }
  return async () => {
    const [since, value] = await Promise.all([
      sequence(),
      target === undefined ? keyOf(query) : rangeOf(query, target),
    ]);
    return { value, since };
  };
}

async function keyOf<K, V>({ client, operations, bytes }: Query<K, V>): Promise<unknown> {
  const getEntry = { ...operations.getEntry, key: rawBytes };
  return (await client.submit(getEntry, bytes.lower?.key as Uint8Array, undefined, 0))?.value;
}

async function rangeOf<K, V>({ store, bytes }: Query<K, V>, { as, reverse, limit }: LiveTarget): Promise<unknown> {
  if (as === 'count') return store.countBytes(bytes);
  return store.scanBytes(as === 'keys' || as === 'values' ? as : 'entries', bytes, { reverse, limit }).toArray();
}
