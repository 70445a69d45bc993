/** A store in files whose folder is removed, renamed or replaced while it is open, and slots that are not files of the store. */

import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { CompactorOutputs } from '../../js/src/compactor/output.ts';
import { files } from '../../js/src/fs.ts';
import { deleteStore, open } from '../../js/src/index.ts';
import { nextTurn } from '../../js/src/runtime/turn.ts';
import { type FileCalls, NODE_CALLS } from '../../js/src/storage/fs/calls.ts';
import { claim } from '../../js/src/storage/fs/claim.ts';
import { fileOutputs, toText } from '../../js/src/storage/fs/compactor.ts';
import { FileStorage } from '../../js/src/storage/fs/files.ts';
import * as sync from '../../js/src/synchronous.ts';
import { tools, wasm } from './support/engine.ts';
import { kindOf } from './support/kind-of.ts';

/** The number that the runtime adds to the device of a path, but not to the device of an open file. */
const added = vi.hoisted(() => ({ dev: 0 }));

vi.mock('node:fs', async (load) => {
  const real = await load<typeof fs>();
  const lstatSync = (path: string): fs.Stats => {
    const found = real.lstatSync(path);
    found.dev += added.dev;
    return found;
  };
  return { ...real, lstatSync };
});

let directory: string;

beforeEach(() => {
  added.dev = 0;
  directory = fs.mkdtempSync(join(tmpdir(), 'varve-lost-'));
});

afterEach(() => fs.rmSync(directory, { recursive: true, force: true }));

const wait = { lockTimeout: 0 };
const strict = { durability: 'strict' } as const;
const place = (): string => join(directory, 'data');
const folder = (): string => join(place(), 'notes');
const storage = () => files(place());
const value = (number: number): Uint8Array => new Uint8Array(1000).fill(number % 251);
const lost = {
  name: 'VarveError',
  code: 'VARVE_POISONED',
  message: expect.stringContaining('was removed, renamed or replaced while the store was open'),
};

/** Ways to take a store away from a holder that has it open. */
const takes: [name: string, take: () => void][] = [
  ['removed', () => fs.rmSync(place(), { recursive: true })],
  ['renamed', () => fs.renameSync(place(), `${place()}.old`)],
  ['replaced by a file', replaceByFile],
  ['left without its claim', removeClaims],
];

function replaceByFile(): void {
  fs.rmSync(place(), { recursive: true });
  fs.writeFileSync(place(), '');
}

function removeClaims(): void {
  const found = fs.readdirSync(place(), { recursive: true }).map(String);
  for (const path of found) if (basename(path).startsWith('lock')) fs.unlinkSync(join(place(), path));
}

test('a store opens where a runtime reports different devices for a path and its open file, and still recognizes its folder', async () => {
  added.dev = 7;
  const db = await open('notes', { storage: storage(), wasm });
  await db.set('before', 1, strict);
  expect(await db.get('before')).toBe(1);
  const copy = `${place()}.copy`;
  fs.cpSync(place(), copy, { recursive: true });
  fs.rmSync(place(), { recursive: true });
  fs.renameSync(copy, place());
  await expect(db.set('after', 2, strict)).rejects.toMatchObject(lost);
  await db.close().catch(() => undefined);
});

describe.each(takes)('a store whose folder is %s', (_, take) => {
  test('acknowledges nothing as strict, gives the reason for every call, and closes', async () => {
    const db = await open('notes', { storage: storage(), wasm });
    await db.set('before', 1, strict);
    take();
    await expect(db.set('after', 2, strict)).rejects.toMatchObject(lost);
    await expect(db.set('later', 3)).rejects.toMatchObject(lost);
    await expect(db.get('before')).rejects.toMatchObject(lost);
    await expect(db.compact()).rejects.toMatchObject(lost);
    await db.close();
  });

  // Story: the folder of a server's store was replaced by a backup. The server only read, so it gave out the old values until it ended.
  test('gives the reason for every call some seconds later, although nothing was written', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    const db = await open('notes', { storage: storage(), wasm });
    const other = await sync.open('other', { storage: storage(), wasm });
    await db.set('a', 1, strict);
    other.set('a', 1, strict);
    take();
    vi.advanceTimersByTime(5000);
    await expect(db.get('a')).rejects.toMatchObject(lost);
    expect(() => other.get('a')).toThrow(expect.objectContaining(lost));
    vi.useRealTimers();
    await db.close();
    await other.close();
  });

  test('fails a flush after relaxed writes', async () => {
    const db = await open('notes', { storage: storage(), wasm });
    await db.set('a', 1);
    take();
    await db.set('b', 2);
    await expect(db.flush()).rejects.toMatchObject(lost);
    await db.close();
  });

  test('fails the close if no call failed before', async () => {
    const db = await open('notes', { storage: storage(), wasm });
    await db.set('a', 1);
    take();
    await expect(db.close()).rejects.toMatchObject(lost);
  });

  test('acknowledges nothing as strict in the synchronous API either', async () => {
    const db = await sync.open<string, number>('notes', { storage: storage(), wasm });
    db.set('before', 1, strict);
    take();
    expect(() => db.set('after', 2, strict)).toThrow(expect.objectContaining(lost));
    expect(() => db.set('later', 3)).toThrow(expect.objectContaining(lost));
    expect(() => db.get('before')).toThrow(expect.objectContaining(lost));
    await db.close();
    const late = await sync.open<string, number>('notes', { storage: files(join(directory, 'other')), wasm });
    late.set('a', 1);
    fs.renameSync(join(directory, 'other'), join(directory, 'away'));
    expect(() => late.flush()).toThrow(expect.objectContaining(lost));
    await late.close();
  });
});

