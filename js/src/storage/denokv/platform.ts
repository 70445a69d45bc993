/**
 * What is used of Deno KV, as structure: what `Deno.openKv()` resolves with fits it, and so does a stand-in of tests.
 *
 * Invariant: types only. The declarations of the package depend on nobody's version of Deno's types.
 */

/** A part of a key. */
export type KvKeyPart = Uint8Array | string | number | bigint | boolean;

/** A key: its parts are ordered one after another. */
export type KvKey = readonly KvKeyPart[];

/** What is under a key; both null where there is nothing. */
export interface KvEntry {
  /** Deno's type of keys has symbols too, which no key that is stored has. */
  readonly key: readonly (KvKeyPart | symbol)[];
  readonly value: unknown;
  readonly versionstamp: string | null;
}

/** How fresh a read is. */
export interface KvReadOptions {
  readonly consistency?: 'strong' | 'eventual';
}

/** Changes that are made all or not at all, and not at all where a check fails. */
export interface KvAtomic {
  check(...checks: { key: KvKey; versionstamp: string | null }[]): KvAtomic;
  set(key: KvKey, value: unknown): KvAtomic;
  delete(key: KvKey): KvAtomic;
  commit(): Promise<{ readonly ok: true; readonly versionstamp: string } | { readonly ok: false }>;
}

/** A database of Deno KV. */
export interface Kv {
  get(key: KvKey, options?: KvReadOptions): Promise<KvEntry>;
  getMany(keys: KvKey[], options?: KvReadOptions): Promise<KvEntry[]>;
  list(selector: { prefix: KvKey }, options?: KvReadOptions): AsyncIterable<KvEntry>;
  atomic(): KvAtomic;
}

/** Of all reads here: they see what was committed last. */
export const STRONG: KvReadOptions = { consistency: 'strong' };
