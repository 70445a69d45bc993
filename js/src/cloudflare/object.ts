/**
 * A Durable Object with a store in it.
 *
 * Life: constructed -> store opened while events wait -> events, each a few synchronous turns -> evicted or hibernating, without
 * notice -> constructed again, the log replayed.
 *
 * Invariant: nothing has to happen before an eviction. A turn's writes are in the object's storage when the turn ends, and the
 * platform holds back the object's output until they are durable. No pending work keeps the object from hibernating.
 */

import { DurableObject } from 'cloudflare:workers';
import { userKeyOf } from '../encryption/user-key.ts';
import { EngineHost } from '../engine/engine-host.ts';
import { keySlots } from '../engine/key-slots.ts';
import { VarveError } from '../errors.ts';
import { checkOptions, type Known, withKeyOfNow } from '../options.ts';
import type { EngineOptions } from '../protocol/messages.ts';
import { whenCollected } from '../runtime/collected.ts';
import { resolveOptions } from '../store/options.ts';
import { SyncStore } from '../synchronous/store.ts';
import type { SyncUpgrade } from '../synchronous/transaction.ts';
import type { CommonOpenOptions, Key } from '../types.ts';
import { ObjectStorageAdapter } from './adapter.ts';
import { Maintenance } from './maintenance.ts';
import type { ObjectContext } from './platform.ts';
import type { StoreReply, StoreRequest } from './rpc.ts';
import { serve } from './serve.ts';

/** An isolate has 128 MB and may have several objects in it. */
const MEMORY_BYTES_DEFAULT = 8 * 1024 * 1024;

/** Options of a `VarveObject`. */
export interface VarveObjectOptions<K = Key, V = unknown>
  extends Pick<CommonOpenOptions<K, V, SyncUpgrade<K, V>>, 'keys' | 'values' | 'version' | 'upgrade' | 'encryption'> {
  /** The name of the store in the object. Default `store`. */
  name?: string | undefined;
  /** The most bytes for memtables, cached blocks, indexes and filters of this object. Default 8 MiB, at least 1 MiB. */
  memoryBytes?: number | undefined;
  /** The most bytes that the store may take. Further writes are refused with `VARVE_STORAGE_FULL`. Default 9e9. */
  maxBytes?: number | undefined;
  /** The compiled engine. Default: the engine in the package. */
  wasm?: WebAssembly.Module | undefined;
}

const OBJECT: Known<VarveObjectOptions> = {
  name: 1,
  memoryBytes: 1,
  keys: 1,
  values: 1,
  version: 1,
  upgrade: 1,
  encryption: 1,
  maxBytes: 1,
  wasm: 1,
};

/** A Durable Object whose `store` is open whenever one of its methods runs. */
export abstract class StoreObject<Env = unknown, K = Key, V = unknown> extends DurableObject<Env> {
  /**
   * The store. It is synchronous, like the object's own storage. A write needs no `await` and no flush: the platform holds back
   * the output of the object after the write until the write is durable.
   */
  protected store!: SyncStore<K, V>;
  #maintenance: Maintenance | undefined;
  #adapter: ObjectStorageAdapter;

  /** Your class passes `ctx` and `env` to this constructor, and options if it has any. */
  constructor(ctx: ObjectContext, env: Env, options: VarveObjectOptions<K, V> = {}) {
    super(ctx, env);
    checkOptions(options, OBJECT);
    // The platform calls the function below when this constructor is done, and then the program may have overwritten its key.
    const given = withKeyOfNow(options);
    this.#adapter = new ObjectStorageAdapter(ctx, { maxBytes: options.maxBytes });
    ctx.blockConcurrencyWhile(async () => {
      const { host, maintenance, settings } = await openHost(ctx, this.#adapter, given);
      whenGone(this, ctx.id.toString(), host, this.#adapter);
      this.store = storeOf(host, options, settings);
      this.#maintenance = maintenance;
      maintenance.look();
    });
  }

  /**
   * Flushes and compacts, in slices. If your class has its own alarms, call `await super.alarm()` in its `alarm`. Varve's alarms call
   * that, too: compare the time with the one that you wait for.
   */
  async alarm(): Promise<void> {
    await this.#maintenance?.run();
  }

  /** Called by `connect` and `shards`. Do not call it yourself: its form may change with any version. */
  async varve(request: StoreRequest<K, V>): Promise<StoreReply> {
    return serve(this.store, request);
  }

  /**
   * @internal For tests and benchmarks: the rows that the store has written since the object was constructed, counted as the platform
   * bills them (without alarms). An RPC client of the object can call it, too: it only reads.
   */
  protected rowsWritten(): number {
    return this.#adapter.rowsWritten(this.store.name);
  }
}

/** Opens the store of an object. Nothing here may refer to the object: the registry that waits for its collection would keep it alive. */
async function openHost<K, V>(
  ctx: ObjectContext,
  adapter: ObjectStorageAdapter,
  options: VarveObjectOptions<K, V>,
): Promise<{ host: EngineHost; maintenance: Maintenance; settings: EngineOptions }> {
  const { name = 'store', memoryBytes = MEMORY_BYTES_DEFAULT, wasm } = options;
  if (!(wasm instanceof WebAssembly.Module)) {
    throw new VarveError(
      'VARVE_UNSUPPORTED',
      'The engine is missing: pass the option wasm, imported from varve/varve.wasm.',
    );
  }
  const settings = resolveOptions(name, { ...options, memoryBytes }, OBJECT);
  if (options.encryption !== undefined) settings.key = await userKeyOf(options.encryption);
  predecessors.get(ctx.id.toString())?.();
  let maintenance: Maintenance | undefined;
  const onTurn = (): void => maintenance?.look();
  const host = await EngineHost.open(name, { ...settings, wasm, adapter, onTurn, keySlots });
  maintenance = new Maintenance(host, ctx.storage);
  return { host, maintenance, settings };
}

function storeOf<K, V>(host: EngineHost, options: VarveObjectOptions<K, V>, settings: EngineOptions): SyncStore<K, V> {
  const { version, upgrade } = options;
  const store = new SyncStore<K, V>(host, options, undefined, settings);
  if (version !== undefined) store.upgradeTo(version, upgrade);
  return store;
}

/** Functions that release the memory and handles that objects of this isolate left in the engine, by the object's id. */
const predecessors = new Map<string, () => void>();

const collected = whenCollected<() => void>((release) => release());

/**
 * The platform evicts an object without notice, and its memory and handles in the engine would stay. They are released when the
 * object is collected or constructed again, whichever comes first.
 */
function whenGone(object: object, id: string, host: EngineHost, adapter: ObjectStorageAdapter): void {
  const release = (): void => {
    if (predecessors.get(id) === release) predecessors.delete(id);
    // The device is aborted first, so that the engine cannot write any more.
    adapter.abort();
    host.abort();
  };
  predecessors.set(id, release);
  collected.register(object, release);
}
