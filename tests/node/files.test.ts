/** Stores in files: the claim that keeps other holders out, errors of file calls, and the engine on top, in both APIs. */

import { type ChildProcess, spawn } from 'node:child_process';
import * as fs from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { files } from '../../js/src/fs.ts';
import { deleteStore, listStores, open, repair } from '../../js/src/index.ts';
import { nextTurn } from '../../js/src/runtime/turn.ts';
import type { ManagedDevice } from '../../js/src/storage/device.ts';
import { SLOT_DATA_OFFSET } from '../../js/src/storage/device.ts';
import { type FileCalls, NODE_CALLS } from '../../js/src/storage/fs/calls.ts';
import { FileStorage } from '../../js/src/storage/fs/files.ts';
import * as sync from '../../js/src/synchronous.ts';
import { filesOf, TABLE } from '../../js/src/tools/slot-page.ts';
import { tools, wasm } from './support/engine.ts';
import { kindOf } from './support/kind-of.ts';
import { LossyFiles } from './support/lossy-files.ts';

let directory: string;
let children: ChildProcess[];

beforeEach(() => {
  directory = fs.mkdtempSync(join(tmpdir(), 'varve-files-'));
  children = [];
});

afterEach(() => {
  for (const child of children) child.kill('SIGKILL');
  fs.rmSync(directory, { recursive: true, force: true });
});

const wait = { lockTimeout: 0 };
const slots = (name: string): string[] => fs.readdirSync(join(directory, name)).filter((file) => /^slot/.test(file));
const claims = (name: string): string[] => fs.readdirSync(join(directory, name)).filter((file) => /^lock/.test(file));

/** A process that does nothing until it is killed. */
async function idle(): Promise<ChildProcess & { pid: number }> {
  const child = spawn(process.execPath, ['-e', 'console.log(1); setInterval(() => {}, 1e6)']);
  children.push(child);
  await new Promise((resolve) => child.stdout.once('data', resolve));
  return child as ChildProcess & { pid: number };
}

/** When a process started, in the form of a claim. */
function startOf(pid: number): string {
  const stat = fs.readFileSync(`/proc/${pid}/stat`, 'utf8');
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '';
}

/** Leaves a claim in the directory of a store, as its holder would. */
function leaveClaim(
  store: string,
  {
    pid,
    started,
    host = hostname(),
    thread = 0,
  }: {
    pid: number;
    started: string;
    host?: string;
    thread?: number;
  },
): string {
  fs.mkdirSync(join(directory, store), { recursive: true });
  const path = join(directory, store, `lock.${pid}.${started}.${thread}.0.0.0123456789abcdef.${host}`);
  fs.writeFileSync(path, '');
  return path;
}

