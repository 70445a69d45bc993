/**
 * Values of a store kept in the tab, and dropped when they change: the cache of `open({ cache })`.
 *
 * Invariants:
 * - A value is returned from here only under these conditions: since it was read, no write to its key was called in this tab and no
 *   change to it has arrived. It is younger than `ttl` and not expired. So a tab sees its own writes at once, and those of others
 *   when the feed has reported them, or `ttl` is over.
 * - The result of a read that was running when its key was written, or when everything was dropped, is not kept.
 * - Bytes are kept, and decoded for each answer: so a caller that changes a value does not change the cache.
 */

import type { Client } from '../client/client.ts';
import type { Operations } from '../client/operations.ts';
import { textOfBytes } from '../codec/byte-text.ts';
import { BatchKind, ENTRY_HEAD_BYTES, Op, Status } from '../protocol/frame.ts';
import type { FrameReader } from '../protocol/frame-reader.ts';
import { type Operation, rawBytes } from '../protocol/frame-writer.ts';
import type { CacheOptions } from '../types.ts';
import { feedOf, pageOf } from './changes.ts';
import { Reader } from './feed.ts';
import { ChangeKind } from './page.ts';
import { type Kept, RecentValues } from './recent-values.ts';

const EVERYTHING = { lower: undefined, upper: undefined, empty: false };
const MAX_ENTRIES = 1000;
const MAX_BYTES = 4 * 1024 * 1024;
const TTL_MS = 5000;
const ITEM_HEAD_BYTES = 12;

/** Makes a client answer reads from values kept here. Returns a function that drops them all. */
export function cacheReads<K, V>(
  client: Client,
  operations: Operations<K, V>,
  now: Operation<undefined, undefined, number>,
  options: CacheOptions,
): () => void {
  const cache = new ReadCache(client, operations, now, options);
  client.submit = cache.submit;
  // The previous leader may have committed changes that it did not report to anybody.
  client.numbers.open.add({ restore: () => cache.clear() });
  return () => cache.clear();
}

class ReadCache<K, V> {
  readonly #client: Client;
  readonly #operations: Operations<K, V>;
  readonly #now: Operation<undefined, undefined, number>;
  readonly #ttl: number;
  readonly #values: RecentValues;
  readonly #read: Operation<Uint8Array, undefined, Kept>;
  readonly #send: Client['submit'];
  /** Whether changes arrive. */
  #isFed = false;

