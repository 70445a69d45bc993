/** Opening, listing and deleting stores: which arguments are checked, what the worker receives, and what happens on failure. */

import { afterEach, describe, expect, test, vi } from 'vitest';
import { deleteStore, listStores, open, preload } from '../../js/src/index.ts';
import { openStore } from '../../js/src/store/open.ts';
import type { OpenOptions } from '../../js/src/store/open-options.ts';
import { deleteNamed, listNames } from '../../js/src/store/requests.ts';
import type { ValueCodec } from '../../js/src/types.ts';
import { loadEngine } from '../../js/src/wasm/compile.ts';
import { wasm } from './support/engine.ts';
import { FakeEngine } from './support/fake-engine.ts';
import { FakeWindow } from './support/fake-window.ts';

const code = (expected: string): unknown => expect.objectContaining({ code: expected });

describe('open', () => {
  test('passes the options to the worker, and the state of the store to the caller', async () => {
    const engine = new FakeEngine();
    const names: string[] = [];
    const options: OpenOptions<string, number> = {
      durability: 'strict',
      storage: 'memory',
      lockTimeout: 100,
      memoryBytes: 2 ** 24,
      wasm: new URL('https://example.com/varve.wasm'),
    };
    const db = await openStore('notes', options, (name) => {
      names.push(name);
      return engine;
    });
    expect(names).toEqual(['notes']);
    expect(engine.messages).toEqual([
      {
        type: 'open',
        id: 1,
        name: 'notes',
        options: {
          durability: 'strict',
          storage: 'memory',
          lockTimeout: 100,
          memoryBytes: 2 ** 24,
          wasm: 'https://example.com/varve.wasm',
        },
      },
    ]);
    expect(db.name).toBe('notes');
    expect(db.storage).toEqual({ kind: 'memory' });
    expect(db.recovery).toEqual({ state: 'new', records: 0, recordsDropped: 0 });
  });

  // The story: a page opened two stores with one object of options, and gave it another codec in between. The first store used that, too.
  test('has the options of its call, also if the caller changes them while it opens', async () => {
    const adding = (n: number): ValueCodec<number> => ({
      name: `add ${n}`,
      encode: (value) => Uint8Array.of(value + n),
      decode: ([value = 0]) => value - n,
    });
    const options: OpenOptions<string, number> = { cache: false, durability: 'strict', values: adding(1) };
    const engine = new FakeEngine();
    const opening = openStore('notes', options, () => engine);
    Object.assign(options, { durability: 'memory', values: adding(2) });
    const db = await opening;
    expect((await db.set('a', 5)).durability).toBe('strict');
    expect(engine.ops[0]?.value.at(-1)).toBe(6);
  });

  test('passes a compiled module on as it is', async () => {
    const engine = new FakeEngine();
    const module = new WebAssembly.Module(new Uint8Array([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]));
    await openStore('notes', { wasm: module }, () => engine);
    expect(engine.messages[0]).toMatchObject({ options: { wasm: expect.any(WebAssembly.Module) } });
  });

  test.each<[string, unknown]>([
    ['an empty name', ''],
    ['a number', 5],
    ['a lone surrogate', 'a\ud800'],
    ['a name too long', 'n'.repeat(201)],
    ['a name too long once percent-encoded', 'é'.repeat(34)],
  ])('refuses %s', async (_, name) => {
    const spawn = vi.fn();
    await expect(openStore(name as string, {}, spawn)).rejects.toThrow(code('VARVE_INVALID_ARGUMENT'));
    await expect(deleteNamed(name as string, {}, spawn)).rejects.toThrow(code('VARVE_INVALID_ARGUMENT'));
    expect(spawn).not.toHaveBeenCalled();
  });

  test.each([
    [{ durability: 'safe' }],
    [{ lockTimeout: -1 }],
    [{ lockTimeout: Number.NaN }],
    [{ lockTimeout: Number.POSITIVE_INFINITY }],
    [{ memoryBytes: 1000 }],
    [{ memoryBytes: 2 ** 24 + 0.5 }],
    [{ values: { name: 'half', encode: () => new Uint8Array() } }],
    [{ keys: 'string' }],
  ])('refuses %j', async (options) => {
    await expect(openStore('notes', options as never, () => new FakeEngine())).rejects.toThrow(
      code('VARVE_INVALID_ARGUMENT'),
    );
  });

  test('that fails in the worker reports the reason and ends the worker', async () => {
    const engine = new FakeEngine();
    engine.reply = ({ type }) =>
      type === 'open' ? { type: 'failed', id: 1, error: { code: 'VARVE_LOCKED', message: 'Held.' } } : undefined;
    await expect(openStore('notes', {}, () => engine)).rejects.toThrow(code('VARVE_LOCKED'));
    expect(engine.isTerminated).toBe(true);
  });

  test('of a worker whose script fails reports the reason', async () => {
    const engine = new FakeEngine();
    engine.hold();
    const opened = openStore('notes', {}, () => engine);
    engine.crash('no wasm');
    await expect(opened).rejects.toMatchObject({ code: 'VARVE_INTERNAL', message: expect.stringContaining('no wasm') });
  });

  test('of a worker whose script is missing names the script', async () => {
    const engine = new FakeEngine();
    engine.hold();
    const opened = openStore('notes', {}, () => engine);
    engine.crash();
    const message = expect.stringContaining('engine-worker.js');
    await expect(opened).rejects.toMatchObject({ code: 'VARVE_UNAVAILABLE', message });
  });

  test('that is aborted ends the worker', async () => {
    const engine = new FakeEngine();
    engine.hold();
    const controller = new AbortController();
    const opened = openStore('notes', { signal: controller.signal }, () => engine);
    controller.abort('too slow');
    await expect(opened).rejects.toBe('too slow');
    expect(engine.isTerminated).toBe(true);
  });

  test('with an aborted signal starts no worker', async () => {
    const spawn = vi.fn();
    await expect(openStore('notes', { signal: AbortSignal.abort() }, spawn)).rejects.toThrow(
      expect.objectContaining({ name: 'AbortError' }),
    );
    expect(spawn).not.toHaveBeenCalled();
  });

  test('is refused where no worker can be started', async () => {
    vi.stubGlobal('Worker', function refuse() {
      throw new TypeError('no module workers');
    });
    await expect(open('notes')).rejects.toThrow(code('VARVE_UNSUPPORTED'));
    await expect(listStores()).rejects.toThrow(code('VARVE_UNSUPPORTED'));
    await expect(deleteStore('notes')).rejects.toThrow(code('VARVE_UNSUPPORTED'));
    vi.unstubAllGlobals();
  });
});

