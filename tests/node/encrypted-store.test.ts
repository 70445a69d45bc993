/** Stores with keys: what opens them, who may join them, and what changes their keys. */

import 'fake-indexeddb/auto';
import { createDecipheriv } from 'node:crypto';
import { IDBFactory } from 'fake-indexeddb';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Port } from '../../js/src/client/client.ts';
import type { EncryptionKey } from '../../js/src/encryption/types.ts';
import { EngineHost } from '../../js/src/engine/engine-host.ts';
import { VarveError } from '../../js/src/errors.ts';
import { check, deriveKey, open, repair } from '../../js/src/inline.ts';
import type { StorageAdapter } from '../../js/src/storage/adapter.ts';
import { SLOT_DATA_OFFSET } from '../../js/src/storage/device.ts';
import { openStore } from '../../js/src/store/open.ts';
import type { OpenOptions } from '../../js/src/store/open-options.ts';
import type { Store } from '../../js/src/store/store.ts';
import { open as openSync } from '../../js/src/synchronous.ts';
import { filesOf, TABLE } from '../../js/src/tools/slot-page.ts';
import type { Key } from '../../js/src/types.ts';
import { ChunkAdapter } from './support/chunk-adapter.ts';
import { spawnServer, tools, wasm } from './support/engine.ts';
import { stubOpfs } from './support/fake-opfs.ts';
import { KeptDevices } from './support/kept-devices.ts';

const refused = (sentence: string) => ({ code: 'VARVE_KEY', message: expect.stringContaining(sentence) });
const WRONG = refused('The key is wrong');

const key = (seed: number): Uint8Array => new Uint8Array(32).fill(seed);
const passphrase = (text: string): Promise<EncryptionKey> => deriveKey(text, { iterations: 100_000 });

const stores: { close(): Promise<void> }[] = [];