  constructor(
    client: Client,
    operations: Operations<K, V>,
    now: Operation<undefined, undefined, number>,
    { maxEntries = MAX_ENTRIES, maxBytes = MAX_BYTES, ttl = TTL_MS }: CacheOptions,
  ) {
    this.#client = client;
    this.#operations = operations;
    this.#now = now;
    this.#ttl = ttl;
    this.#values = new RecentValues(maxEntries, maxBytes);
    this.#send = client.submit.bind(client);
    this.#read = {
      code: Op.getEntry,
      key: rawBytes,
      value: undefined,
      read: (answer) => this.#keepable(answer),
    };
    this.#feed();
  }

  /** Replaces the client's own `submit`. */
  readonly submit: Client['submit'] = (operation, given, value, level, signal) => {
    const { get, has, getMany, keys } = this.#operations;
    const any: unknown = operation;
    let key = given;
    try {
      // The key is read here and then sent on, so it is made plain first.
      if ((operation.key as unknown) === keys) key = keys.plain(given as unknown as K) as unknown as typeof given;
    } catch (error) {
      return Promise.reject(error);
    }
    if (any === get || any === has || any === getMany) {
      if (level === 0 && !signal?.aborted && this.#isUsable()) {
        const answer =
          any === getMany
            ? this.#many(value as unknown as readonly K[], signal)
            : this.#one(any, key as unknown as K, signal);
        if (answer !== undefined) return answer as Promise<never>;
      }
    } else this.#drop(operation.code, key, value);
    return this.#send(operation, key, value, level, signal);
  };

  /** Drops everything; the results of running reads are not kept either. */
  clear(): void {
    this.#values.dropRange('', undefined);
  }

  #isUsable(): boolean {
    if (!this.#isFed) this.#feed();
    try {
      this.#client.ensureOpen();
      return true;
    } catch {
      return false;
    }
  }

  #one(operation: unknown, key: K, signal: AbortSignal | undefined): Promise<V | boolean | undefined> | undefined {
    const bytes = this.#bytesOf(key);
    if (bytes === undefined) return undefined;
    if (operation === this.#operations.get) return this.#get(bytes, signal);
    const kept = this.#values.get(textOfBytes(bytes), Date.now());
    return kept === undefined ? undefined : Promise.resolve(kept.bytes !== undefined);
  }

  /** Keys that are not here are requested together, in the frame of the turn. */
  #many(keys: readonly K[], signal: AbortSignal | undefined): Promise<(V | undefined)[]> | undefined {
    const encoded = keys.map((key) => this.#bytesOf(key));
    if (encoded.includes(undefined)) return undefined;
    return Promise.all(encoded.map((bytes) => this.#get(bytes as Uint8Array, signal)));
  }

  async #get(key: Uint8Array, signal: AbortSignal | undefined): Promise<V | undefined> {
    const id = textOfBytes(key);
    const kept = this.#values.get(id, Date.now());
    if (kept !== undefined) return this.#valueOf(kept.bytes);
    const ticket = this.#values.await(id);
    try {
      const found = await this.#send(this.#read, key, undefined, 0, signal);
      if (this.#isFed) this.#values.keep(ticket, found);
      return this.#valueOf(found.bytes);
    } finally {
      this.#values.leave(ticket);
    }
  }

  #valueOf(bytes: Uint8Array | undefined): V | undefined {
    return bytes === undefined ? undefined : this.#operations.values.read(bytes.slice(), 0, bytes.length);
  }

  #keepable(answer: FrameReader): Kept {
    const until = Date.now() + this.#ttl;
    if (answer.status === Status.missing) return { bytes: undefined, until };
    const expires = answer.entryHead().expires?.getTime() ?? until;
    return { bytes: answer.bytes.slice(answer.start + ENTRY_HEAD_BYTES, answer.end), until: Math.min(until, expires) };
  }

  /** Drops the values that a write of this tab is about to change. */
  #drop(code: number, key: unknown, value: unknown): void {
    if (code === Op.set || code === Op.delete) {
      const bytes = this.#bytesOf(key as K);
      if (bytes !== undefined) this.#values.drop(textOfBytes(bytes));
    } else if (code === Op.deleteRange) this.#dropRange(key as Uint8Array, value as Uint8Array);
    else if (code === Op.batch) this.#dropBatch(value as Uint8Array);
  }

  #dropRange(start: Uint8Array, end: Uint8Array): void {
    this.#values.dropRange(textOfBytes(start), end.length === 0 ? undefined : textOfBytes(end));
  }

  /** Drops the values that a batch changes; its layout is in protocol/frame.ts. */
  #dropBatch(bytes: Uint8Array): void {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    for (let at = 4; at + ITEM_HEAD_BYTES <= bytes.length; ) {
      const keyAt = at + ITEM_HEAD_BYTES;
      const valueAt = keyAt + view.getUint32(at + 4, true);
      const end = valueAt + view.getUint32(at + 8, true);
      const kind = bytes[at];
      const key = bytes.subarray(keyAt, valueAt);
      if (kind === BatchKind.set || kind === BatchKind.delete) this.#values.drop(textOfBytes(key));
      else if (kind === BatchKind.deleteRange) this.#dropRange(key, bytes.subarray(valueAt, end));
      at = (end + 3) & ~3;
    }
  }

  /** The bytes of a key; undefined for an invalid key, which the store then refuses. */
  #bytesOf(key: K): Uint8Array | undefined {
    try {
      return this.#operations.keys.encode(key);
    } catch {
      return undefined;
    }
  }

  /** Follows all changes until that fails; then the next read starts it again. Values read before it began are not kept. */
  #feed(): void {
    this.#isFed = true;
    this.#follow().catch(() => {
      this.#isFed = false;
      this.clear();
    });
  }

  async #follow(): Promise<never> {
    let since = await this.#send(this.#now, undefined, undefined, 0);
    const wanted = pageOf(EVERYTHING, true);
    const reader = new Reader();
    for (;;) {
      const moved = await feedOf(this.#client).next(wanted, since, reader);
      if (moved === undefined) throw new RangeError('the feed ended');
      since = moved.position;
      if (moved.isGap) this.clear();
      else {
        for (const { kind, key, value } of moved.page.changes) {
          if (kind === ChangeKind.deleteRange) this.#dropRange(key, value);
          else this.#values.drop(textOfBytes(key));
        }
      }
    }
  }
}