describe('the worker', () => {
  afterEach(() => vi.unstubAllGlobals());

  test('is a module worker of the script beside the package, or of the given one', async () => {
    const made: unknown[][] = [];
    vi.stubGlobal(
      'Worker',
      class extends FakeEngine {
        constructor(...args: unknown[]) {
          super();
          made.push(args);
        }
      },
    );
    await open('notes');
    await open('notes', { worker: 'https://example.com/w.js' });
    expect(made.map(([url, options]) => [String(url).split('/').at(-1), options])).toEqual([
      ['engine-worker.js', expect.objectContaining({ type: 'module' })],
      ['w.js', expect.objectContaining({ type: 'module' })],
    ]);
  });

  test('gets the engine of the place that the option wasm names, also after another was loaded', async () => {
    expect(await loadEngine(wasm)).toBe(await loadEngine(String(wasm)));
    await expect(loadEngine('file:///nowhere/varve.wasm')).rejects.toThrow(code('VARVE_UNSUPPORTED'));
  });

  test('that was preloaded is taken by the next open, once, and not if it failed', async () => {
    const made: FakeEngine[] = [];
    vi.stubGlobal(
      'Worker',
      class extends FakeEngine {
        constructor() {
          super();
          made.push(this);
        }
      },
    );
    preload({ wasm });
    preload({ wasm });
    expect(made.length).toBe(1);
    await open('notes', { wasm });
    expect(made.length).toBe(1);
    expect(made[0]?.messages.length).toBeGreaterThan(0);
    await open('notes', { wasm });
    expect(made.length).toBe(2);

    preload({ wasm });
    made[2]?.onerror?.({} as ErrorEvent);
    await open('notes', { wasm });
    expect(made.length).toBe(4);
    expect(() => preload({ wsam: wasm } as never)).toThrow(code('VARVE_INVALID_ARGUMENT'));
  });
});

describe('the page', () => {
  afterEach(() => vi.unstubAllGlobals());

  test('that is hidden or left has the engine flush at once, until the store is closed', async () => {
    const page = new FakeWindow();
    const document = Object.assign(new EventTarget(), { visibilityState: 'visible' });
    vi.stubGlobal('addEventListener', page.addEventListener);
    vi.stubGlobal('document', document);
    const engine = new FakeEngine();
    const db = await openStore<string, number>('notes', { cache: false }, () => engine);
    const hidden = (): number => engine.messages.filter(({ type }) => type === 'hidden').length;

    const write = db.set('a', 1);
    page.dispatchEvent(new Event('pagehide'));
    expect(engine.frames.length).toBe(0);
    await write;
    await db.get('a');
    expect(hidden()).toBe(1);
    document.dispatchEvent(new Event('visibilitychange'));
    document.visibilityState = 'hidden';
    document.dispatchEvent(new Event('visibilitychange'));
    await db.get('a');
    expect(hidden()).toBe(2);
    await db.close();
    page.dispatchEvent(new Event('pagehide'));
    document.dispatchEvent(new Event('visibilitychange'));
    await new Promise(setImmediate);
    expect(hidden()).toBe(2);
  });
});

describe('stores of the origin', () => {
  test('are listed by a worker that ends afterwards', async () => {
    const engine = new FakeEngine();
    expect(await listNames({}, () => engine)).toEqual(['a', 'b']);
    expect(engine.isTerminated).toBe(true);
  });

  test('are deleted with the time to wait, by a worker that ends afterwards', async () => {
    const engine = new FakeEngine();
    expect(await deleteNamed('a', {}, () => engine)).toBe(true);
    expect(engine.messages).toEqual([{ type: 'delete', id: 1, name: 'a', lockTimeout: 5000 }]);
    expect(engine.isTerminated).toBe(true);
    await expect(deleteNamed('a', { lockTimeout: -1 }, () => engine)).rejects.toThrow(code('VARVE_INVALID_ARGUMENT'));
  });

  test('that are in use are refused', async () => {
    const engine = new FakeEngine();
    engine.reply = ({ type }) =>
      type === 'delete' ? { type: 'failed', id: 1, error: { code: 'VARVE_LOCKED', message: 'Held.' } } : undefined;
    await expect(deleteNamed('a', { lockTimeout: 0 }, () => engine)).rejects.toThrow(code('VARVE_LOCKED'));
    expect(engine.isTerminated).toBe(true);
  });
});
