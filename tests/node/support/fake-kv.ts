/**
 * Deno KV in memory, with the limits of the real one. Its connections can fail at any call, or die there.
 *
 * Invariant: it accepts nothing that the real one would refuse. The limits are those of `deno` 2.9, but for checks: 10, as documented.
 * Every answer comes in a later turn. A caller that does not ask for strong consistency is refused.
 */

import { serialize } from 'node:v8';
import type {
  Kv,
  KvAtomic,
  KvEntry,
  KvKey,
  KvKeyPart,
  KvReadOptions,
} from '../../../js/src/storage/denokv/platform.ts';

/** A key that has a value. */
interface StoredEntry extends KvEntry {
  readonly key: KvKey;
}

/** The stored entries. */
export class FakeKvState {
  readonly entries = new Map<string, StoredEntry>();
  commits = 0;
  /** Bytes that all values may take together; an operation that takes none of them is never refused. */
  roomBytes = Number.POSITIVE_INFINITY;
  /** Bytes of the largest operation so far. */
  operationBytesMax = 0;

  /** The keys in order, of which `part` is one part. */
  keys(part: KvKeyPart): KvKey[] {
    return this.#sorted().flatMap(({ key }) => (key.includes(part) ? [key] : []));
  }

  /** Acts as if every holder of a store had been gone for longer than the lease. */
  expire(): void {
    for (const [id, entry] of this.entries) {
      const head = entry.value as { holder?: { until: number } | null };
      if (head.holder) this.entries.set(id, { ...entry, value: { ...head, holder: { ...head.holder, until: 0 } } });
    }
  }

  /** Bytes of all values. */
  get bytes(): number {
    return [...this.entries.values()].reduce((bytes, { value }) => bytes + valueBytes(value), 0);
  }

  under(prefix: KvKey): StoredEntry[] {
    const begins = (key: KvKey): boolean => prefix.every((part, i) => compareParts(part, key[i] ?? false) === 0);
    return this.#sorted().filter(({ key }) => key.length > prefix.length && begins(key));
  }

  #sorted(): StoredEntry[] {
    return [...this.entries.values()].sort((a, b) => compareKeys(a.key, b.key));
  }
}

/** How a call fails: it is not done, it is done but gets no answer, or the caller dies before or after it. */
export type Fault = 'refused' | 'unheard' | 'dead before' | 'dead after';

/** A connection. */
export class FakeKv implements Kv {
  readonly state: FakeKvState;
  /** Calls so far: reads and operations. */
  calls = 0;
  /** Decides how a call fails, by its number. */
  fault: (call: number, kind: 'read' | 'commit') => Fault | undefined = () => undefined;
  /** Resolves when the caller is dead: none of its requests is done or answered any more. */
  readonly died: Promise<void>;
  #die: () => void = () => undefined;
  #isDead = false;
  #refuses = false;

  constructor(state = new FakeKvState()) {
    this.state = state;
    this.died = new Promise((resolve) => {
      this.#die = resolve;
    });
  }

  /** Ends the caller. Its later requests are never answered, or are refused where somebody still waits for them. */
  kill(refuses = false): void {
    this.#isDead = true;
    this.#refuses = refuses;
    this.#die();
  }

  get(key: KvKey, options?: KvReadOptions): Promise<KvEntry> {
    return this.#call('read', () => this.#get(key, options));
  }