describe('a second opener of the path', () => {
  type Blobs = sync.SyncStore<number, Uint8Array>;
  const openBlobs = (): Promise<Blobs> =>
    sync.open<number, Uint8Array>('notes', { storage: storage(), wasm, memoryBytes: 1 << 20 });

  /** Copies the folder of stores without the claims: holders that have the stores open have the originals. */
  function backUp(): void {
    fs.cpSync(place(), `${place()}.backup`, { recursive: true, filter: (path) => !basename(path).startsWith('lock') });
  }

  function restore(): void {
    fs.renameSync(place(), `${place()}.old`);
    fs.renameSync(`${place()}.backup`, place());
  }

  /** Writes through a store whose folder is now another store's, until it refuses: into tables, and beyond its files. */
  async function writeUntilRefused(store: Blobs): Promise<unknown> {
    for (let key = 10_000; key < 20_000; key++) {
      try {
        store.set(key, value(key));
        if (key % 100 === 0) await nextTurn();
      } catch (error) {
        return error;
      }
    }
    return undefined;
  }

  test.each([
    ['a new store', 0, () => fs.rmSync(place(), { recursive: true })],
    ['a backup', 300, restore],
  ])(
    'has %s for itself: not a byte of it is written by the first',
    async (_, count, replace) => {
      const first = await openBlobs();
      for (let key = 0; key < 300; key++) first.set(key, value(key));
      first.flush();
      backUp();
      replace();
      const second = await openBlobs();
      expect(second.count()).toBe(count);
      const refused = writeUntilRefused(first);
      for (let key = 0; key < 4000; key++) {
        second.set(key, value(key), key % 20 === 0 ? strict : {});
        if (key % 200 === 0) await nextTurn();
      }
      expect(await refused).toMatchObject(lost);
      await first.close();
      await second.compact();
      expect((await second.check({ tools })).problems).toEqual([]);
      await second.close();
      const again = await openBlobs();
      expect([again.recovery.state, again.count()]).toEqual(['clean', 4000]);
      for (let key = 0; key < 4000; key++) expect(again.get(key)?.[999]).toBe(key % 251);
      await again.close();
    },
    60_000,
  );

  test('finds a claim that came with a copy of the open store, and its error names the holder', async () => {
    const first = await open('notes', { storage: storage(), wasm });
    await first.set('a', 1, strict);
    fs.cpSync(place(), `${place()}.backup`, { recursive: true });
    fs.renameSync(place(), `${place()}.old`);
    fs.renameSync(`${place()}.backup`, place());
    // The claim has the name of the first claim, but is not the same file.
    await expect(first.set('b', 2, strict)).rejects.toMatchObject(lost);
    await first.close();
    const second = await open('notes', { storage: storage(), wasm });
    expect(await second.get('a')).toBe(1);
    expect(await second.has('b')).toBe(false);
    await second.close();
  });

  test('keeps its slots to itself when the folder is replaced in the middle of a growth', async () => {
    let replaces = false;
    const openSync: FileCalls['openSync'] = (path, flags, mode) => {
      if (replaces && path.includes('slot')) {
        replaces = false;
        fs.renameSync(place(), `${place()}.old`);
        fs.mkdirSync(folder(), { recursive: true });
        fs.writeFileSync(path, 'of the second');
      }
      return fs.openSync(path, flags, mode);
    };
    const calls = { ...NODE_CALLS, openSync };
    const device = await new FileStorage(place(), { slotsMax: 100, calls }).open('notes', wait);
    const causes: unknown[] = [];
    device.onLost = (cause) => causes.push(cause);
    device.write(0, new Uint8Array(7).fill(1), 0);
    device.release(3);
    replaces = true;
    await expect(device.grow(2)).rejects.toMatchObject({ kind: 'io', message: lost.message });
    expect(device.count()).toBe(8);
    await expect(device.retake(3)).rejects.toMatchObject({ kind: 'io', message: lost.message });
    expect([kindOf(() => device.write(0, new Uint8Array(1), 0)), kindOf(() => device.truncate(0, 0))]).toEqual([
      'io',
      'io',
    ]);
    // It still reads the files that it has open; the host gets one report.
    expect(device.read(0, new Uint8Array(7), 0)).toBe(7);
    expect(causes).toEqual([expect.objectContaining(lost)]);
    await device.closeAll();
    expect(fs.readdirSync(folder())).toEqual(['slot-0008']);
    expect(fs.readFileSync(join(folder(), 'slot-0008'), 'utf8')).toBe('of the second');
  });

  test('keeps its slots to itself from a compactor of the first', async () => {
    const first = await claim(NODE_CALLS, 'notes', folder(), wait);
    fs.writeFileSync(join(folder(), 'slot-0005'), '');
    const outputs = await fileOutputs(toText(first.place));
    const output = await outputs(5);
    expect(output.write(new Uint8Array(3).fill(9), 0)).toBe(3);
    output.close();
    fs.renameSync(place(), `${place()}.old`);
    const second = await new FileStorage(place(), { slotsMax: 100 }).open('notes', wait);
    await expect(outputs(5)).rejects.toMatchObject({ kind: 'io', message: lost.message });
    expect(second.size(5)).toBe(0);
    first.release();
    await second.closeAll();
  });
});

