/**
 * `varve/deno`: stores in Deno KV, in the `deno` binary and where Deno is hosted without files that last.
 *
 * Invariant: importing this touches nothing of Deno; it is an adapter for the option `storage` of `varve`.
 */

import { VarveError } from './errors.ts';
import { checkOptions, type Known } from './options.ts';
import type { StorageAdapter } from './storage/adapter.ts';
import { DenoKvStorage } from './storage/denokv/adapter.ts';
import { KEY_BYTES_MAX, keyBytes } from './storage/denokv/pack.ts';
import type { Kv, KvKey } from './storage/denokv/platform.ts';

export { VarveError, type VarveErrorCode } from './errors.ts';
export type { AdapterWait, StorageAdapter } from './storage/adapter.ts';
export type { Kv, KvAtomic, KvEntry, KvKey, KvKeyPart, KvReadOptions } from './storage/denokv/platform.ts';

/** Shorter than the default `wait` of `open`: what died while it held a store keeps nobody out for so long. */
const LEASE_MS = 4000;
const LEASE_MS_MIN = 1000;
/** What a prefix leaves of a key for the longest name of a store. */
const PREFIX_BYTES_MAX = KEY_BYTES_MAX / 2;

/** Options of `denoKv`. */
export interface DenoKvOptions {
  /** What the keys of all stores begin with. Default `['varve']`. */
  readonly prefix?: KvKey | undefined;
  /**
   * Milliseconds for which a store belongs to whoever opened it, renewed once a third of them is over. Others are refused for
   * so long after a holder died. From 1,000; default 4,000.
   */
  readonly lease?: number | undefined;
}

const DENO_KV: Known<DenoKvOptions> = { prefix: 1, lease: 1 };

/**
 * Stores in a database of Deno KV. One isolate has a store open at a time: others get `VARVE_LOCKED`, or wait for as long as
 * the option `wait` of `open` says. One that died, or was frozen for longer than its lease, is taken over from; should it
 * wake up, its next write fails with `VARVE_LOCKED` and changes nothing.
 *
 * A write resolves when Deno KV has it: `relaxed` is as durable as `strict`. All that is written until an operation of Deno KV
 * is back goes into the next one together. Reads that find their bytes in memory ask nobody.
 *
 * @example
 * import { open } from 'npm:varve';
 * import { denoKv } from 'npm:varve/deno';
 * const db = await open('notes', { storage: denoKv(await Deno.openKv()) });
 */
export function denoKv(kv: Kv, options: DenoKvOptions = {}): StorageAdapter {
  checkOptions(options, DENO_KV);
  const { prefix = ['varve'], lease = LEASE_MS } = options;
  if (typeof (kv as Kv | undefined)?.atomic !== 'function') {
    throw new VarveError('VARVE_INVALID_ARGUMENT', 'denoKv takes what Deno.openKv() resolves with: await it.');
  }
  if (!Array.isArray(prefix) || keyBytes(prefix) > PREFIX_BYTES_MAX) {
    throw new VarveError('VARVE_INVALID_ARGUMENT', `prefix is a key of Deno KV of at most ${PREFIX_BYTES_MAX} bytes.`);
  }
  if (!(lease >= LEASE_MS_MIN && lease <= 2 ** 31 - 1)) {
    throw new VarveError('VARVE_INVALID_ARGUMENT', 'lease is a number of milliseconds from 1,000 to 2^31 - 1.');
  }
  return new DenoKvStorage(kv, { prefix: [...prefix], leaseMs: lease });
}
