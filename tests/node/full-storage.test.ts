/** A full Deno KV: the stand-in refuses what would have its values take more than so many bytes. */

import { test } from 'vitest';
import { open } from '../../js/src/index.ts';
import { DenoKvStorage } from '../../js/src/storage/denokv/adapter.ts';
import { type FullStore, steps } from '../support/full-steps.ts';
import { type FullDriver, liveFull } from '../support/full-storage.ts';
import { wasm } from './support/engine.ts';
import { FakeKv, FakeKvState } from './support/fake-kv.ts';

const ROOM_BYTES = 30 * 1024 * 1024;

/** A store whose holder can die. */
class FullKv implements FullDriver {
  readonly roomBytes = ROOM_BYTES;
  readonly #state = new FakeKvState();
  #kv = new FakeKv(this.#state);
  #db: FullStore | undefined;

  constructor() {
    this.#state.roomBytes = ROOM_BYTES;
  }

  async open(): Promise<void> {
    this.#kv = new FakeKv(this.#state);
    const storage = new DenoKvStorage(this.#kv, { prefix: ['varve'], leaseMs: 60_000 });
    this.#db = (await open('full', { storage, wasm })) as FullStore;
  }

  async close(): Promise<void> {
    await this.#db?.close();
  }

  async kill(): Promise<void> {
    this.#kv.kill();
    this.#state.expire();
  }

  async call(step: keyof typeof steps, ...rest: unknown[]): Promise<never> {
    const call = steps[step] as (...all: unknown[]) => Promise<unknown>;
    return (await call(this.#db, ...rest)) as never;
  }
}

test('Deno KV: a full database is used, refuses, keeps, deletes and goes on', { timeout: 300_000 }, async () => {
  await liveFull(new FullKv(), { usable: 0.4, backShare: 0 });
});
