/**
 * `store.update()`: reads a value, lets the caller's function change it, and writes it unless somebody else wrote the key meanwhile.
 *
 * Invariant: the new value was made from the value that it replaces, and keeps its expiry unless the caller gives another one.
 * Updates of one key by one store run one after another; they race with those of other clients, and the loser begins again.
 */

import type { Client } from '../client/client.ts';
import { batchOperation, type Operations } from '../client/operations.ts';
import { BlobSink } from '../codec/blobs.ts';
import { textOfBytes } from '../codec/byte-text.ts';
import { BatchWriter } from '../protocol/batch-writer.ts';
import { namedConflict } from '../protocol/conflict.ts';
import { rawBytes } from '../protocol/frame-writer.ts';
import { isConflict } from '../transaction/again.ts';
import { lifetimeOf } from '../transaction/lifetime.ts';
import { ATTEMPTS_MAX, type Call, inTurn } from '../transaction/turns.ts';
import type { Receipt, UpdateOptions } from '../types.ts';
import { readBlobs } from './until-ended.ts';

/** The parts of a store that its updates use. */
export interface UpdateParts<K, V> {
  readonly client: Client;
  readonly operations: Operations<K, V>;
  /** Number of the durability level of commits. */
  readonly level: number;
}

/** Updates the key with these bytes. */
export function update<K, V>(
  parts: UpdateParts<K, V>,
  key: Uint8Array,
  change: (value: V | undefined) => V | PromiseLike<V>,
  options: UpdateOptions = {},
): Promise<Receipt> {
  const { client, operations, level } = parts;
  const { signal } = options;
  const getEntry = { ...operations.getEntry, key: rawBytes };
  const attempt = async (call: Call): Promise<Receipt> => {
    const entry = await client.submit(getEntry, key, undefined, 0, signal);
    const value = await call(() => change(entry?.value));
    const lifetime = lifetimeOf(options, entry);
    const sink = new BlobSink(512);
    const writer = new BatchWriter(sink);
    writer.set(rawBytes, key, operations.values, value, { ...lifetime, ifSequence: entry?.sequence ?? null });
    await call(() => readBlobs(client, sink, signal));
    return client.submit(batchOperation, undefined, writer, level, signal);
  };
  return inTurn({ owner: client, key: textOfBytes(key), signal }, attempt, {
    is: isConflict,
    last: (error) => namedConflict(error, operations.keys, `Others wrote the key each of ${ATTEMPTS_MAX} times`),
  });
}
