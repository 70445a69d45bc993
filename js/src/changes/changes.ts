/**
 * Following the changes of a store, loaded at its first use: few programs need it.
 *
 * Invariant: all readers of a store share one feed, which has at most one request waiting in the engine.
 */

import type { Client } from '../client/client.ts';
import type { Operations } from '../client/operations.ts';
import { type ByteRange, halfOpen } from '../codec/range.ts';
import { ChangeKind, type PageWanted, pageWanted, type RawChange } from '../protocol/change-page.ts';
import { ChangeSource } from './change-source.ts';
import { deletedRange } from './deleted-range.ts';
import { Feed } from './feed.ts';
import type { Change } from './types.ts';

/** The parts that the store passes in. */
interface ChangesParts<K, V> {
  readonly client: Client;
  readonly operations: Operations<K, V>;
}

/** The arguments of a call that follows changes. */
interface ChangesRequest {
  readonly range: ByteRange;
  readonly since: number | Promise<number>;
  readonly keysOnly: boolean;
  readonly signal: AbortSignal | undefined;
}

const feeds = new WeakMap<Client, Feed>();

/** The feed of a client. */
export function feedOf(client: Client): Feed {
  const feed = feeds.get(client) ?? new Feed(client);
  feeds.set(client, feed);
  return feed;
}

/** The pages that a reader of a range requests. */
export function pageOf(range: ByteRange, keysOnly: boolean, bytesMax?: number): PageWanted {
  const { start, end } = halfOpen(range);
  return pageWanted(start, end, keysOnly, bytesMax);
}

/** The changes of a range. */
export function follow<K, V>(parts: ChangesParts<K, V>, wanted: ChangesRequest): ChangeSource<K, V> {
  const { client, operations } = parts;
  const { range, since, keysOnly, signal } = wanted;
  const { keys, values } = operations;
  const change = ({ kind, sequence, key, value, expiresAt }: RawChange): Change<K, V> => {
    if (kind === ChangeKind.deleteRange)
      return { type: 'deleteRange', range: deletedRange(key, value, keys), sequence };
    const name = keys.read(key, 0, key.length);
    if (kind === ChangeKind.delete) return { type: 'delete', key: name, sequence };
    // With keysOnly the caller's value type includes undefined.
    // Other readers may have the same page, so the value is copied.
    const read = keysOnly ? (undefined as V) : values.read(value.slice(), 0, value.length);
    return { type: 'set', key: name, value: read, sequence, expiresAt };
  };
  return new ChangeSource({ feed: feedOf(client), wanted: pageOf(range, keysOnly), since, signal, change });
}
