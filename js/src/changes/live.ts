/**
 * Queries that are kept up to date.
 *
 * Invariant: a value that subscribers get is that of the store at one moment; the last one they get, once writes cease, is that of the
 * store as it then is. However many changes come while a query runs, it runs once after them. Once it is stopped it reads nothing more.
 */

import type { ByteRange } from '../codec/range.ts';
import type { ReadView } from '../store/read-view.ts';
import type { Store } from '../store/store.ts';
import type { Client } from '../worker/client.ts';
import { feedOf, pageOf } from './changes.ts';
import type { LiveRange } from './types.ts';

/** A value, and the sequence behind which changes are changes to it. */
interface Reading {
  readonly value: unknown;
  readonly since: number;
}

/** A query. */
interface Query {
  readonly client: Client;
  /** What it depends on. */
  readonly range: ByteRange;
  readonly read: () => Promise<Reading>;
}

/** What a query reads: what `read` makes of a snapshot, or a range, or a key. */
interface Wanted<K, V> {
  readonly store: Store<K, V>;
  readonly read: ((view: ReadView<K, V>) => unknown) | undefined;
  readonly isOfRange: boolean;
  readonly range: LiveRange<K>;
  readonly key: K;
  /** How far the store is at the call. */
  readonly now: () => Promise<number>;
}

/** Runs a query until it is stopped: at once, and again after changes. */
export async function keepLive(query: Query, emit: (value: unknown) => void, stopped: () => boolean): Promise<void> {
  const feed = feedOf(query.client);
  // One change is enough to know.
  const request = pageOf(query.range, true, 1);
  while (!stopped()) {
    const { value, since } = await query.read();
    if (stopped()) return;
    emit(value);
    await feed.next({ ...request, since }, stopped);
  }
}

/** What reads the value of a query. What is called in one turn is of one moment. */
export function reader<K, V>({ store, read, isOfRange, range, key, now }: Wanted<K, V>): () => Promise<Reading> {
  if (read !== undefined) {
    return async () => {
      const since = now();
      const view = await store.snapshot();
      try {
        return { value: await read(view), since: await since };
      } finally {
        await view.close();
      }
    };
  }
  const value = isOfRange ? () => rangeOf(store, range) : () => store.getEntry(key).then((entry) => entry?.value);
  return async () => {
    const since = now();
    return { value: await value(), since: await since };
  };
}

function rangeOf<K, V>(store: Store<K, V>, { as = 'entries', ...range }: LiveRange<K>): Promise<unknown> {
  if (as === 'count') return store.count(range);
  return collected<unknown>(
    as === 'keys' ? store.keys(range) : as === 'values' ? store.values(range) : store.entries(range),
  );
}

async function collected<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}
