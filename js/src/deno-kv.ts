/**
 * `varve/deno-kv`: stores in Deno KV, in the `deno` binary and on Deno hosts without persistent files.
 *
 * Invariant: importing this uses nothing of Deno; it is an adapter for the option `storage` of `varve`.
 */

import { invalid } from './errors.ts';
import { checkOptions, type Known } from './options.ts';
import type { StorageAdapter } from './storage/adapter.ts';
import { DenoKvStorage } from './storage/denokv/adapter.ts';
import { KEY_BYTES_MAX, keyBytes } from './storage/denokv/pack.ts';
import type { Kv, KvKey } from './storage/denokv/platform.ts';

export { VarveError, type VarveErrorCode } from './errors.ts';
export type { StorageAdapter } from './storage/adapter.ts';
export type { Kv, KvAtomic, KvEntry, KvKey, KvKeyPart, KvReadOptions } from './storage/denokv/platform.ts';

/** Shorter than the default `lockTimeout` of `open`: so an owner that ended does not block the next `open` for longer than `lockTimeout`. */
const LEASE_MS = 4000;
const LEASE_MS_MIN = 1000;
/** Most bytes of a prefix: the rest of a key is for the longest name of a store. */
const PREFIX_BYTES_MAX = KEY_BYTES_MAX / 2;

/** Options of `denoKv`. */
export interface DenoKvOptions {
  /** Prefix of the keys of all stores. Default `['varve']`. */
  readonly prefix?: KvKey | undefined;
  /**
   * Milliseconds for which a store belongs to the isolate that opened it. The lease is renewed when a third of it is over. After an
   * owner ended, others are refused for this long. At least 1,000; default 4,000.
   */
  readonly lease?: number | undefined;
}

const DENO_KV: Known<DenoKvOptions> = { prefix: 1, lease: 1 };

/**
 * Stores in a database of Deno KV. One isolate has a store open at a time. Others wait for the time that the option `lockTimeout`
 * of `open` gives, and then get `VARVE_LOCKED`. If the owner ended, or was frozen for longer than its lease, another isolate takes the
 * store over. If the old owner wakes up, its next write fails with `VARVE_LOCKED` and changes nothing.
 *
 * A write resolves when Deno KV has it: `relaxed` is as durable as `strict`. While an operation of Deno KV is running, new writes
 * are collected; they go together into the next operation. Reads that find their bytes in memory do not call Deno KV.
 *
 * @example
 * import { open } from 'npm:varve';
 * import { denoKv } from 'npm:varve/deno-kv';
 * const db = await open('notes', { storage: denoKv(await Deno.openKv()) });
 */
export function denoKv(kv: Kv, options: DenoKvOptions = {}): StorageAdapter {
  checkOptions(options, DENO_KV);
  const { prefix = ['varve'], lease = LEASE_MS } = options;
  if (typeof (kv as Kv | undefined)?.atomic !== 'function') {
    throw invalid('denoKv takes what Deno.openKv() resolves with: await it.');
  }
  if (!Array.isArray(prefix) || keyBytes(prefix) > PREFIX_BYTES_MAX) {
    throw invalid(`prefix is a key of Deno KV of at most ${PREFIX_BYTES_MAX} bytes.`);
  }
  if (!(lease >= LEASE_MS_MIN && lease <= 2 ** 31 - 1)) {
    throw invalid('lease is a number of milliseconds from 1,000 to 2^31 - 1.');
  }
  return new DenoKvStorage(kv, { prefix: [...prefix], leaseMs: lease });
}
