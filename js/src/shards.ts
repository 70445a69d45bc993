/**
 * `varve/shards`: many Durable Objects as one store, for Workers that have a binding to them.
 *
 * Invariant: it contains no engine. The engines are in the objects, whose class is in `varve/cloudflare`.
 */

export type { ObjectNamespace } from './cloudflare/platform.ts';
export { type Conflict, VarveError, type VarveErrorCode } from './errors.ts';
export {
  type RebalanceOptions,
  type RebalanceProgress,
  type RebalanceReport,
  rebalance,
} from './shards/rebalance.ts';
export type { RemoteBatch, ShardReceipt, ShardWriteOptions } from './shards/remote-batch.ts';
export {
  type RemoteIterator,
  type RemoteOptions,
  type RemoteStore,
  type ShardOptions,
  shards,
} from './shards/remote-store.ts';
export type * from './types.ts';
