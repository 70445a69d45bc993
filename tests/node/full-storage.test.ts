/**
 * Full storages on stand-ins. One is a Deno KV that refuses writes beyond a number of bytes. The other is an OPFS with a quota, under
 * `varve/synchronous`.
 */

import { afterEach, test, vi } from 'vitest';
import { open } from '../../js/src/index.ts';
import { DenoKvStorage } from '../../js/src/storage/denokv/adapter.ts';
import { type CheckOptions, type CheckReport, open as openSync, type SyncStore } from '../../js/src/synchronous.ts';
import { type FullStore, steps } from '../support/full-steps.ts';
import { type FullDriver, liveFull } from '../support/full-storage.ts';
import { tools, wasm } from './support/engine.ts';
import { FakeKv, FakeKvState } from './support/fake-kv.ts';
import { FakeOpfs, stubOpfs } from './support/fake-opfs.ts';

const ROOM_BYTES = 30 * 1024 * 1024;

/** A store whose holder can end without a close. */
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
    return (await call(this.#db, ...rest, ...(step === 'check' ? [{ tools }] : []))) as never;
  }
}

test('Deno KV: a full database refuses sets, keeps entries, accepts deletes, then sets', {
  timeout: 300_000,
}, async () => {
  await liveFull(new FullKv(), { name: 'Deno KV', usable: 0.75, backShare: 0.75 });
});

afterEach(() => {
  vi.unstubAllGlobals();
});

/** A small size, because the stand-in copies what it flushes. */
const QUOTA_BYTES = 16 * 1024 * 1024;
/** A value is written as this many entries in one turn. They return as buffered until one of them is refused. */
const PARTS = 8;

/** A synchronous store for the steps: each value is several small entries. Either all of them are there or none. */
class InParts {
  readonly #db: SyncStore<[number, number], Uint8Array>;

  constructor(db: SyncStore<[number, number], Uint8Array>) {
    this.#db = db;
  }

  set(key: number, value: Uint8Array): void {
    const bytes = value.length / PARTS;
    try {
      for (let part = 0; part < PARTS; part++) {
        // Any part may be refused: something is buffered in every case.
        this.#db.delete([key, part]);
        this.#db.set([key, part], value.subarray(part * bytes, (part + 1) * bytes));
      }
    } catch (error) {
      // A refusal refuses one write. The writes before it are there, and can be deleted.
      this.delete(key);
      throw error;
    }
  }

  delete(key: number): void {
    for (let part = 0; part < PARTS; part++) this.#db.delete([key, part]);
  }

  *entries(): Generator<[number, Uint8Array], void, undefined> {
    let parts: Uint8Array[] = [];
    for (const [[key, part], value] of this.#db.entries()) {
      if (part !== parts.length) throw new Error(`Of ${key} part ${part} follows ${parts.length}.`);
      parts.push(value.slice());
      if (parts.length < PARTS) continue;
      yield [key, Buffer.concat(parts)];
      parts = [];
    }
    if (parts.length > 0) throw new Error('There is a part of a value.');
  }

  get(key: number): Uint8Array | undefined {
    const parts = Array.from({ length: PARTS }, (_, part) => this.#db.get([key, part]));
    return parts.every((part) => part !== undefined) ? Buffer.concat(parts) : undefined;
  }

  compact(): Promise<void> {
    return this.#db.compact();
  }

  check(options?: CheckOptions): Promise<CheckReport> {
    return this.#db.check(options);
  }

  close(): Promise<void> {
    return this.#db.close();
  }
}

/** A synchronous store in OPFS whose worker can be ended. */
class FullSync implements FullDriver {
  readonly roomBytes = QUOTA_BYTES;
  readonly #opfs = new FakeOpfs();
  #db: InParts | undefined;

  constructor() {
    this.#opfs.quota = QUOTA_BYTES;
  }

  async open(): Promise<void> {
    stubOpfs(this.#opfs);
    this.#db = new InParts(
      await openSync<[number, number], Uint8Array>('full', { storage: 'opfs', wasm, lockTimeout: 0 }),
    );
  }

  async close(): Promise<void> {
    await this.#db?.close();
  }

  async kill(): Promise<void> {
    this.#opfs.killWorkers();
    // In a browser, its timers would end with its worker.
    await this.#db?.close().catch(() => undefined);
  }

  async call(step: keyof typeof steps, ...rest: unknown[]): Promise<never> {
    const call = steps[step] as (...all: unknown[]) => Promise<unknown>;
    return (await call(this.#db, ...rest, ...(step === 'check' ? [{ tools }] : []))) as never;
  }
}

test('varve/synchronous: a full quota refuses sets, keeps entries, accepts deletes, then sets', {
  timeout: 300_000,
}, async () => {
  await liveFull(new FullSync(), { name: 'varve/synchronous on a stand-in', usable: 0.5, backShare: 0.25 });
});