describe('a store in files', () => {
  test('keeps what was written, in both APIs, below a directory that was not there', async () => {
    const storage = files(pathToFileURL(join(directory, 'deep', 'er')));
    const db = await open('a/b', { storage, wasm });
    expect(db.storage).toEqual({ kind: 'files' });
    await db.set(['note', 42], { title: 'Silt' }, { durability: 'strict' });
    await db.close();
    const again = await sync.open('a/b', { storage, wasm });
    expect(again.recovery.state).toBe('clean');
    expect(again.get(['note', 42])).toEqual({ title: 'Silt' });
    await again.close();
    expect(await listStores({ storage })).toEqual(['a/b']);
    expect(fs.readdirSync(join(directory, 'deep', 'er'))).toEqual(['a%2Fb']);
    expect(await deleteStore('a/b', { storage })).toBe(true);
    expect(fs.readdirSync(join(directory, 'deep', 'er'))).toEqual([]);
    expect(await deleteStore('a/b', { storage })).toBe(false);
  });

  // Story: on macOS and Windows, `Bob` and `bob` were one folder. Only the name of the store is escaped, not the path of the stores.
  test('has a folder whose name is no other where case is ignored', async () => {
    const storage = files(join(directory, 'Data'));
    const names = ['BOB', 'Bob', 'bob', 'con'];
    for (const name of names) await (await open(name, { storage, wasm })).close();
    expect(fs.readdirSync(join(directory, 'Data')).sort()).toEqual(['%42%4F%42', '%42ob', '%63on', 'bob']);
    expect(await listStores({ storage })).toEqual(names);
    expect(await deleteStore('Bob', { storage })).toBe(true);
    expect(await listStores({ storage })).toEqual(['BOB', 'bob', 'con']);
  });

  test('flushes and merges tables, gets more files for them, and reads it all again', async () => {
    const storage = files(directory);
    const db = await sync.open('big', { storage, wasm, memoryBytes: 2 << 20 });
    const value = new Uint8Array(1000).fill(7);
    for (let number = 0; number < 12_000; number++) {
      db.set((number * 7919) % 5000, value);
      if (number % 500 === 0) await nextTurn();
    }
    await db.compact();
    expect(slots('big').length).toBeGreaterThan(8);
    await db.close();
    const again = await sync.open('big', { storage, wasm });
    expect(again.count()).toBe(5000);
    expect(again.get(4999)).toEqual(value);
    await again.close();
  }, 30_000);

  test('a copy of a closed store is a store', async () => {
    const storage = files(directory);
    const db = await sync.open('one', { storage, wasm });
    db.set('a', 1);
    await db.close();
    fs.cpSync(join(directory, 'one'), join(directory, 'two'), { recursive: true });
    const copy = await sync.open('two', { storage, wasm });
    expect(copy.get('a')).toBe(1);
    await copy.close();
  });

  test('damaged on the disk, is repaired into another one', async () => {
    const storage = files(directory);
    const db = await sync.open('one', { storage, wasm });
    for (let number = 0; number < 3000; number++) db.set(number, `value of ${number} `.repeat(10));
    await db.compact();
    await db.close();
    for (const file of slots('one')) {
      const path = join(directory, 'one', file);
      const bytes = fs.readFileSync(path);
      // A table, in the middle of its blocks.
      const table = filesOf(bytes.subarray(0, SLOT_DATA_OFFSET), bytes.length).find(({ kind }) => kind === TABLE);
      if (table !== undefined && bytes.length > 50_000)
        bytes[table.start + 16_000] = (bytes[table.start + 16_000] ?? 0) ^ 1;
      fs.writeFileSync(path, bytes);
    }
    const { name, entries, lost } = await repair('one', { storage, tools });
    expect(lost).toMatchObject([{ data: true, message: 'blocks of a table do not verify' }]);
    const repaired = await open(name, { storage, wasm });
    expect(await repaired.count()).toBe(entries);
    expect(entries).toBeGreaterThan(2900);
    expect(await repaired.get(2999)).toContain('value of 2999');
    expect((await repaired.check({ tools })).problems).toEqual([]);
    await repaired.close();
  });

  test('wrong options are refused', () => {
    for (const [path, options] of [
      ['', {}],
      [7, {}],
      ['x', { maxFiles: 63 }],
      ['x', { maxFiles: 100.5 }],
    ] as const) {
      expect(() => files(path as string, options)).toThrow(expect.objectContaining({ code: 'VARVE_INVALID_ARGUMENT' }));
    }
  });

  test('the room of the disk is reported', async () => {
    const device = await new FileStorage(directory, { slotsMax: 100 }).open('one', wait);
    const { bavail, bsize } = fs.statfsSync(directory);
    expect((await device.freeBytes()) ?? 0).toBeGreaterThan((bavail * bsize) / 2);
    await device.closeAll();
  });

  // Story: the disk behind a link was not mounted. `open` then never ended, whatever its `lockTimeout`.
  test.each([0, 60_000])('a folder that is a link to nothing is refused (lockTimeout %i)', async (lockTimeout) => {
    fs.symlinkSync(join(directory, 'nothing'), join(directory, 'one'));
    await expect(open('one', { storage: files(directory), wasm, lockTimeout })).rejects.toMatchObject({
      code: 'VARVE_IO',
      message: expect.stringContaining('ENOENT'),
    });
    expect(fs.existsSync(join(directory, 'nothing'))).toBe(false);
  });

  test.runIf(process.platform === 'linux')(
    'a directory that cannot be made is refused with the error of the system',
    async () => {
      const storage = files('/proc/varve');
      await expect(open('notes', { storage, wasm })).rejects.toMatchObject({
        code: 'VARVE_IO',
        message: expect.stringContaining('ENOENT'),
      });
    },
  );

  test('a directory that may not be used is refused with VARVE_UNSUPPORTED', async () => {
    fs.writeFileSync(join(directory, 'file'), '');
    const storage = files(join(directory, 'file'));
    await expect(open('x', { storage, wasm })).rejects.toMatchObject({ code: 'VARVE_UNSUPPORTED' });
  });
});

