/**
 * A panic inside the engine is a bare trap. The user sees one VARVE_INTERNAL that says to reopen, from the call that met it and from
 * every later call. Nothing more is acknowledged and nothing stays pending. Closing releases the files and the lock, so that a new worker
 * recovers the acknowledged writes.
 *
 * A worker is played by a fresh set of modules: each has an engine instance of its own.
 */

import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Port } from '../../js/src/client/client.ts';
import { EngineServer } from '../../js/src/server/engine-server.ts';
import { codeHere } from '../../js/src/server/later-code.ts';
import { OpfsDevice } from '../../js/src/storage/opfs.ts';
import { openStore } from '../../js/src/store/open.ts';
import type { Store } from '../../js/src/store/store.ts';
import { open } from '../../js/src/synchronous.ts';
import type { Key } from '../../js/src/types.ts';
import type { Engine } from '../../js/src/wasm/engine.ts';
import type { EngineExports } from '../../js/src/wasm/exports.ts';
import { wasm } from './support/engine.ts';
import { stubOpfs } from './support/fake-opfs.ts';

vi.setConfig({ testTimeout: 30_000 });

const stopped = { code: 'VARVE_INTERNAL', message: expect.stringMatching(/unreachable.*reopen/) };

beforeEach(() => {
  stubOpfs();
});

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

/** The names of the raw calls that trap in each engine instance, in the order in which the instances were made. */
const traps: Set<string>[] = [];

vi.mock('../../js/src/wasm/instantiate.ts', async (load) => {
  const real = await load<typeof import('../../js/src/wasm/instantiate.ts')>();
  return { ...real, instantiate: (module: WebAssembly.Module) => trapping(real.instantiate(module)) };
});

function trapping(engine: Engine): Engine {
  const trap = new Set<string>();
  traps.push(trap);
  const calls = Object.entries(engine.exports).map(([name, call]): [string, unknown] => {
    if (typeof call !== 'function') return [name, call];
    const trapped = (...numbers: number[]) => {
      if (trap.has(name)) throw new WebAssembly.RuntimeError('unreachable');
      return call(...(numbers as [never]));
    };
    return [name, trapped];
  });
  return { ...engine, exports: Object.fromEntries(calls) as unknown as EngineExports };
}

const openSync = (name = 'store') =>
  open<Key, unknown>(name, { wasm, memoryBytes: 1024 * 1024, compactor: false, lockTimeout: 0 });

/** A store, and the calls that trap in its engine. */
async function openTrapped(name = 'store') {
  const store = await openSync(name);
  return { store, trap: traps.at(-1) as Set<string> };
}

/** The entries that the next opening finds. */
async function recovered(name = 'store'): Promise<[Key, unknown][]> {
  const store = await openSync(name);
  const found = [...store.entries()];
  await store.close();
  return found;
}

describe('varve/synchronous', () => {
  test.each(['varve_set', 'varve_commit', 'varve_get', 'varve_scan_open'])(
    'a trap in %s rejects it and every later call; opening again recovers',
    async (name) => {
      const { store, trap } = await openTrapped();
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
      await expect(store.compact()).rejects.toMatchObject(stopped);

      await store.close();
      expect(() => store.get('kept')).toThrow(expect.objectContaining(stopped));
      expect(await recovered()).toEqual([['kept', 1]]);
    },
  );

  test('a trap at the end of a turn, where nothing catches it, rejects the next call', async () => {
    const { store, trap } = await openTrapped();
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
    const { store, trap } = await openTrapped();
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
  /** A store in a worker on this thread. Unlike a real worker, it is not ended by `terminate`. */
  async function openAsync(name = 'store'): Promise<{ store: Store<Key, unknown>; trap: Set<string> }> {
    const port: Port = {
      onmessage: null,
      postMessage: (message, transfer) => {
        const clone = structuredClone(message, { transfer: transfer as ArrayBuffer[] }) as ArrayBuffer;
        setImmediate(() => server.receive(clone));
      },
    };
    const server = new EngineServer(
      (message, transfer) => {
        const clone = structuredClone(message, { transfer: transfer as ArrayBuffer[] });
        setImmediate(() => port.onmessage?.(new MessageEvent('message', { data: clone })));
      },
      undefined,
      undefined,
      codeHere,
    );
    const store = await openStore<Key, unknown>(name, { wasm, memoryBytes: 1024 * 1024 }, () => port);
    return { store, trap: traps.at(-1) as Set<string> };
  }

  test('a trap in one store does not affect the others of the realm', async () => {
    const { store, trap } = await openAsync();
    const { store: other } = await openAsync('other');
    const { store: third } = await openTrapped('third');
    await store.set('kept', 1, { durability: 'strict' });
    trap.add('varve_frame');
    await expect(store.set('lost', 2)).rejects.toMatchObject(stopped);
    await other.set('other', 3);
    third.set('third', 4);
    expect([await other.get('other'), third.get('third')]).toEqual([3, 4]);
    await Promise.all([store.close(), other.close(), third.close()]);
    await vi.waitFor(async () => expect(await recovered()).toEqual([['kept', 1]]));
    expect(await recovered('other')).toEqual([['other', 3]]);
  });

  test('a trap in a frame rejects all that is pending and all that follows, and opening again recovers', async () => {
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

  test('a trap in background work fails the store too', async () => {
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
