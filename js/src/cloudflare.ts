/**
 * `varve/cloudflare`: stores in Durable Objects, and `connect` for Workers that have a binding to such an object.
 *
 * Invariant: runs on workerd only, where a `.wasm` file is imported as a compiled module.
 */

import { type VarveObjectOptions as AllOptions, StoreObject } from './cloudflare/object.ts';
import type { ObjectContext } from './cloudflare/platform.ts';
import type { Key } from './types.ts';
import wasm from './varve.wasm';

/** Options of a `VarveObject`. */
export type VarveObjectOptions<K = Key, V = unknown> = AllOptions<K, V>;

/**
 * A Durable Object with an ordered store in it, open whenever one of its methods runs.
 *
 * The writes of one turn are durable before any message that the object sends after them leaves it (the platform's output
 * gate). You need no `await` and no flush. All writes of a turn are one billed row. Flushes and compactions run in slices
 * when the object's alarm goes off. Nothing stops the object from hibernating.
 *
 * @example
 * import { VarveObject } from 'varve/cloudflare';
 *
 * export class Notes extends VarveObject {
 *   async add(id, note) {
 *     if (this.store.has(['note', id])) throw new Error('there is one');
 *     this.store.set(['note', id], note);
 *     return this.store.count({ prefix: ['note'] });
 *   }
 * }
 */
export abstract class VarveObject<Env = unknown, K = Key, V = unknown> extends StoreObject<Env, K, V> {
  constructor(ctx: ObjectContext, env: Env, options: VarveObjectOptions<K, V> = {}) {
    super(ctx, env, { ...options, wasm: options.wasm ?? wasm });
  }
}

export { type ObjectStorageOptions, objectStorage, type StorageContext } from './cloudflare/adapter.ts';
export type * from './cloudflare/platform.ts';
export * from './common.ts';
export { deriveKey } from './encryption/user-key.ts';
export type { RemoteBatch, ShardReceipt, ShardWriteOptions } from './shards/remote-batch.ts';
export { connect, type RemoteIterator, type RemoteOptions, type RemoteStore } from './shards/remote-store.ts';
export type { Batch } from './store/batch.ts';
export type { SyncTransactionHandle } from './synchronous/begin.ts';
export type { SyncReadView, SyncSnapshot } from './synchronous/snapshot.ts';
export type { SyncStore } from './synchronous/store.ts';
export type { SyncTransaction, SyncUpgrade } from './synchronous/transaction.ts';
export type { SyncBatch, SyncView } from './synchronous/view.ts';
