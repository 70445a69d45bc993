/**
 * A panic inside the engine is a bare trap. What users see of it: one VARVE_INTERNAL that says to reopen, from the call
 * that met it and from every later one; nothing is acknowledged any more, nothing stays pending, and closing lets the
 * files and the lock go, so that a new worker recovers what was acknowledged.
 *
 * A worker is played by a fresh set of modules: each has an engine instance of its own.
 */

import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Store } from '../../js/src/store/store.ts';
import type { Key } from '../../js/src/types.ts';
import type { Port } from '../../js/src/worker/client.ts';
import { wasm } from './support/engine.ts';
import { FakeFileHandle, FakeLocks, FakeOpfs } from './support/fake-opfs.ts';

vi.setConfig({ testTimeout: 30_000 });

const stopped = { code: 'VARVE_INTERNAL', message: expect.stringMatching(/unreachable.*reopen/) };

beforeEach(() => {
  vi.stubGlobal('FileSystemFileHandle', FakeFileHandle);
  vi.stubGlobal('navigator', { storage: new FakeOpfs().storage, locks: new FakeLocks() });
});

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

/** A new worker whose engine traps in the raw calls that `trap` names, once it is filled. */
async function newWorker() {
  vi.resetModules();
  const { loadEngine } = await import('../../js/src/wasm/load.ts');
  const engine = await loadEngine(wasm);
  const real = engine.exports;
  const trap = new Set<string>();
  const calls = Object.entries(real).map(([name, call]): [string, unknown] => {
    if (typeof call !== 'function') return [name, call];
    // More memory than there is: the allocation panics, which is a trap like any other.
    return [
      name,
      (...numbers: number[]) => (trap.has(name) ? real.varve_scratch(-256) : call(...(numbers as [never]))),
    ];
  });
  Object.assign(engine, { exports: Object.fromEntries(calls) });
  const { open } = await import('../../js/src/sync.ts');
  const openSync = () => open<Key, unknown>('store', { wasm, memory: 1024 * 1024, compactor: false, wait: 0 });
  return { trap, openSync };
}

/** What a later worker finds. */
async function recovered(): Promise<[Key, unknown][]> {
  const { openSync } = await newWorker();
  const store = await openSync();
  const found = [...store.entries()];
  await store.close();
  return found;
}

describe('varve/sync', () => {
  test.each(['varve_set', 'varve_commit', 'varve_get', 'varve_scan_open'])(
    'a trap in %s is told by it and by every later call; closing lets the next worker in',
    async (name) => {
      const { trap, openSync } = await newWorker();
      const store = await openSync();
      store.set('kept', 1, { durability: 'strict' });
      trap.add(name);
      expect(() => {
        store.get('kept');
        [...store.entries()];
        store.set('lost', 2, { durability: 'relaxed' });
      }).toThrow(expect.objectContaining(stopped));
      trap.clear();

      const later: (() => unknown)[] = [
        () => store.get('kept'),
        () => store.has('kept'),
        () => store.getEntry('kept'),
        () => store.set('late', 3),
        () => store.delete('kept'),
        () => store.clear(),
        () => store.batch(),
        () => store.entries(),
        () => store.commit(),
        () => store.flush(),
        () => store.stats(),
      ];
      for (const call of later) expect(call).toThrow(expect.objectContaining(stopped));
      await expect(store.room()).rejects.toMatchObject(stopped);
      await expect(store.compact()).rejects.toMatchObject(stopped);

      await store.close();
      expect(() => store.get('kept')).toThrow(expect.objectContaining(stopped));
      await expect(openSync()).rejects.toMatchObject(stopped);
      expect(await recovered()).toEqual([['kept', 1]]);
    },
  );

  test('a trap at the end of a turn, where nobody catches it, is told by the next call', async () => {
    const { trap, openSync } = await newWorker();
    const store = await openSync();
    store.set('kept', 1, { durability: 'strict' });
    trap.add('varve_commit');
    expect(store.set('buffered', 2).durability).toBe('buffered');
    await Promise.resolve();
    trap.clear();
    expect(() => store.commit()).toThrow(expect.objectContaining(stopped));
    await store.close();
    expect(await recovered()).toEqual([['kept', 1]]);
  });

  test('a scan that was open ends with the fault', async () => {
    const { trap, openSync } = await newWorker();
    const store = await openSync();
    for (let n = 0; n < 3000; n++) store.set(n, 'a value of some length, so that one batch is not enough');
    const scan = store.values();
    scan.next();
    trap.add('varve_get');
    expect(() => store.get(1)).toThrow(expect.objectContaining(stopped));
    trap.clear();
    expect(() => [...{ [Symbol.iterator]: () => scan }]).toThrow(expect.objectContaining(stopped));
    expect(scan.return?.()).toEqual({ value: undefined, done: true });
    await store.close();
  });

  test('a host function that throws through the engine is a fault as well', async () => {
    const { openSync } = await newWorker();
    const { OpfsDevice } = await import('../../js/src/storage/opfs.ts');
    const store = await openSync();
    store.set('kept', 1, { durability: 'strict' });
    vi.spyOn(OpfsDevice.prototype, 'isOpen').mockImplementation(() => {
      throw new Error('the host failed, unreachable');
    });
    await expect(store.compact()).rejects.toMatchObject(stopped);
    expect(() => store.set('late', 2)).toThrow(expect.objectContaining(stopped));
    vi.restoreAllMocks();
    await store.close();
    expect(await recovered()).toEqual([['kept', 1]]);
  });
});

