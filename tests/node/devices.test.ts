/** Slot devices: what the engine may rely on, for every device alike, and the behaviour that only OPFS has. */

import 'fake-indexeddb/auto';
import { IDBFactory } from 'fake-indexeddb';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { ManagedDevice } from '../../js/src/storage/device.ts';
import { openIndexedDb } from '../../js/src/storage/indexeddb/chunk-store.ts';
import { MemoryDevice } from '../../js/src/storage/memory.ts';
import { escapeName, slotName, slotNumber, unescapeName } from '../../js/src/storage/names.ts';
import { openDevice } from '../../js/src/storage/open-device.ts';
import { OpfsDevice } from '../../js/src/storage/opfs.ts';
import { deleteStore, listStores } from '../../js/src/storage/stores.ts';
import { FakeDirectory, FakeFileHandle, FakeLocks, type FakeOpfs, stubOpfs } from './support/fake-opfs.ts';
import { kindOf } from './support/kind-of.ts';

const opened: ManagedDevice[] = [];
let opfs: FakeOpfs;
let databases = 0;

beforeEach(() => {
  opfs = stubOpfs();
  vi.stubGlobal('indexedDB', new IDBFactory());
});

afterEach(async () => {
  for (const device of opened.splice(0)) await device.closeAll();
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

async function openOpfs(name = 'store', wait = 0): Promise<OpfsDevice> {
  const device = await OpfsDevice.open(name, { waitMs: wait });
  opened.push(device);
  return device;
}

const text = (string: string): Uint8Array => new TextEncoder().encode(string);

describe.each([
  ['memory', async (): Promise<ManagedDevice> => new MemoryDevice()],
  ['opfs', (): Promise<ManagedDevice> => openOpfs()],
  [
    'indexeddb',
    async (): Promise<ManagedDevice> => {
      const device = await openIndexedDb(`store ${++databases}`);
      opened.push(device);
      return device;
    },
  ],
])('the %s device', (_, open) => {
  test('begins with eight open slots that contain only zeros', async () => {
    const device = await open();
    expect(device.count()).toBe(8);
    for (let slot = 0; slot < 8; slot++) {
      const held = new Uint8Array(device.size(slot)).fill(9);
      expect([device.isOpen(slot), device.read(slot, held, 0)]).toEqual([true, held.length]);
      expect(held.every((byte) => byte === 0)).toBe(true);
    }
  });

  test('reads back what was written, fills gaps with zeros and stops at the end', async () => {
    const device = await open();
    expect(device.write(3, text('silt'), 2)).toBe(4);
    const into = new Uint8Array(8).fill(9);
    expect(device.read(3, into, 1)).toBe(5);
    expect([...into]).toEqual([0, ...text('silt'), 9, 9, 9]);
    expect(device.read(3, into, 100)).toBe(0);
    expect(device.size(3)).toBe(6);
  });

  test('a truncated slot does not give its old bytes back when it grows again', async () => {
    const device = await open();
    device.write(0, text('sediment'), 0);
    device.truncate(0, 2);
    device.write(0, text('!'), 5);
    const into = new Uint8Array(6);
    device.read(0, into, 0);
    expect([...into]).toEqual([...text('se'), 0, 0, 0, ...text('!')]);
  });

  test('grows by open slots up to its limit', async () => {
    const device = await open();
    const [first, second] = await Promise.all([device.grow(3), device.grow(2)]);
    expect([first, second, device.count()]).toEqual([3, 2, 13]);
    expect(device.isOpen(12)).toBe(true);
    expect(await device.grow(1000)).toBe(device.slotsMax - 13);
    expect(await device.grow(1)).toBe(0);
  });

  test('a released slot refuses every call until it is retaken with its bytes', async () => {
    const device = await open();
    device.write(1, text('layer'), 0);
    device.release(1);
    expect(device.isOpen(1)).toBe(false);
    expect(kindOf(() => device.read(1, new Uint8Array(1), 0))).toBe('closed');
    expect(kindOf(() => device.write(1, text('x'), 0))).toBe('closed');
    expect(kindOf(() => device.flush(1))).toBe('closed');
    await device.retake(1);
    expect(device.size(1)).toBe(5);
  });

  test('a slot that does not exist is closed', async () => {
    const device = await open();
    expect(device.isOpen(99)).toBe(false);
    expect(kindOf(() => device.read(99, new Uint8Array(1), 0))).toBe('closed');
  });
});

describe('a full storage', () => {
  test('memory reports it by a short count', () => {
    const device = new MemoryDevice({ maxBytes: 6 });
    expect(device.write(0, text('1234'), 0)).toBe(4);
    expect(device.write(1, text('5678'), 0)).toBe(2);
    expect(device.write(0, text('abcd'), 0)).toBe(4);
  });

  test('an exception of OPFS becomes a slot error, and the size is asked for again', async () => {
    const device = await openOpfs();
    device.write(0, text('1234'), 0);
    opfs.quota = 4;
    expect(kindOf(() => device.write(0, text('56'), 4))).toBe('full');
    expect(device.size(0)).toBe(4);
    expect(device.write(0, text('abcd'), 0)).toBe(4);
  });

  test('a short count of OPFS is passed on, and the size is the real one', async () => {
    const device = await openOpfs();
    opfs.quota = opfs.used() + 3;
    opfs.fullStyle = 'short';
    expect(device.write(0, text('12345'), 0)).toBe(3);
    expect(device.size(0)).toBe(3);
  });
});

describe('OPFS', () => {
  test('a store opens again with as many slots as it had', async () => {
    const device = await openOpfs('again');
    await device.grow(2);
    device.write(9, text('kept'), 0);
    await device.closeAll();
    const again = await openOpfs('again');
    expect([again.count(), again.size(9)]).toEqual([10, 4]);
  });

  // The story: the room of an origin ended between two new files. The growth failed, and nobody used the first file before the next opening.
  test('a growth that finds no room half way adds the slots that it made', async () => {
    const device = await openOpfs();
    const { getFileHandle } = FakeDirectory.prototype;
    vi.spyOn(FakeDirectory.prototype, 'getFileHandle').mockImplementation(function (this: FakeDirectory, name, given) {
      if (name === slotName(9)) throw new DOMException('No room.', 'QuotaExceededError');
      return getFileHandle.call(this, name, given);
    });
    expect(await device.grow(2)).toBe(1);
    expect(device.isOpen(8)).toBe(true);
    await expect(device.grow(1)).rejects.toMatchObject({ kind: 'full' });
  });

  test('slots that another worker keeps open are VARVE_LOCKED after the wait', async () => {
    await openOpfs('held');
    await expect(OpfsDevice.open('held', { waitMs: 5 })).rejects.toMatchObject({ code: 'VARVE_LOCKED' });
  });

  test('slots that another worker releases during the wait are opened', async () => {
    const first = await openOpfs('handover');
    const second = openOpfs('handover', 5000);
    await first.closeAll();
    expect((await second).count()).toBe(8);
  });

  test('after a failed open no handle is left open', async () => {
    const directory = await (await opfs.root.getDirectoryHandle('varve', { create: true })).getDirectoryHandle('x', {
      create: true,
    });
    const held = await (await directory.getFileHandle('slot-0005', { create: true })).createSyncAccessHandle();
    await expect(OpfsDevice.open('x', { waitMs: 0 })).rejects.toMatchObject({ code: 'VARVE_LOCKED' });
    held.close();
    expect((await openOpfs('x')).count()).toBe(8);
  });

  test('in Chromium a long name is made and removed before the first that counts, once for each opening', async () => {
    vi.stubGlobal('navigator', { storage: opfs.storage, locks: new FakeLocks(), userAgentData: {} });
    const named: string[] = [];
    for (const method of ['getDirectoryHandle', 'getFileHandle', 'removeEntry'] as const) {
      const { [method]: call } = FakeDirectory.prototype;
      vi.spyOn(FakeDirectory.prototype, method).mockImplementation(function (this: FakeDirectory, ...args: unknown[]) {
        const isNew = !this.directories.has(`${args[0]}`) && !this.files.has(`${args[0]}`);
        if (isNew === (method !== 'removeEntry')) named.push(`${args[0]}`.slice(0, 12));
        return (call as (...args: unknown[]) => never).apply(this, args);
      });
    }
    const padding = ['varve-fills-', 'varve-fills-'];
    const device = await openOpfs('named');
    await device.grow(1);
    const slots = Array.from({ length: 9 }, (_, slot) => `slot-000${slot}`);
    // The first two calls check whether the store exists.
    expect(named).toEqual(['varve', ...padding, 'varve', 'named', ...slots]);
    await device.closeAll();
    named.length = 0;
    const again = await openOpfs('named');
    expect(named).toEqual([]);
    await again.grow(1);
    await again.grow(1);
    expect(named).toEqual([...padding, 'slot-0009', 'slot-0010']);
    // One left by a kill, and one that another worker removes first.
    await again.closeAll();
    await opfs.root.getDirectoryHandle('varve-fills-a-block'.padEnd(10_923, '-'), { create: true });
    named.length = 0;
    await (await openOpfs('named')).grow(1);
    expect(named).toEqual([...padding, ...padding.slice(1), 'slot-0011']);
    expect([...opfs.root.directories.keys()]).toEqual(['varve']);
  });

  test('after a refusal of the browser it is memory, with the reason', async () => {
    opfs.refusal = new DOMException('Security error when calling GetDirectory', 'SecurityError');
    const { device, report } = await openDevice('private', undefined, { waitMs: 0 });
    expect(device.kind).toBe('memory');
    expect(report).toEqual({ kind: 'memory', reason: expect.stringContaining('SecurityError') });
  });

  test('without synchronous handles it is memory, with the reason', async () => {
    vi.stubGlobal('FileSystemFileHandle', class {});
    const { report } = await openDevice('page', undefined, { waitMs: 0 });
    expect(report).toEqual({ kind: 'memory', reason: expect.stringContaining('dedicated workers') });
  });

  test('in a dedicated worker it is the browser that has no synchronous handles', async () => {
    vi.stubGlobal('FileSystemFileHandle', undefined);
    vi.stubGlobal('DedicatedWorkerGlobalScope', class {});
    const { report } = await openDevice('worker', undefined, { waitMs: 0 });
    expect(report.reason).toMatch(/^This browser has no synchronous file handles/);
  });

  // WebKitGTK with its file system switched on creates files, and throws NotSupportedError when one is opened. The empty directory that
  // this left behind was taken for the store at the next opening, and the store in IndexedDB was not found again.
  test('a browser that makes files and opens none leaves no trace of a store in OPFS', async () => {
    vi.stubGlobal(
      'FileSystemFileHandle',
      class {
        createSyncAccessHandle(): void {}
      },
    );
    const refuse = vi
      .spyOn(FakeFileHandle.prototype, 'createSyncAccessHandle')
      .mockRejectedValue(new DOMException('Backend does not support this operation', 'NotSupportedError'));
    for (const expected of ['new', 'made']) {
      const { device, report } = await openDevice('half', undefined, { waitMs: 0 }, openIndexedDb);
      expect(report).toMatchObject({
        kind: 'indexeddb',
        reason: expect.stringContaining(expected === 'new' ? 'NotSupportedError' : 'made in IndexedDB'),
      });
      await device.closeAll();
    }
    refuse.mockRestore();
  });

  test('a store in OPFS that the browser refuses to open once keeps its bytes', async () => {
    const device = await openOpfs('refused');
    device.write(3, text('kept'), 0);
    await device.closeAll();
    const refuse = vi
      .spyOn(FakeFileHandle.prototype, 'createSyncAccessHandle')
      .mockRejectedValue(new DOMException('Unknown failure', 'UnknownError'));
    await expect(openDevice('refused', 'opfs', { waitMs: 0 })).rejects.toMatchObject({ code: 'VARVE_UNSUPPORTED' });
    refuse.mockRestore();
    expect((await openOpfs('refused')).size(3)).toBe(4);
  });

  test('a locked store is never replaced by memory', async () => {
    await openOpfs('locked');
    await expect(openDevice('locked', 'opfs', { waitMs: 0 })).rejects.toMatchObject({ code: 'VARVE_LOCKED' });
  });
});

describe('names', () => {
  const names = [
    'notes',
    'a/b',
    '..',
    '.',
    'Ünïcødé',
    '100%',
    "it's (1)*!~",
    'BOB',
    'Bob',
    'bob',
    '%42ob',
    '%2F',
    '%2f',
    '/',
  ];
  const devices = ['con', 'Con', 'CON', 'prn', 'aux', 'nul', 'com0', 'com9', 'lpt1', 'conin$', 'con.txt', 'nul '];

  // Story: `Bob` and `bob` were one folder on macOS and Windows, so both stores wrote one set of files. Windows had no folder `con`.
  test.each([...names, ...devices])(
    '%j maps to a directory and back, and no other name does where case is ignored',
    (name) => {
      const directory = escapeName(name);
      expect(directory).toMatch(/^[a-z\d_-]*(%[\dA-F]{2}[a-z\d_-]*)*$/);
      expect(directory).not.toMatch(/^(con|prn|aux|nul|com\d|lpt\d)$/i);
      expect(unescapeName(directory)).toBe(name);
      const folded = directory.toLowerCase();
      const same = [...names, ...devices].filter((other) => escapeName(other).toLowerCase() === folded);
      expect(same).toEqual([name]);
    },
  );

  test.each(['Bob', 'con', 'a%2fb', '%42OB', 'a b'])('a folder %j is no store', (directory) => {
    expect(unescapeName(directory)).toBeUndefined();
  });

  test.each(['', '\ud800', 'x'.repeat(256), 'X'.repeat(86)])('%j is refused', (name) => {
    expect(() => escapeName(name)).toThrow(expect.objectContaining({ code: 'VARVE_INVALID_ARGUMENT' }));
  });

  // Slots from 10,000 on were ignored, which the Rust crate writes.
  test('a slot has a name of four digits or more, without other zeros', () => {
    for (const slot of [0, 7, 9999, 10_000, 65_535]) expect(slotNumber(slotName(slot))).toBe(slot);
    for (const name of ['slot-1', 'slot-00001', 'slot-01000', 'slot-65536', 'slot-100000', 'slot-00.5', 'slot-1e44'])
      expect(slotNumber(name)).toBeUndefined();
  });

  test('stores are listed by name and deleted once closed', async () => {
    await openOpfs('b/2');
    const first = await openOpfs('a 1');
    await opfs.root.getDirectoryHandle('not-ours', { create: true });
    expect(await listStores()).toEqual(['a 1', 'b/2']);
    await expect(deleteStore('a 1', { lockTimeout: 0 })).rejects.toMatchObject({ code: 'VARVE_LOCKED' });
    await first.closeAll();
    expect(await deleteStore('a 1', { lockTimeout: 0 })).toBe(true);
    expect(await deleteStore('a 1', { lockTimeout: 0 })).toBe(false);
    expect(await listStores()).toEqual(['b/2']);
  });

  test('where there is no OPFS there are no stores', async () => {
    vi.stubGlobal('navigator', {});
    expect(await listStores()).toEqual([]);
    expect(await deleteStore('none', { lockTimeout: 0 })).toBe(false);
  });
});
