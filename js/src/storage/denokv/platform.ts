/**
 * The part of Deno KV that Varve uses, as structural types: the result of `Deno.openKv()` fits them, and so does a test double.
 *
 * Invariant: types only. The declarations of the package depend on nobody's version of Deno's types.
 */

/** A part of a key. */
export type KvKeyPart = Uint8Array | string | number | bigint | boolean;

/** A key: its parts are ordered one after another. */
export type KvKey = readonly KvKeyPart[];

/** The entry of a key; value and versionstamp are null where there is none. */
export interface KvEntry {
  /** Deno's type of keys also allows symbols, but no stored key has one. */
  readonly key: readonly (KvKeyPart | symbol)[];
  readonly value: unknown;
  readonly versionstamp: string | null;
}

/** How fresh a read is. */
export interface KvReadOptions {
  readonly consistency?: 'strong' | 'eventual';
}

/** Changes that are made all or not at all; none is made where a check fails. */
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

/** The options of all reads here: they see the last commit. */
export const STRONG: KvReadOptions = { consistency: 'strong' };