describe('varve, through the engine worker', () => {
  /** A store in a worker on this thread that, unlike a real one, is not ended by `terminate`. */
  async function openAsync(): Promise<{ store: Store<Key, unknown>; trap: Set<string> }> {
    const { trap } = await newWorker();
    const { EngineServer } = await import('../../js/src/worker/engine-server.ts');
    const { openStore } = await import('../../js/src/store/open.ts');
    const port: Port = {
      onmessage: null,
      postMessage: (message, transfer) => {
        const clone = structuredClone(message, { transfer: transfer as ArrayBuffer[] }) as ArrayBuffer;
        setImmediate(() => server.receive(clone));
      },
    };
    const server = new EngineServer((message, transfer) => {
      const clone = structuredClone(message, { transfer: transfer as ArrayBuffer[] });
      setImmediate(() => port.onmessage?.(new MessageEvent('message', { data: clone })));
    }, undefined);
    const store = await openStore<Key, unknown>('store', { wasm, memory: 1024 * 1024 }, () => port);
    return { store, trap };
  }

  test('a trap in a frame rejects all that is pending and all that follows, and lets the next worker in', async () => {
    const { store, trap } = await openAsync();
    await store.set('kept', 1, { durability: 'strict' });
    trap.add('varve_frame');
    const pending = [store.set('lost', 2), store.get('kept'), store.delete('kept'), store.stats()];
    for (const { status, reason } of (await Promise.allSettled(pending)) as PromiseRejectedResult[]) {
      expect([status, reason]).toEqual(['rejected', expect.objectContaining(stopped)]);
    }
    trap.clear();
    await expect(store.set('late', 3)).rejects.toMatchObject(stopped);
    await expect(store.get('kept')).rejects.toMatchObject(stopped);
    await expect(store.compact()).rejects.toMatchObject(stopped);
    await store.close();
    await vi.waitFor(async () => expect(await recovered()).toEqual([['kept', 1]]));
  });

  test('a trap in what only keeps the store in shape fails the store too', async () => {
    const { store, trap } = await openAsync();
    await store.set('kept', 1, { durability: 'strict' });
    trap.add('varve_unsealed');
    expect((await store.set('second', 2)).durability).toBe('relaxed');
    trap.clear();
    await vi.waitFor(() => expect(store.get('kept')).rejects.toMatchObject(stopped));
    await store.close();
    await vi.waitFor(async () => {
      expect(await recovered()).toEqual([
        ['kept', 1],
        ['second', 2],
      ]);
    });
  });
});