describe('the claim', () => {
  test('a second opener is refused with the holder in the error; the first continues, and leaves no claim', async () => {
    const storage = new FileStorage(directory, { slotsMax: 100 });
    const device = await storage.open('one', wait);
    const refused = storage.open('one', wait);
    await expect(refused).rejects.toMatchObject({
      code: 'VARVE_LOCKED',
      message: expect.stringContaining(`${process.pid}`),
    });
    await expect(storage.delete('one', wait)).rejects.toMatchObject({ code: 'VARVE_LOCKED' });
    expect(device.write(0, new Uint8Array(3), 0)).toBe(3);
    expect(claims('one')).toHaveLength(1);
    await device.closeAll();
    expect(claims('one')).toEqual([]);
  });

  // It was ignored, so this version and a later one had the store at once.
  test.each(['lock.2', 'lock.1.2.3.0.0.0123456789abcdef.zone.host'])('of an unknown form is kept: %s', async (name) => {
    const storage = new FileStorage(directory, { slotsMax: 100 });
    await (await storage.open('one', wait)).closeAll();
    const path = join(directory, 'one', name);
    fs.writeFileSync(path, '');
    const locked = { code: 'VARVE_LOCKED', message: expect.stringMatching(/^A newer version of varve.*lock\./) };
    await expect(storage.open('one', wait)).rejects.toMatchObject(locked);
    await expect(storage.delete('one', wait)).rejects.toMatchObject(locked);
    expect(claims('one')).toEqual([name]);
    fs.rmSync(path);
    await (await storage.open('one', wait)).closeAll();
  });

  test('a signal ends the waiting', async () => {
    const storage = new FileStorage(directory, { slotsMax: 100 });
    const device = await storage.open('one', wait);
    const controller = new AbortController();
    const listen = vi.spyOn(controller.signal, 'addEventListener');
    const waiting = storage.open('one', { lockTimeout: 20_000, signal: controller.signal });
    await vi.waitFor(() => expect(listen).toHaveBeenCalled());
    controller.abort();
    await expect(waiting).rejects.toMatchObject({ name: 'AbortError' });
    await device.closeAll();
  });

  test('of many that open at once, one has the store at a time, and in the end each had it', async () => {
    const storage = new FileStorage(directory, { slotsMax: 100 });
    let holders = 0;
    let most = 0;
    await Promise.all(
      Array.from({ length: 12 }, async () => {
        const device = await storage.open('one', { lockTimeout: 30_000 });
        most = Math.max(most, ++holders);
        await nextTurn();
        holders--;
        await device.closeAll();
      }),
    );
    expect(most).toBe(1);
    expect(claims('one')).toEqual([]);
  });

  test('of many that ask once at the same time, one gets it', async () => {
    const storage = new FileStorage(directory, { slotsMax: 100 });
    const asked = await Promise.allSettled(Array.from({ length: 8 }, () => storage.open('one', wait)));
    const opened = asked.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
    expect(opened).toHaveLength(1);
    await opened[0]?.closeAll();
  });

  test('of a process that runs it is kept, and of a killed process it is removed', async () => {
    const child = await idle();
    leaveClaim('one', { pid: child.pid, started: startOf(child.pid) });
    const storage = new FileStorage(directory, { slotsMax: 100 });
    await expect(storage.open('one', wait)).rejects.toMatchObject({
      code: 'VARVE_LOCKED',
      message: expect.stringContaining(`Process ${child.pid} has`),
    });
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await ended;
    await (await storage.open('one', wait)).closeAll();
    expect(claims('one')).toEqual([]);
  });

  test('of an earlier process whose pid was given away again it is not kept', async () => {
    const child = await idle();
    leaveClaim('one', { pid: child.pid, started: '1' });
    leaveClaim('two', { pid: process.pid, started: '1' });
    const storage = new FileStorage(directory, { slotsMax: 100 });
    for (const name of ['one', 'two']) await (await storage.open(name, wait)).closeAll();
  });

  test('of another machine it is kept, because it cannot be checked from here', async () => {
    const path = leaveClaim('one', { pid: 1, started: '1', host: 'elsewhere' });
    const storage = new FileStorage(directory, { slotsMax: 100 });
    await expect(storage.open('one', wait)).rejects.toMatchObject({
      code: 'VARVE_LOCKED',
      message: expect.stringMatching(/of the machine elsewhere .* remove .*lock\.1\.1\./),
    });
    fs.unlinkSync(path);
    await (await storage.open('one', wait)).closeAll();
  });

  test('of another thread of this process it is kept until the thread is ended', async () => {
    const path = leaveClaim('one', { pid: process.pid, started: startOf(process.pid), thread: 7 });
    const code = `require('node:fs').openSync(${JSON.stringify(path)}, 'r'); require('node:worker_threads').parentPort.postMessage(1); setInterval(() => {}, 1e6)`;
    const worker = new Worker(code, { eval: true });
    await new Promise((resolve) => worker.once('message', resolve));
    const storage = new FileStorage(directory, { slotsMax: 100 });
    await expect(storage.open('one', wait)).rejects.toMatchObject({
      code: 'VARVE_LOCKED',
      message: expect.stringContaining(`This process (${process.pid}, thread 7)`),
    });
    await worker.terminate();
    await (await storage.open('one', wait)).closeAll();
  });

  // Story: a process had one descriptor left. It made its claim with that, could not read the folder again, and left the claim there. So it
  // locked itself out until it ended, also when it had closed other files.
  test('is given up when its maker cannot look for others behind it', async () => {
    let left: string | undefined;
    let refuses = true;
    const openSync: FileCalls['openSync'] = (path, flags, mode) => {
      const file = fs.openSync(path, flags, mode);
      // Another process left a claim and died in between, so the second look differs from the first.
      if (path.includes('lock.')) left ??= leaveClaim('one', { pid: process.pid, started: '1' });
      return file;
    };
    const unlinkSync: FileCalls['unlinkSync'] = (path) => {
      if (refuses && path === left) throw failure('EIO');
      fs.unlinkSync(path);
    };
    const storage = withCalls({ openSync, unlinkSync });
    await expect(storage.open('one', wait)).rejects.toMatchObject({ code: 'VARVE_IO' });
    refuses = false;
    await (await storage.open('one', wait)).closeAll();
    expect(claims('one')).toEqual([]);
  });

  // Story: one process of Deno had made the file of its claim and was about to lock it. Another one found it not locked, and removed it a
  // moment later. By then the first one had seen its claim in the folder, so both had the store.
  test('of a process of Deno is removed only while nobody can lock it', async () => {
    const path = leaveClaim('one', { pid: process.pid, started: '1' });
    const making = path.replace('.0.0.0.', '.0.1.0.');
    fs.renameSync(path, making);
    let isHeldTwice = false;
    const openFile = (opened: string) => {
      const file = fs.openSync(opened, 'r+');
      const close = (): void => {
        fs.closeSync(file);
        isHeldTwice ||= opened === making && fs.existsSync(making);
      };
      return { lockSync: () => undefined, tryLockSync: () => true, close };
    };
    vi.stubGlobal('Deno', { openSync: openFile });
    vi.resetModules();
    try {
      const { FileStorage: DenoStorage } = await import('../../js/src/storage/fs/files.ts');
      const device = await new DenoStorage(directory, { slotsMax: 100 }).open('one', wait);
      expect([isHeldTwice, fs.existsSync(making)]).toEqual([false, false]);
      await device.closeAll();
    } finally {
      vi.unstubAllGlobals();
      vi.resetModules();
    }
  });

  test('a store that is deleted while somebody waits for it is a new one for them', async () => {
    let waiting: Promise<ManagedDevice> | undefined;
    const unlinkSync: FileCalls['unlinkSync'] = (path) => {
      waiting ??= path.includes('slot') ? storage.open('one', { lockTimeout: 20_000 }) : undefined;
      fs.unlinkSync(path);
    };
    const storage = withCalls({ unlinkSync });
    const device = await storage.open('one', wait);
    device.write(0, new Uint8Array(3), 0);
    await device.closeAll();
    expect(await storage.delete('one', wait)).toBe(true);
    const again = await waiting;
    expect([again?.count(), again?.size(0)]).toEqual([8, 0]);
    await again?.closeAll();
  });
});