afterEach(async () => {
  for (const db of stores.splice(0).reverse()) await db.close().catch(() => undefined);
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

/** A function that opens the same store with another key each time. */
function place(storage: StorageAdapter = new KeptDevices()): (key?: EncryptionKey) => Promise<Store<Key, unknown>> {
  return async (key) => {
    const encryption = key === undefined ? undefined : { key };
    const db = await open<Key, unknown>('secret', { storage, wasm, memoryBytes: 2 ** 20, encryption });
    stores.push(db);
    return db;
  };
}

test('a store opens with its key only', async () => {
  const at = place();
  const db = await at(key(1));
  await db.set('a', 1);
  await db.close();
  await expect(at(key(2))).rejects.toMatchObject(WRONG);
  await expect(at()).rejects.toMatchObject({ code: 'VARVE_KEY' });
  await expect(at(key(1).subarray(1))).rejects.toMatchObject({ code: 'VARVE_INVALID_ARGUMENT' });
  expect(await (await at(key(1))).get('a')).toBe(1);
});

test('keys are added, changed and removed, and the last one stays', { timeout: 30_000 }, async () => {
  const at = place();
  const db = await at(key(1));
  await db.set('a', 1);
  await db.addEncryptionKey(await passphrase('old'));
  await db.changeEncryptionKey(await passphrase('old'), await passphrase('new'));
  await expect(db.removeEncryptionKey(await passphrase('old'))).rejects.toMatchObject(WRONG);
  await db.removeEncryptionKey(key(1));
  await expect(db.removeEncryptionKey(await passphrase('new'))).rejects.toMatchObject({
    code: 'VARVE_INVALID_ARGUMENT',
  });
  await db.close();
  await expect(at(key(1))).rejects.toMatchObject(WRONG);
  expect(await (await at(await passphrase('new'))).get('a')).toBe(1);
});

test('a store that was changed to another key goes on with that one', async () => {
  const at = place();
  const db = await at(key(1));
  await db.changeEncryptionKey(key(1), key(2));
  await db.addEncryptionKey(key(3));
  await db.rotateKey({ keys: [key(2), key(3)] });
  await db.close();
  for (const seed of [2, 3]) await (await at(key(seed))).close();
  await expect(at(key(1))).rejects.toMatchObject(WRONG);
});

test('a rotation needs every key, or removes the others', async () => {
  const at = place();
  const db = await at(key(1));
  await db.addEncryptionKey(key(2));
  await expect(db.rotateKey()).rejects.toMatchObject(refused('one key slot'));
  await expect(db.rotateKey({ keys: [key(1), key(3)] })).rejects.toMatchObject(WRONG);
  await expect(db.rotateKey({ key: key(1) } as never)).rejects.toMatchObject({ code: 'VARVE_INVALID_ARGUMENT' });
  await db.set('a', 1);
  await db.rotateKey({ removeOthers: true });
  await db.set('b', 2);
  await db.compact();
  await db.close();
  await expect(at(key(2))).rejects.toMatchObject(WRONG);
  const again = await at(key(1));
  expect(await again.getMany(['a', 'b'])).toEqual([1, 2]);
});

test('a plain store is encrypted where it is', async () => {
  const at = place();
  const db = await at();
  await db.set('a', 1);
  await expect(db.addEncryptionKey(key(1))).rejects.toMatchObject(refused('without a key'));
  await db.close();
  await expect(at(key(1))).rejects.toMatchObject({ code: 'VARVE_KEY' });
  const plain = await at();
  await plain.encrypt({ key: key(1) });
  await expect(plain.encrypt({ key: key(2) })).rejects.toMatchObject(refused('encrypted already'));
  await plain.addEncryptionKey(key(3));
  expect(await plain.get('a')).toBe(1);
  await plain.close();
  await expect(at(key(2))).rejects.toMatchObject(WRONG);
  expect(await (await at(key(3))).get('a')).toBe(1);
});

test('changes at the same time are made one after another', async () => {
  const at = place();
  const db = await at(key(1));
  await Promise.all([2, 3, 4, 5].map((seed) => db.addEncryptionKey(key(seed))));
  await db.close();
  for (const seed of [1, 2, 3, 4, 5]) await (await at(key(seed))).close();
});

test('a synchronous store has the same calls', async () => {
  const storage = new KeptDevices();
  const at = (seed: number) => openSync<Key, unknown>('secret', { storage, wasm, encryption: { key: key(seed) } });
  const db = await at(1);
  db.set('a', 1);
  await db.addEncryptionKey(key(2));
  await db.rotateKey({ keys: [key(1), key(2)] });
  await db.changeEncryptionKey(key(1), key(3));
  await db.removeEncryptionKey(key(2));
  await db.close();
  await expect(at(2)).rejects.toMatchObject(WRONG);
  const again = await at(3);
  stores.push(again);
  expect(again.get('a')).toBe(1);
});

/** The slots of a store that have the canary, and whether each of them has a file. */
async function canaries(storage: KeptDevices): Promise<Map<number, boolean>> {
  const device = await storage.open('secret', { lockTimeout: 0 });
  const found = new Map<number, boolean>();
  for (let slot = 0; slot < device.count(); slot++) {
    const bytes = Buffer.alloc(device.size(slot));
    device.read(slot, bytes, 0);
    if (bytes.includes('canary'))
      found.set(slot, filesOf(bytes.subarray(0, SLOT_DATA_OFFSET), bytes.length).length > 0);
  }
  await device.closeAll();
  return found;
}

/** Flips a bit of the first block of the first table. */
async function damageTable(storage: KeptDevices): Promise<void> {
  const device = await storage.open('secret', { lockTimeout: 0 });
  for (let slot = 0, isDone = false; slot < device.count() && !isDone; slot++) {
    const page = Buffer.alloc(SLOT_DATA_OFFSET);
    device.read(slot, page, 0);
    const table = filesOf(page, device.size(slot)).find(({ kind }) => kind === TABLE);
    if (table === undefined) continue;
    const at = table.start + 100;
    const byte = Buffer.alloc(1);
    device.read(slot, byte, at);
    device.write(slot, Uint8Array.of(byte[0]! ^ 1), at);
    isDone = true;
  }
  await device.closeAll();
}

/** Entries that compression leaves as they are, in tables and in the log. */
async function fill(db: Store<Key, unknown>): Promise<void> {
  await db.setMany(Array.from({ length: 500 }, (_, i): [Key, unknown] => [['canary', i], `canary ${i}`]));
  await db.compact();
  await db.set('late', 'canary in the log');
}

test('no key and no value is in its files, in tables or in the log', async () => {
  const storage = new KeptDevices();
  const at = place(storage);
  const db = await at(key(1));
  await fill(db);
  expect(await db.check({ tools })).toMatchObject({ ok: true });
  await db.close();
  expect(await canaries(storage)).toEqual(new Map());
});

test('the files from before it was encrypted are overwritten', async () => {
  const storage = new KeptDevices();
  const at = place(storage);
  const db = await at();
  await fill(db);
  await db.close();
  const before = await canaries(storage);
  expect([...before.values()].filter((isFile) => isFile).length).toBeGreaterThan(2);
  const again = await at();
  await again.encrypt({ key: key(1) });
  expect(await again.check({ tools })).toMatchObject({ ok: true });
  await again.close();
  const encrypted = await at(key(1));
  expect(await encrypted.count()).toBe(501);
  await encrypted.close();
  // A slot that was free before is overwritten when it is used.
  for (const [slot, isFile] of await canaries(storage)) expect([before.get(slot), isFile]).toEqual([false, false]);
});

test('files that an open snapshot reads are overwritten when it has ended', async () => {
  const storage = new KeptDevices();
  const db = await place(storage)();
  await fill(db);
  await db.compact();
  const snapshot = db.snapshot();
  expect(await snapshot.count()).toBe(501);
  await db.encrypt({ key: key(1) });
  expect(await snapshot.get('late')).toBe('canary in the log');
  await snapshot.close();
  await db.close();
  expect([...(await canaries(storage)).values()].filter((isFile) => isFile)).toEqual([]);
});

test('it is repaired with its key only, and the new store has the same keys', async () => {
  const storage = new KeptDevices();
  const at = place(storage);
  const db = await at(key(1));
  await fill(db);
  await db.addEncryptionKey(key(2));
  await db.close();
  const mend = (seed?: number) =>
    repair('secret', {
      storage,
      tools,
      into: 'mended',
      encryption: seed === undefined ? undefined : { key: key(seed) },
    });
  await expect(mend()).rejects.toMatchObject({ code: 'VARVE_KEY' });
  await expect(mend(3)).rejects.toMatchObject(WRONG);
  expect(await mend(2)).toMatchObject({ entries: 501, lost: [] });
  const open1 = () => open('mended', { storage, wasm, encryption: { key: key(1) } });
  const mended = await open1();
  stores.push(mended);
  expect(await mended.get('late')).toBe('canary in the log');
});

test('it is checked without its key, which tells damage from a wrong key, and with it', async () => {
  const storage = new KeptDevices();
  const db = await place(storage)(key(1));
  await fill(db);
  await db.close();
  const examine = (seed?: number) =>
    check('secret', { storage, tools, encryption: seed === undefined ? undefined : { key: key(seed) } });
  const sound = { ok: true, problems: [], tables: 1, segments: 1 };
  expect(await examine()).toMatchObject({ ...sound, withoutKey: true, entries: 0 });
  expect(await examine(1)).toMatchObject({ ...sound, withoutKey: false, entries: 500 });
  await expect(examine(2)).rejects.toMatchObject(WRONG);

  await damageTable(storage);
  const damaged = { ok: false, problems: [{ kind: 'block', file: expect.stringContaining('table') }] };
  expect(await examine()).toMatchObject({ ...damaged, withoutKey: true });
  expect(await examine(1)).toMatchObject({ ...damaged, withoutKey: false });
  await expect(examine(2)).rejects.toMatchObject(WRONG);
});

test('it is the same over a storage that commits later', async () => {
  const storage = new ChunkAdapter();
  const at = place(storage);
  const db = await at(key(1));
  await fill(db);
  await db.changeEncryptionKey(key(1), key(2));
  await db.rotateKey();
  await db.set('a', 1);
  expect(await db.check({ tools })).toMatchObject({ ok: true, withoutKey: false });
  await db.close();
  expect(await check('secret', { storage, tools })).toMatchObject({ ok: true, withoutKey: true });
  await expect(at(key(1))).rejects.toMatchObject(WRONG);
  await expect(at()).rejects.toMatchObject({ code: 'VARVE_KEY' });
  const again = await at(key(2));
  expect([await again.get('a'), await again.count()]).toEqual([1, 502]);
});

// Story: the storage was full, and `encrypt()` rejected with "Nothing is lost". A program that took the store for plain threw its key away.
describe('encrypting a store whose storage has no room to merge it', () => {
  const full = () => {
    const error = new VarveError('VARVE_STORAGE_FULL', 'The storage is full.');
    return vi.spyOn(EngineHost.prototype, 'compact').mockRejectedValueOnce(error);
  };
  const reported = {
    code: 'VARVE_STORAGE_FULL',
    message: expect.stringContaining('The store is encrypted and opens with this key only.'),
    cause: expect.objectContaining({ message: 'The storage is full.' }),
  };

  test('reports that it is encrypted, and the same call goes on', async () => {
    const at = place();
    const db = await at();
    await db.set('a', 1);
    const compact = full();
    await expect(db.encrypt({ key: key(1) })).rejects.toMatchObject(reported);
    await db.encrypt({ key: key(1) });
    expect(compact).toHaveBeenCalledTimes(2);
    await expect(db.encrypt({ key: key(2) })).rejects.toMatchObject(refused('encrypted already'));
    await db.close();
    await expect(at()).rejects.toMatchObject({ code: 'VARVE_KEY' });
    expect(await (await at(key(1))).get('a')).toBe(1);
  });

  test('is the same in a synchronous store', async () => {
    const storage = new KeptDevices();
    const db = await openSync<Key, unknown>('secret', { storage, wasm });
    stores.push(db);
    full();
    await expect(db.encrypt({ key: key(1) })).rejects.toMatchObject(reported);
    await db.close();
    await expect(openSync('secret', { storage, wasm })).rejects.toMatchObject({ code: 'VARVE_KEY' });
  });
});

describe('a store that tabs share', () => {
  beforeEach(() => {
    stubOpfs();
    vi.stubGlobal('indexedDB', new IDBFactory());
  });

  async function openTab(given?: EncryptionKey, spawn: () => Port = spawnServer): Promise<Store<Key, unknown>> {
    const encryption = given === undefined ? undefined : { key: given };
    const options: OpenOptions<Key, unknown> = { wasm, memoryBytes: 2 ** 20, encryption };
    const db = await openStore<Key, unknown>('shared', options, spawn, {});
    stores.push(db);
    return db;
  }

  test('is joined with its key only', async () => {
    const first = await openTab(key(1));
    await first.set('a', 1);
    await expect(openTab(key(2))).rejects.toMatchObject(WRONG);
    await expect(openTab()).rejects.toMatchObject(refused('is encrypted'));
    const second = await openTab(key(1));
    expect(await second.get('a')).toBe(1);
  });

  test('goes on in a tab that joined, with the key that it has by then', async () => {
    const first = await openTab(key(1));
    await first.set('a', 1);
    const second = await openTab(key(1));
    await second.changeEncryptionKey(key(1), key(2));
    await first.close();
    expect(await second.get('a')).toBe(1);
    await second.addEncryptionKey(key(3));
    await expect(openTab(key(1))).rejects.toMatchObject(WRONG);
    expect(await (await openTab(key(3))).get('a')).toBe(1);
  });

  test('has none of the keys that it refused', async () => {
    const first = await openTab(key(1));
    const second = await openTab(key(1));
    await expect(second.changeEncryptionKey(key(2), key(3))).rejects.toMatchObject(WRONG);
    await expect(second.removeEncryptionKey(key(2))).rejects.toMatchObject(WRONG);
    await first.addEncryptionKey(key(3));
    await first.removeEncryptionKey(key(1));
    await first.close();
    await expect(second.get('a')).rejects.toMatchObject(WRONG);
  });

  // Story: a tab changed its key and added another one at once. The second call was made with the key that the first one had just replaced.
  test('makes changes of one tab one after another, each with the key of the one before', async () => {
    await openTab(key(1));
    const second = await openTab(key(1));
    const made = vi.spyOn(EngineHost.prototype, 'changeKeys');
    const changed = second.changeEncryptionKey(key(1), key(2));
    await expect.poll(() => made.mock.calls.length, { interval: 1 }).toBe(1);
    await Promise.all([changed, second.addEncryptionKey(key(3)), second.changeEncryptionKey(key(2), key(4))]);
    await expect(openTab(key(2))).rejects.toMatchObject(WRONG);
    for (const seed of [3, 4]) await openTab(key(seed));
  });

  // Story: the user changed a passphrase in a tab that did not lead. The tab that led made the change, and was closed before it answered.
  // The call and all later ones rejected with "The key is wrong … Nothing was changed". So the user kept the old passphrase, which opened
  // nothing.
  describe('and whose leader ends when a change is made and not answered', () => {
    /** Opens the tab that leads. The function ends its worker when the next change is made. */
    async function openLeader(given?: EncryptionKey): Promise<[Store<Key, unknown>, () => Promise<void>]> {
      let worker: Port | undefined;
      const db = await openTab(given, () => {
        worker = spawnServer();
        return worker;
      });
      return [db, () => ended(worker as Port)];
    }

    /** Ends a worker when the next change is made. */
    function ended(worker: Port): Promise<void> {
      const { changeKeys } = EngineHost.prototype;
      return new Promise((resolve) => {
        vi.spyOn(EngineHost.prototype, 'changeKeys').mockImplementation(async function (this: EngineHost, change) {
          const isGone = await changeKeys.call(this, change);
          // The first of two requests to remove a key changes nothing.
          if (change.kind === 'add' && change.own === change.key) return isGone;
          vi.mocked(EngineHost.prototype.changeKeys).mockRestore();
          worker.terminate?.();
          resolve();
          return isGone;
        });
      });
    }

    test.each(['the tab itself', 'another tab'])('a key is changed; %s leads next', async (next) => {
      const [first, end] = await openLeader(key(1));
      await first.set('a', 1);
      await first.addEncryptionKey(key(3));
      if (next === 'another tab') await openTab(key(3));
      const second = await openTab(key(1));
      const isEnded = end();
      await second.changeEncryptionKey(key(1), key(2));
      await isEnded;
      expect(await second.get('a')).toBe(1);
      expect((await second.stats()).sharing?.leads).toBe(next === 'the tab itself');
      await second.addEncryptionKey(key(4));
      await expect(openTab(key(1))).rejects.toMatchObject(WRONG);
      for (const seed of [2, 4]) expect(await (await openTab(key(seed))).get('a')).toBe(1);
    });

    test.each(['the tab itself', 'another tab'])('a store is encrypted; %s leads next', async (next) => {
      const [first, end] = await openLeader();
      await first.set('a', 1);
      // A tab without the key cannot open the store any more: the one behind it does.
      if (next === 'another tab') await openTab();
      const second = await openTab();
      const isEnded = end();
      await second.encrypt({ key: key(1) });
      await isEnded;
      expect(await second.get('a')).toBe(1);
      await expect(openTab()).rejects.toMatchObject({ code: 'VARVE_KEY' });
      expect(await (await openTab(key(1))).get('a')).toBe(1);
    });

    test('a key is removed', async () => {
      const [first, end] = await openLeader(key(1));
      await first.addEncryptionKey(key(2));
      const isEnded = end();
      const second = await openTab(key(1));
      await second.removeEncryptionKey(key(2));
      await isEnded;
      await expect(second.removeEncryptionKey(key(2))).rejects.toMatchObject(WRONG);
      await expect(openTab(key(2))).rejects.toMatchObject(WRONG);
      expect((await second.stats()).sharing?.leads).toBe(true);
    });

    test('the key of the tab is removed: it cannot know that, and reports no "Nothing was changed"', async () => {
      const [first, end] = await openLeader(key(1));
      await first.addEncryptionKey(key(2));
      const second = await openTab(key(1));
      const isEnded = end();
      await expect(second.removeEncryptionKey(key(1))).rejects.toMatchObject(refused('It is not known'));
      await isEnded;
    });
  });
});

/** HChaCha20: the subkey of a key and the first 16 bytes of a nonce (draft-irtf-cfrg-xchacha-03, 2.2). */
function subkey(key: Uint8Array, start: Uint8Array): Uint8Array {
  const words = (bytes: Uint8Array): number[] =>
    Array.from({ length: bytes.length / 4 }, (_, i) => Buffer.from(bytes).readUInt32LE(i * 4));
  const state = Uint32Array.from([...words(Buffer.from('expand 32-byte k')), ...words(key), ...words(start)]);
  const step = (a: number, b: number, d: number, bits: number): void => {
    state[a]! += state[b]!;
    const mixed = state[d]! ^ state[a]!;
    state[d] = (mixed << bits) | (mixed >>> (32 - bits));
  };
  for (let round = 0; round < 20; round++) {
    for (let column = 0; column < 4; column++) {
      const [a, b, c, d] = [0, 1, 2, 3].map((row) => row * 4 + ((column + (round % 2) * row) % 4)) as Quarter;
      step(a, b, d, 16);
      step(c, d, b, 12);
      step(a, b, d, 8);
      step(c, d, b, 7);
    }
  }
  return new Uint8Array(Uint32Array.of(...state.subarray(0, 4), ...state.subarray(12)).buffer);
}

type Quarter = [number, number, number, number];

// The engine's own cipher for wasm writes it, and OpenSSL's reads it.
test('a record in the log is XChaCha20-Poly1305, as the format says', async () => {
  vi.spyOn(crypto, 'getRandomValues').mockImplementation((into) => {
    (into as unknown as Uint8Array).fill(0x5a);
    return into;
  });
  const devices = new KeptDevices();
  const db = await place(devices)(key(1));
  const value = 'silt and clay, sand and gravel '.repeat(40);
  await db.set('a', value, { durability: 'strict' });
  await db.close();

  const device = await devices.open('secret', { lockTimeout: 0 });
  const found: string[] = [];
  for (let slot = 0; slot < device.count(); slot++) {
    const bytes = Buffer.alloc(device.size(slot));
    device.read(slot, bytes, 0);
    const start = bytes.indexOf('VRVL', SLOT_DATA_OFFSET);
    if (start < 0) continue;
    const [segment, at] = [bytes.readBigUInt64LE(start + 8), start + 48];
    const length = bytes.readUInt32LE(at + 8);
    expect(length >>> 31).toBe(1);
    const end = at + 24 + (length & 0x7fffffff);
    const nonce = bytes.subarray(end - 40, end - 16);
    const place = Buffer.alloc(33, 0x5a);
    place.writeBigUInt64LE(segment | (2n << 56n), 16);
    place.writeBigUInt64LE(BigInt(at - start), 24);
    place.writeUInt8(0xff, 32);
    const iv = Buffer.concat([Buffer.alloc(4), nonce.subarray(16)]);
    const cipher = createDecipheriv('chacha20-poly1305', subkey(key(0x5a), nonce.subarray(0, 16)), iv, {
      authTagLength: 16,
    });
    cipher.setAAD(place, { plaintextLength: end - 40 - at - 24 });
    cipher.setAuthTag(bytes.subarray(end - 16, end));
    found.push(Buffer.concat([cipher.update(bytes.subarray(at + 24, end - 40)), cipher.final()]).toString('latin1'));
  }
  await device.closeAll();
  expect(found).toEqual([expect.stringContaining(value)]);
});
