/**
 * Stores in a database of Deno KV.
 *
 * Invariant: an isolate has a store for as long as it renews its lease. An isolate that takes the store over fences it first.
 */

import { VarveError } from '../../errors.ts';
import type { LockOptions, StorageAdapter } from '../adapter.ts';
import { BufferedDevice } from '../buffered/device.ts';
import { SlotError } from '../device.ts';
import { escapeName } from '../names.ts';
import { DenoKvChunks, headKey } from './chunk-store.ts';
import { asked, type ClaimOptions, isStore } from './head.ts';
import { type Kv, type KvKey, STRONG } from './platform.ts';

/** How stores are kept. */
interface DenoKvSettings {
  readonly prefix: KvKey;
  readonly leaseMs: number;
}

/** The stores under one prefix. */
export class DenoKvStorage implements StorageAdapter {
  readonly kind = 'deno-kv';
  readonly #kv: Kv;
  readonly #settings: DenoKvSettings;

  constructor(kv: Kv, settings: DenoKvSettings) {
    this.#kv = kv;
    this.#settings = settings;
  }

  async open(name: string, options: LockOptions): Promise<BufferedDevice> {
    const chunks = this.#chunks(name, { ...options, create: true });
    return withVarveErrors(async () => {
      try {
        return await BufferedDevice.open(chunks);
      } catch (error) {
        await chunks.close();
        throw error;
      }
    });
  }

  async list(): Promise<string[]> {
    const prefix = [...this.#settings.prefix, 'store'];
    const list = async (): Promise<string[]> => {
      const names: string[] = [];
      for await (const entry of this.#kv.list({ prefix }, STRONG)) {
        if (isStore(entry)) names.push(String(entry.key.at(-1)));
      }
      return names;
    };
    return withVarveErrors(() => asked(list));
  }

  async delete(name: string, options: LockOptions): Promise<boolean> {
    const chunks = this.#chunks(name, { ...options, create: false });
    return withVarveErrors(async () => {
      const { prefix } = this.#settings;
      const wasThere = isStore(await asked(() => this.#kv.get(headKey({ prefix, name }), STRONG)));
      try {
        if (await chunks.claim()) await chunks.erase();
      } finally {
        await chunks.close();
      }
      return wasThere;
    });
  }

  #chunks(name: string, options: LockOptions & Pick<ClaimOptions, 'create'>): DenoKvChunks {
    // Refuses an invalid store name, such as one with half of a surrogate pair: two of those would be one key.
    escapeName(name);
    const { prefix, leaseMs } = this.#settings;
    return new DenoKvChunks({ kv: this.#kv, prefix, name }, { ...options, store: name, leaseMs });
  }
}

/** Turns a `SlotError` into the error that the user gets. */
async function withVarveErrors<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    if (!(error instanceof SlotError)) throw error;
    const code = error.kind === 'full' ? 'VARVE_STORAGE_FULL' : error.kind === 'closed' ? 'VARVE_LOCKED' : 'VARVE_IO';
    throw new VarveError(code, error.message, { cause: error });
  }
}