/** The calls of Node, some of them replaced. */
const withCalls = (changed: Partial<FileCalls>): FileStorage =>
  new FileStorage(directory, { slotsMax: 100, calls: { ...NODE_CALLS, ...changed } });

function failure(code: string): Error {
  return Object.assign(new Error(`${code}: refused by the test`), { code });
}

/** Loses power; until then, `keepsNames` says whether the names in the folder of the store become durable. */
class KilledFiles extends LossyFiles {
  keepsNames = false;
  /** Directories that were synced. */
  readonly synced = new Set<string>();
  readonly #paths = new Map<number, string>();

  override openSync(path: string, flags: number | string, mode?: number): number {
    const file = super.openSync(path, flags, mode);
    this.#paths.set(file, path);
    return file;
  }

  override fsyncSync(file: number): void {
    const path = this.#paths.get(file) ?? '';
    if (!this.keepsNames && path.endsWith('one')) throw failure('EIO');
    super.fsyncSync(file);
    this.synced.add(path);
  }
}

// Story: a process was killed when it had made the slots of a new store, before their names were durable. The next one found them there,
// and acknowledged writes as strict. A loss of power then took the files.
test('the names of slots that a killed process made are durable before anybody writes to them', async () => {
  const calls = new KilledFiles();
  const storage = new FileStorage(directory, { slotsMax: 100, calls });
  await expect(storage.open('one', wait)).rejects.toMatchObject({ code: 'VARVE_IO' });
  expect(slots('one')).toHaveLength(8);
  calls.keepsNames = true;
  calls.synced.clear();
  const device = await storage.open('one', wait);
  expect([...calls.synced].sort()).toEqual([directory, join(directory, 'one')]);
  device.write(3, new Uint8Array(10), 0);
  device.flush(3);
  calls.losePower();
  const again = await storage.open('one', wait);
  expect([again.count(), again.size(3)]).toEqual([8, 10]);
  await again.closeAll();
});

