/** Stores in files that containers share: claims from other PID namespaces, the holder's signs of life, and host names with dots. */

import { spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { ManagedDevice } from '../../js/src/storage/device.ts';
import { NODE_CALLS } from '../../js/src/storage/fs/calls.ts';
import { claim } from '../../js/src/storage/fs/claim.ts';
import { fileOutputs, toText } from '../../js/src/storage/fs/compactor.ts';
import { FileStorage } from '../../js/src/storage/fs/files.ts';
import { kindOf } from './support/kind-of.ts';

const INITIAL_SPACE = 4026531836;
const [SPACE, OTHER_SPACE] = [4026532301, 4026532402];

/** What the system reports of this process: its PID namespace, if that may be read, the host name, and whether it may touch files. */
const mine = vi.hoisted(() => ({ space: 0 as number | undefined, host: 'web', mayTouch: true }));

vi.mock('node:fs', async (load) => {
  const real = await load<typeof fs>();
  const readlinkSync = (path: string): string => {
    if (path !== '/proc/self/ns/pid') return real.readlinkSync(path);
    if (mine.space === undefined) throw new Error('refused by the test');
    return `pid:[${mine.space}]`;
  };
  const utimesSync: typeof fs.utimesSync = (...times) => {
    if (!mine.mayTouch) throw new Error('refused by the test');
    real.utimesSync(...times);
  };
  return { ...real, readlinkSync, utimesSync };
});

vi.mock('node:os', async (load) => ({ ...(await load<object>()), hostname: () => mine.host }));

let directory: string;
let devices: ManagedDevice[];
/** Milliseconds that passed while no timer ran: the process was busy, or frozen. */
let busyMs: number;

beforeEach(() => {
  mine.space = SPACE;
  mine.host = 'web';
  mine.mayTouch = true;
  directory = fs.mkdtempSync(join(tmpdir(), 'varve-containers-'));
  devices = [];
  busyMs = 0;
  vi.useFakeTimers({
    toFake: ['Date', 'performance', 'setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'],
  });
  const now = performance.now.bind(performance);
  vi.spyOn(performance, 'now').mockImplementation(() => now() + busyMs);
});

afterEach(async () => {
  for (const device of devices) await device.closeAll();
  vi.restoreAllMocks();
  vi.useRealTimers();
  fs.rmSync(directory, { recursive: true, force: true });
});

const storage = (): FileStorage => new FileStorage(directory, { slotsMax: 100 });
const folder = (): string => join(directory, 'one');
const claims = (): string[] => fs.readdirSync(folder()).filter((file) => /^lock/.test(file));
const touchedAt = (path: string): number => fs.statSync(path).mtimeMs;

/** Leaves the claim of a process with the pid of this one in another PID namespace. */
function leaveClaim(space: number): string {
  fs.mkdirSync(folder(), { recursive: true });
  const name = ['lock', process.pid, 1, 0, 0, space, '0123456789abcdef', hostname()];
  const path = join(folder(), name.join('.'));
  fs.writeFileSync(path, '');
  return path;
}

function touch(path: string): void {
  fs.utimesSync(path, new Date(), new Date());
}

/** Opens the store; reports how that ended, if it did. */
function opening(lockTimeout: number): { ended?: 'opened' | { code?: string; message?: string } } {
  const outcome: ReturnType<typeof opening> = {};
  storage()
    .open('one', { lockTimeout })
    .then(
      (device) => {
        devices.push(device);
        outcome.ended = 'opened';
      },
      (error: object) => {
        outcome.ended = error;
      },
    );
  return outcome;
}

async function open(): Promise<ManagedDevice & { path: string }> {
  const device = await storage().open('one', { lockTimeout: 0 });
  devices.push(device);
  return Object.assign(device, { path: join(folder(), claims()[0] ?? '') });
}

const locked = { code: 'VARVE_LOCKED' };

describe.runIf(process.platform === 'linux')(
  'a claim from another PID namespace, with the host name of this one',
  () => {
    test('is kept for as long as its holder touches it', async () => {
      const path = leaveClaim(OTHER_SPACE);
      const holder = setInterval(() => touch(path), 200);
      const opened = opening(20_000);
      await vi.advanceTimersByTimeAsync(21_000);
      expect(opened.ended).toMatchObject({
        ...locked,
        message: expect.stringMatching(`^Process ${process.pid} of another PID namespace .* remove ${path}`),
      });
      clearInterval(holder);
      expect(claims()).toHaveLength(1);
    });

    test('is removed when nobody has touched it for some 4 s, and the store opens', async () => {
      const path = leaveClaim(OTHER_SPACE);
      const opened = opening(5000);
      await vi.advanceTimersByTimeAsync(3900);
      expect([opened.ended, fs.existsSync(path)]).toEqual([undefined, true]);
      await vi.advanceTimersByTimeAsync(1100);
      expect([opened.ended, fs.existsSync(path)]).toEqual(['opened', false]);
      expect(claims()).toHaveLength(1);
    });

    test('is watched, and then half a second passes, in which a holder that was only late ends its writes', async () => {
      leaveClaim(OTHER_SPACE);
      const first = opening(60_000);
      await vi.advanceTimersByTimeAsync(3000);
      // Another opener, which began to watch earlier, removes it.
      fs.unlinkSync(join(folder(), claims()[0] ?? ''));
      await vi.advanceTimersByTimeAsync(400);
      expect([first.ended, claims().length]).toEqual([undefined, 1]);
      await vi.advanceTimersByTimeAsync(300);
      expect(first.ended).toBe('opened');
    });

    test('is taken over at once if its holder closes the store', async () => {
      const path = leaveClaim(OTHER_SPACE);
      const holder = setInterval(() => touch(path), 1000);
      const opened = opening(20_000);
      await vi.advanceTimersByTimeAsync(7900);
      clearInterval(holder);
      fs.unlinkSync(path);
      await vi.advanceTimersByTimeAsync(100);
      expect(opened.ended).toBe('opened');
    });

    test('is removed by one of two openers, and one of them has the store', async () => {
      leaveClaim(OTHER_SPACE);
      const both = [opening(8000), opening(8000)];
      await vi.advanceTimersByTimeAsync(9000);
      expect(both.map(({ ended }) => ended === 'opened').sort()).toEqual([false, true]);
      expect(claims()).toHaveLength(1);
    });

    test('is removed before a store is deleted, too', async () => {
      leaveClaim(OTHER_SPACE);
      const deleted = storage().delete('one', { lockTimeout: 5000 });
      await vi.advanceTimersByTimeAsync(5000);
      expect(await deleted).toBe(true);
      expect(fs.existsSync(folder())).toBe(false);
    });

    test.each([0, 3000])('is kept from an opener that waits %i ms: too short to know', async (lockTimeout) => {
      leaveClaim(OTHER_SPACE);
      const opened = opening(lockTimeout);
      await vi.advanceTimersByTimeAsync(lockTimeout + 100);
      expect(opened.ended).toMatchObject(locked);
      expect(claims()).toHaveLength(1);
    });

    test('is kept while an opener was frozen, because the holder may have been frozen with it', async () => {
      const path = leaveClaim(OTHER_SPACE);
      const opened = opening(100_000);
      await vi.advanceTimersByTimeAsync(1000);
      busyMs = 60_000;
      await vi.advanceTimersByTimeAsync(1500);
      expect([opened.ended, fs.existsSync(path)]).toEqual([undefined, true]);
      touch(path);
      await vi.advanceTimersByTimeAsync(3900);
      expect([opened.ended, fs.existsSync(path)]).toEqual([undefined, true]);
      await vi.advanceTimersByTimeAsync(1100);
      expect(opened.ended).toBe('opened');
    });

    test('is kept if that is the initial one, where nobody touches claims', async () => {
      const path = leaveClaim(INITIAL_SPACE);
      const opened = opening(60_000);
      await vi.advanceTimersByTimeAsync(61_000);
      expect(opened.ended).toMatchObject({ ...locked, message: expect.stringContaining(path) });
    });

    test.each([
      ['the same namespace', SPACE, SPACE],
      ['an unknown namespace', SPACE, 0],
      ['a known namespace, if the own one is unknown', undefined, OTHER_SPACE],
    ] as const)('is compared by its pid if it is of %s', async (_, own, space) => {
      mine.space = own;
      leaveClaim(space);
      const opened = opening(0);
      await vi.advanceTimersByTimeAsync(0);
      expect(opened.ended).toBe('opened');
    });
  },
);

describe.runIf(process.platform === 'linux')('a holder in a PID namespace that is not the initial one', () => {
  test('touches its claim once a second until it closes the store', async () => {
    const device = await open();
    expect(device.path).toContain(`.${SPACE}.`);
    for (let second = 0; second < 3; second++) {
      const before = touchedAt(device.path);
      await vi.advanceTimersByTimeAsync(1000);
      expect(touchedAt(device.path)).toBeGreaterThan(before);
    }
    await device.closeAll();
    expect([vi.getTimerCount(), claims()]).toEqual([0, []]);
  });

  test('keeps its store from an opener in another one', async () => {
    await open();
    mine.space = OTHER_SPACE;
    const opened = opening(20_000);
    await vi.advanceTimersByTimeAsync(21_000);
    expect(opened.ended).toMatchObject(locked);
  });

  test('touches its claim with its writes while its timers cannot run', async () => {
    const device = await open();
    const output = await compactor();
    const writes = [
      () => device.write(0, new Uint8Array(10), 0),
      () => device.truncate(0, 5),
      () => output.write(new Uint8Array(10), 0),
    ];
    for (const write of writes) {
      busyMs += 10_000;
      fs.utimesSync(device.path, 1, 1);
      write();
      expect(touchedAt(device.path)).toBeGreaterThan(1000);
    }
    output.close();
  });

  test('that was silent for so long that another holder removed its claim writes nothing more', async () => {
    const device = await open();
    const output = await compactor();
    const causes: unknown[] = [];
    device.onLost = (cause) => causes.push(cause);
    device.write(0, new Uint8Array(10), 0);
    fs.unlinkSync(device.path);
    busyMs += 10_000;
    const refused = [
      () => device.write(0, new Uint8Array(10), 10),
      () => device.truncate(0, 0),
      () => output.write(new Uint8Array(10), 0),
    ];
    expect(refused.map(kindOf)).toEqual(['io', 'io', 'io']);
    expect(fs.statSync(join(folder(), 'slot-0000')).size).toBe(10);
    expect(fs.statSync(join(folder(), 'slot-0005')).size).toBe(0);
    expect(causes).toEqual([expect.objectContaining({ code: 'VARVE_POISONED' })]);
    output.close();
  });

  // Story: a server was frozen, another one took its store over, and the first one then only read. It gave out old values for ever.
  test('that only reads learns within a second that another holder removed its claim', async () => {
    const device = await open();
    const lost = vi.fn();
    device.onLost = lost;
    await vi.advanceTimersByTimeAsync(3000);
    fs.unlinkSync(device.path);
    await vi.advanceTimersByTimeAsync(1000);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(lost.mock.calls).toEqual([[expect.objectContaining({ code: 'VARVE_POISONED' })]]);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('goes on if the file may not be touched', async () => {
    const device = await open();
    busyMs += 10_000;
    mine.mayTouch = false;
    await vi.advanceTimersByTimeAsync(2000);
    expect(device.write(0, new Uint8Array(10), 0)).toBe(10);
    fs.unlinkSync(device.path);
    expect(kindOf(() => device.write(0, new Uint8Array(10), 0))).toBe('io');
  });

  test.each([INITIAL_SPACE, undefined])('is told from one that is (%s), which touches nothing', async (space) => {
    mine.space = space;
    const device = await open();
    expect(device.path).toContain(`.${space ?? 0}.`);
    fs.utimesSync(device.path, 1, 1);
    await vi.advanceTimersByTimeAsync(10_000);
    device.write(0, new Uint8Array(10), 0);
    expect(touchedAt(device.path)).toBe(1000);
  });
});

/** A slot of the open store, as the compactor's thread has it. */
async function compactor(): Promise<Awaited<ReturnType<Awaited<ReturnType<typeof fileOutputs>>>>> {
  const path = join(folder(), claims()[0] ?? '');
  const { dev, ino } = fs.statSync(path);
  const outputs = await fileOutputs(
    JSON.stringify({ claim: path, dev, ino, knownBy: ['dev', 'ino'], isTouched: true }),
  );
  return outputs(5);
}

test('the place of a claim tells the compactor whether to touch it', async () => {
  const { place, release } = await claim(NODE_CALLS, 'one', folder(), { lockTimeout: 0 });
  expect(JSON.parse(toText(place))).toMatchObject({ isTouched: process.platform === 'linux' });
  release();
});

test('the claim of a killed process does not stay where the name of the host has dots', async () => {
  mine.host = `db-1.example.com${'.example'.repeat(20)}`;
  const { pid } = spawnSync(process.execPath, ['-e', '']);
  const device = await open();
  const left = join(folder(), device.path.replace(`lock.${process.pid}.`, `lock.${pid}.`).slice(folder().length + 1));
  await device.closeAll();
  fs.writeFileSync(left, '');
  const opened = opening(0);
  await vi.advanceTimersByTimeAsync(0);
  expect(opened.ended).toBe('opened');
  expect(fs.existsSync(left)).toBe(false);
});
