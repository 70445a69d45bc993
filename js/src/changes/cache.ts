/**
 * Values of a store kept in the tab, and given up when they change: what `open({ cache })` asks for.
 *
 * Invariants:
 * - A value is answered from here only while no write to its key was called in this tab since it was read, no change to it has
 *   arrived, and it is younger than `ttl` and not expired. So a tab sees its own writes at once, and those of others when the feed
 *   has told them, or `ttl` is over.
 * - An answer that was under way when its key was written, or when everything was given up, is not kept.
 * - Bytes are kept, and decoded for each answer: what a caller does to a value is its own affair.
 */

import { ByteSink } from '../codec/sink.ts';
import { BatchKind, Op, Status } from '../protocol/frame.ts';
import type { FrameReader } from '../protocol/frame-reader.ts';
import type { Encoder, Operation } from '../protocol/frame-writer.ts';
import type { Operations } from '../store/operations.ts';
import type { CacheOptions } from '../types.ts';
import type { Client } from '../worker/client.ts';
import { feedOf, pageOf } from './changes.ts';
import { ChangeKind } from './page.ts';
import { type Kept, RecentValues } from './recent-values.ts';

const EVERYTHING = { lower: undefined, upper: undefined, empty: false };
const ENTRIES = 1000;
const BYTES = 4 * 1024 * 1024;
const TTL_MS = 5000;
/** u64 sequence, f64 expiry: what the payload of getEntry begins with. */
const ENTRY_HEAD_BYTES = 16;
const ITEM_HEAD_BYTES = 12;

/** Has a client answer reads from values kept here. Gives what forgets them all. */
export function cacheReads<K, V>(
  client: Client,
  operations: Operations<K, V>,
  now: Operation<undefined, undefined, number>,
  options: CacheOptions,
): () => void {
  const cache = new ReadCache(client, operations, now, options);
  client.submit = cache.submit;
  // What the leader before had told nobody may be committed.
  client.numbers.open.add({ restore: () => cache.clear() });
  return () => cache.clear();
}

class ReadCache<K, V> {
  readonly #client: Client;
  readonly #operations: Operations<K, V>;
  readonly #now: Operation<undefined, undefined, number>;
  readonly #ttl: number;
  readonly #values: RecentValues;
  readonly #read: Operation<K, undefined, Kept>;
  readonly #send: Client['submit'];
  readonly #sink = new ByteSink(256);
  /** Changes arrive. */
  #isFed = false;

  constructor(
    client: Client,
    operations: Operations<K, V>,
    now: Operation<undefined, undefined, number>,
    { entries = ENTRIES, bytes = BYTES, ttl = TTL_MS }: CacheOptions,
  ) {
    this.#client = client;
    this.#operations = operations;
    this.#now = now;
    this.#ttl = ttl;
    this.#values = new RecentValues(entries, bytes);
    this.#send = client.submit.bind(client);
    this.#read = {
      code: Op.getEntry,
      key: operations.keys,
      value: undefined,
      read: (answer) => this.#keepable(answer),
    };
    this.#feed();
  }

  /** In the place of the client's own. */
  readonly submit: Client['submit'] = (operation, key, value, level, signal) => {
    const { get, has, getMany } = this.#operations;
    const any: unknown = operation;
    if (any === get || any === has || any === getMany) {
      if (level === 0 && !signal?.aborted && this.#isUsable()) {
        const answer =
          any === getMany
            ? this.#many(value as unknown as readonly K[], signal)
            : this.#one(any, key as unknown as K, signal);
        if (answer !== undefined) return answer as Promise<never>;
      }
    } else this.#forget(operation.code, key, value);
    return this.#send(operation, key, value, level, signal);
  };

  /** Forgets everything; what is under way is not kept either. */
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
    const id = this.#idOf(this.#operations.keys, key);
    if (id === undefined) return undefined;
    if (operation === this.#operations.get) return this.#get(id, key, signal);
    const kept = this.#values.get(id, Date.now());
    return kept === undefined ? undefined : Promise.resolve(kept.bytes !== undefined);
  }

  /** What is not here is asked for together, in the frame of the turn. */
  #many(keys: readonly K[], signal: AbortSignal | undefined): Promise<(V | undefined)[]> | undefined {
    const ids = keys.map((key) => this.#idOf(this.#operations.keys, key));
    if (ids.includes(undefined)) return undefined;
    return Promise.all(ids.map((id, i) => this.#get(id as string, keys[i] as K, signal)));
  }

  async #get(id: string, key: K, signal: AbortSignal | undefined): Promise<V | undefined> {
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

  /** Gives up what a write of this tab is about to change. */
  #forget(code: number, key: unknown, value: unknown): void {
    if (code === Op.set || code === Op.delete) {
      const id = this.#idOf(this.#operations.keys, key as K);
      if (id !== undefined) this.#values.drop(id);
    } else if (code === Op.deleteRange) this.#forgetRange(key as Uint8Array, value as Uint8Array);
    else if (code === Op.batch) this.#forgetBatch(value as Uint8Array);
  }

  #forgetRange(start: Uint8Array, end: Uint8Array): void {
    this.#values.dropRange(textOf(start), end.length === 0 ? undefined : textOf(end));
  }

  /** The picture of a batch is in protocol/frame.ts. */
  #forgetBatch(bytes: Uint8Array): void {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    for (let at = 4; at + ITEM_HEAD_BYTES <= bytes.length; ) {
      const key_at = at + ITEM_HEAD_BYTES;
      const value_at = key_at + view.getUint32(at + 4, true);
      const end = value_at + view.getUint32(at + 8, true);
      const kind = bytes[at];
      const key = bytes.subarray(key_at, value_at);
      if (kind === BatchKind.set || kind === BatchKind.delete) this.#values.drop(textOf(key));
      else if (kind === BatchKind.deleteRange) this.#forgetRange(key, bytes.subarray(value_at, end));
      at = (end + 3) & ~3;
    }
  }

  /** The bytes of a key as text; undefined for what is no key, which the store tells. */
  #idOf(format: Encoder<K>, key: K): string | undefined {
    const sink = this.#sink;
    sink.at = 0;
    try {
      format.write(key, sink);
    } catch {
      return undefined;
    }
    return textOf(sink.bytes.subarray(0, sink.at));
  }

  /** Follows all changes until that fails; the next read begins anew. Whatever was read before it began is not kept. */
  #feed(): void {
    this.#isFed = true;
    this.#follow().catch(() => {
      this.#isFed = false;
      this.clear();
    });
  }

  async #follow(): Promise<never> {
    let since = await this.#send(this.#now, undefined, undefined, 0);
    const request = pageOf(EVERYTHING, true);
    for (;;) {
      const moved = await feedOf(this.#client).next({ ...request, since }, () => false);
      if (moved === undefined) throw new RangeError('the feed ended');
      since = moved.position;
      if (moved.isGap) this.clear();
      else {
        for (const { kind, key, value } of moved.page.changes) {
          if (kind === ChangeKind.deleteRange) this.#forgetRange(key, value);
          else this.#values.drop(textOf(key));
        }
      }
    }
  }
}

/** Bytes as text of as many characters: texts compare as their bytes do. */
function textOf(bytes: Uint8Array): string {
  let text = '';
  for (const byte of bytes) text += String.fromCharCode(byte);
  return text;
}