describe('calls that the system refuses', () => {
  test.each([
    ['ENOSPC', 'full'],
    ['EDQUOT', 'full'],
    ['EFBIG', 'full'],
    ['EIO', 'io'],
  ])('%s of a write is %s, and the size stays what it is', async (code, kind) => {
    let refuses = false;
    const writeSync: FileCalls['writeSync'] = (...write) => {
      if (refuses) throw failure(code);
      return fs.writeSync(...write);
    };
    const device = await withCalls({ writeSync }).open('one', wait);
    device.write(0, new Uint8Array(10), 0);
    refuses = true;
    expect(kindOf(() => device.write(0, new Uint8Array(10), 10))).toBe(kind);
    expect(device.size(0)).toBe(10);
    await device.closeAll();
  });

  test('a short write is continued, and returns its count where the rest is refused', async () => {
    let room = 1000;
    const writeSync: FileCalls['writeSync'] = (file, bytes, from, length, at) => {
      if (room === 0) throw failure('ENOSPC');
      const count = Math.min(length, room, 7);
      room -= count;
      return fs.writeSync(file, bytes, from, count, at);
    };
    const device = await withCalls({ writeSync }).open('one', wait);
    const bytes = Uint8Array.from({ length: 100 }, (_, i) => i);
    expect(device.write(0, bytes, 5)).toBe(100);
    const into = new Uint8Array(100);
    expect(device.read(0, into, 5)).toBe(100);
    expect(into).toEqual(bytes);
    room = 50;
    expect(device.write(0, bytes, 105)).toBe(50);
    expect(device.size(0)).toBe(155);
    await device.closeAll();
  });

  test('a short read is continued to the end of the file', async () => {
    const readSync: FileCalls['readSync'] = (file, into, from, length, at) =>
      fs.readSync(file, into, from, Math.min(length, 3), at);
    const device = await withCalls({ readSync }).open('one', wait);
    device.write(
      0,
      Uint8Array.from({ length: 100 }, (_, i) => i),
      0,
    );
    const into = new Uint8Array(50);
    expect(device.read(0, into, 70)).toBe(30);
    expect([...into.subarray(28, 31)]).toEqual([98, 99, 0]);
    await device.closeAll();
  });

  test('a flush that fails is reported', async () => {
    const fdatasyncSync = () => {
      throw failure('EIO');
    };
    const device = await withCalls({ fdatasyncSync }).open('one', wait);
    expect(kindOf(() => device.flush(0))).toBe('io');
    await device.closeAll();
  });

  test('where no more files may be open a store has as many as it gets, and no descriptor is lost', async () => {
    const open = new Set<number>();
    let limit = 30;
    const calls: Partial<FileCalls> = {
      openSync: (...given) => {
        if (open.size >= limit) throw failure('EMFILE');
        const file = fs.openSync(...given);
        open.add(file);
        return file;
      },
      closeSync: (file) => {
        open.delete(file);
        fs.closeSync(file);
      },
    };
    const storage = withCalls(calls);
    const device = await storage.open('one', wait);
    expect(await device.grow(10)).toBe(10);
    const added = await device.grow(100);
    expect(added).toBeGreaterThan(0);
    expect(device.count()).toBe(18 + added);
    expect(await device.grow(1)).toBe(0);
    await device.closeAll();
    expect(open.size).toBe(0);
    limit = 12;
    await expect(storage.open('one', wait)).rejects.toMatchObject({
      code: 'VARVE_UNAVAILABLE',
      message: expect.stringContaining('ulimit'),
    });
    expect([open.size, claims('one')]).toEqual([0, []]);
  });

  // Story: a new store opened with the one or two files that it got, and its first write was refused as if the disk were full.
  test.each([3, 4])('a new store that gets too few files is refused, and opens later (limit %i)', async (limit) => {
    const open = new Set<number>();
    let most = limit;
    const storage = withCalls({
      openSync: (...given) => {
        if (open.size >= most) throw failure('EMFILE');
        const file = fs.openSync(...given);
        open.add(file);
        return file;
      },
      closeSync: (file) => {
        open.delete(file);
        fs.closeSync(file);
      },
    });
    await expect(storage.open('one', wait)).rejects.toMatchObject({ code: 'VARVE_UNAVAILABLE' });
    expect([open.size, claims('one')]).toEqual([0, []]);
    most = 100;
    const device = await storage.open('one', wait);
    expect(device.count()).toBe(8);
    await device.closeAll();
  });

  test('a full disk refuses a new store', async () => {
    const openSync: FileCalls['openSync'] = (path, flags, mode) => {
      if (path.includes('slot-0003')) throw failure('ENOSPC');
      return fs.openSync(path, flags, mode);
    };
    const opening = withCalls({ openSync }).open('one', wait);
    await expect(opening).rejects.toMatchObject({ code: 'VARVE_STORAGE_FULL' });
    expect(claims('one')).toEqual([]);
  });
});