// The story: a disk reported an error when the file of an output was closed. It was closed a second time, and then its number was already
// that of another file. The other outputs stayed open, the job got no answer, and the error passed for a fault of the engine.
test('outputs whose files report an error when they are closed are closed once, all of them', async () => {
  const first = await claim(NODE_CALLS, 'notes', folder(), wait);
  for (const slot of [3, 4, 5]) fs.writeFileSync(join(folder(), `slot-000${slot}`), '');
  const closed: number[] = [];
  const closeSync = (file: number): void => {
    closed.push(file);
    fs.closeSync(file);
    throw Object.assign(new Error('EIO: i/o error, close'), { code: 'EIO' });
  };
  let opened = 0;
  const openSync: FileCalls['openSync'] = (path, flags, mode) => {
    opened++;
    return fs.openSync(path, flags, mode);
  };
  const open = await fileOutputs(toText(first.place), { ...NODE_CALLS, openSync, closeSync });
  const outputs = new CompactorOutputs(open, async (table) => table);
  for (const table of [3, 4, 5]) await outputs.write(table, 0, new Uint8Array(3));
  expect(() => outputs.finish(3)).toThrow(expect.objectContaining({ code: 'VARVE_IO' }));
  outputs.closeAll();
  expect(closed).toHaveLength(opened);
  first.release();
});

describe('a slot that is a symbolic link', () => {
  test.each([0, 5])('(%i) is not followed when the store is opened, nor removed with it', async (slot) => {
    await (await open('notes', { storage: storage(), wasm })).close();
    const [target, path] = [join(directory, 'precious'), join(folder(), `slot-000${slot}`)];
    fs.writeFileSync(target, 'of somebody else');
    fs.unlinkSync(path);
    fs.symlinkSync(target, path);
    await expect(open('notes', { storage: storage(), wasm })).rejects.toMatchObject({
      code: 'VARVE_UNSUPPORTED',
      message: expect.stringContaining(`${basename(path)} is a symbolic link`),
    });
    await expect(deleteStore('notes', { storage: storage() })).rejects.toMatchObject({
      code: 'VARVE_IO',
      message: expect.stringContaining(`${folder()} stays: ${basename(path)} in it does not belong to the store`),
    });
    expect(fs.readdirSync(folder())).toEqual([basename(path)]);
    expect(fs.readFileSync(target, 'utf8')).toBe('of somebody else');
  });

  test.each([
    ['to a file', 'precious'],
    ['to nothing', 'nothing'],
  ])('%s is not followed by a store that grows', async (_, name) => {
    const device = await new FileStorage(place(), { slotsMax: 100 }).open('notes', wait);
    fs.writeFileSync(join(directory, 'precious'), 'of somebody else');
    fs.symlinkSync(join(directory, name), join(folder(), 'slot-0008'));
    await expect(device.grow(1)).rejects.toMatchObject({ kind: 'io' });
    expect([device.count(), device.write(0, new Uint8Array(1), 0)]).toEqual([8, 1]);
    await device.closeAll();
    expect(fs.readFileSync(join(directory, 'precious'), 'utf8')).toBe('of somebody else');
    expect(fs.existsSync(join(directory, 'nothing'))).toBe(false);
  });

  test('is not followed by a compactor', async () => {
    const { place, release } = await claim(NODE_CALLS, 'notes', folder(), wait);
    fs.writeFileSync(join(directory, 'precious'), 'of somebody else');
    fs.symlinkSync(join(directory, 'precious'), join(folder(), 'slot-0005'));
    const outputs = await fileOutputs(toText(place));
    await expect(outputs(5)).rejects.toMatchObject({ kind: 'io' });
    release();
  });

  test('or a folder is no slot', async () => {
    await (await open('notes', { storage: storage(), wasm })).close();
    fs.unlinkSync(join(folder(), 'slot-0002'));
    fs.mkdirSync(join(folder(), 'slot-0002'));
    await expect(open('notes', { storage: storage(), wasm })).rejects.toMatchObject({ name: 'VarveError' });
  });
});