  getMany(keys: KvKey[], options?: KvReadOptions): Promise<KvEntry[]> {
    return this.#call('read', () => {
      if (keys.length > 10) throw new TypeError('Too many ranges (max 10)');
      return keys.map((key) => this.#get(key, options));
    });
  }

  async *list({ prefix }: { prefix: KvKey }, options?: KvReadOptions): AsyncGenerator<KvEntry> {
    const entries = await this.#call('read', () => {
      checkStrong(options);
      return this.state.under(prefix).map((entry) => structuredClone(entry));
    });
    yield* entries;
  }

  atomic(): KvAtomic {
    const { state } = this;
    const checks: { key: KvKey; versionstamp: string | null }[] = [];
    const mutations: { key: KvKey; value?: unknown }[] = [];
    const atomic: KvAtomic = {
      check(...more) {
        checks.push(...more);
        return atomic;
      },
      set(key, value) {
        mutations.push({ key, value: structuredClone(value) });
        return atomic;
      },
      delete(key) {
        mutations.push({ key });
        return atomic;
      },
      commit: () =>
        this.#call('commit', () => {
          state.operationBytesMax = Math.max(state.operationBytesMax, checkLimits(checks, mutations));
          const isSo = checks.every(
            (one) => (state.entries.get(idOf(one.key))?.versionstamp ?? null) === one.versionstamp,
          );
          if (!isSo) return { ok: false } as const;
          const more = mutations.reduce((bytes, { key, value }) => {
            const before = state.entries.get(idOf(key));
            return bytes + (value === undefined ? 0 : valueBytes(value)) - (before ? valueBytes(before.value) : 0);
          }, 0);
          if (more > 0 && state.roomBytes < Number.POSITIVE_INFINITY && state.bytes + more > state.roomBytes) {
            throw new Error('database or disk is full');
          }
          const versionstamp = String(++state.commits).padStart(20, '0');
          for (const { key, value } of mutations) {
            if (value === undefined) state.entries.delete(idOf(key));
            else state.entries.set(idOf(key), { key, value, versionstamp });
          }
          return { ok: true, versionstamp } as const;
        }),
    };
    return atomic;
  }

  #get(key: KvKey, options: KvReadOptions | undefined): KvEntry {
    checkStrong(options);
    return structuredClone(this.state.entries.get(idOf(key)) ?? { key, value: null, versionstamp: null });
  }

  async #call<T>(kind: 'read' | 'commit', act: () => T): Promise<T> {
    const fault = this.#isDead ? 'dead before' : this.fault(++this.calls, kind);
    await new Promise((resolve) => setImmediate(resolve));
    if (fault === 'refused') throw new Error('The connection was reset.');
    if (this.#refuses) throw new Error('The connection was closed.');
    if (fault === 'dead before') this.kill();
    const answer = fault === 'dead before' || this.#isDead ? undefined : act();
    if (fault === 'dead after') this.kill();
    if (fault === 'unheard') throw new Error('The connection was reset.');
    return this.#isDead ? new Promise(() => undefined) : (answer as T);
  }
}

function checkStrong(options: KvReadOptions | undefined): void {
  if (options?.consistency !== 'strong') throw new Error('A store must read what was written last.');
}

/** Throws as the real one does; returns the bytes of the operation. */
function checkLimits(checks: readonly { key: KvKey }[], mutations: readonly { key: KvKey; value?: unknown }[]): number {
  if (checks.length > 10) throw new TypeError('Too many checks (max 10)');
  if (mutations.length > 1000) throw new TypeError('Too many mutations (max 1000)');
  let [all, keys] = [0, 0];
  for (const { key } of [...checks, ...mutations]) {
    if (key.length === 0) throw new TypeError('Key cannot be empty');
    const bytes = encodedBytes(key);
    if (bytes > 2048) throw new TypeError('Key too large for write (max 2048 bytes)');
    keys += bytes;
    all += bytes;
  }
  for (const { key, value } of mutations) {
    if (value === undefined) continue;
    const bytes = valueBytes(value);
    if (bytes > 65_536) throw new TypeError('Value too large (max 65536 bytes)');
    all += bytes + encodedBytes(key);
  }
  if (keys > 81_920) throw new TypeError('Total key size too large (max 81920 bytes)');
  if (all > 819_200) throw new TypeError('Total mutation size too large (max 819200 bytes)');
  return all;
}

function valueBytes(value: unknown): number {
  return value instanceof Uint8Array ? value.length : serialize(value).length;
}

/** Encodes keys as the real one does: a mark, the bytes with each zero escaped, and an end for parts that have a length. */
function encodedBytes(key: KvKey): number {
  let bytes = 0;
  for (const part of key) {
    if (typeof part === 'number') bytes += 9;
    else if (typeof part === 'boolean') bytes += 1;
    else if (typeof part === 'bigint') bytes += 3 + part.toString(16).length;
    else {
      const raw = typeof part === 'string' ? new TextEncoder().encode(part) : part;
      bytes += 2 + raw.length + raw.filter((byte) => byte === 0).length;
    }
  }
  return bytes;
}

function idOf(key: KvKey): string {
  return key.map((part) => `${typeof part}:${String(part).length}:${String(part)}`).join('/');
}

const RANKS = ['object', 'string', 'number', 'bigint', 'boolean'];

function compareParts(a: KvKeyPart, b: KvKeyPart): number {
  const ranks = RANKS.indexOf(typeof a) - RANKS.indexOf(typeof b);
  if (ranks !== 0) return ranks;
  if (typeof a === 'string' || typeof a === 'object')
    return Buffer.compare(Buffer.from(a as string), Buffer.from(b as string));
  return a < b ? -1 : a > b ? 1 : 0;
}

function compareKeys(a: KvKey, b: KvKey): number {
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    const order = compareParts(a[i] as KvKeyPart, b[i] as KvKeyPart);
    if (order !== 0) return order;
  }
  return a.length - b.length;
}
