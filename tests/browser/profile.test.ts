// The other browser tests rely on this:
//
// - The browser keeps OPFS files on disk, in a profile that outlives it.
// - A quota can be set.
// - A worker can be terminated.
// - The strict policy is in force.

import type { Worker } from 'playwright';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { newProfile, openWorker, type Profile } from './support/profile.ts';

let profile: Profile;

beforeAll(async () => {
  profile = await newProfile();
});

afterAll(() => profile.close());

/** Writes a text through a sync access handle, flushes it, and leaves the handle open. */
function write(worker: Worker, text: string): Promise<number> {
  return worker.evaluate(async (words) => {
    const folder = await navigator.storage.getDirectory();
    const file = await folder.getFileHandle('smoke', { create: true });
    const handle = await file.createSyncAccessHandle();
    const count = handle.write(new TextEncoder().encode(words), { at: 0 });
    handle.flush();
    return count;
  }, text);
}

function read(worker: Worker): Promise<string> {
  return worker.evaluate(async () => {
    const folder = await navigator.storage.getDirectory();
    const handle = await (await folder.getFileHandle('smoke')).createSyncAccessHandle();
    const bytes = new Uint8Array(handle.getSize());
    handle.read(bytes, { at: 0 });
    handle.close();
    return new TextDecoder().decode(bytes);
  });
}

test('bytes that a sync access handle flushed are there after the browser was killed', async () => {
  const first = await profile.openPage('/blank.html');
  const { worker } = await openWorker(first.page, '/blank-worker.js');
  expect(await write(worker, 'silt')).toBe(4);
  const before = await profile.processId();
  await profile.kill();
  expect(await profile.processId()).not.toBe(before);
  const second = await profile.openPage('/blank.html');
  expect(await read((await openWorker(second.page, '/blank-worker.js')).worker)).toBe('silt');
  expect(second.errors).toEqual([]);
});

test('a terminated worker releases its handles', async () => {
  const { page } = await profile.openPage('/blank.html');
  const first = await openWorker(page, '/blank-worker.js');
  await write(first.worker, 'clay');
  await first.terminate();
  const second = await openWorker(page, '/blank-worker.js');
  await expect.poll(() => read(second.worker).catch(String), { timeout: 10_000 }).toBe('clay');
});

/** Appends 1 MiB at a time, 16 MiB at most; returns how many bytes were accepted and the error that ended it. */
function fill(worker: Worker): Promise<{ bytes: number; end: string }> {
  return worker.evaluate(async () => {
    const folder = await navigator.storage.getDirectory();
    const handle = await (await folder.getFileHandle('fill', { create: true })).createSyncAccessHandle();
    const chunk = new Uint8Array(1 << 20);
    let end = 'all was taken';
    try {
      while (handle.getSize() < 16 * chunk.length) {
        if (handle.write(chunk, { at: handle.getSize() }) < chunk.length) end = 'a short write';
      }
    } catch (error) {
      end = error instanceof DOMException ? error.name : String(error);
    }
    const bytes = handle.getSize();
    handle.truncate(0);
    handle.close();
    return { bytes, end };
  });
}

test('a page may store as much as the quota that was set, until it is reset', async () => {
  const { page } = await profile.openPage('/blank.html');
  const { worker } = await openWorker(page, '/blank-worker.js');
  const session = await profile.overrideQuota(page, 5_000_000);
  const limited = await fill(worker);
  expect(limited.end).toBe('QuotaExceededError');
  expect(limited.bytes).toBeLessThan(5_000_000);
  await session.detach();
  expect(await fill(worker)).toEqual({ bytes: 16 << 20, end: 'all was taken' });
});

test('the pages are under the strict policy and are not isolated', async () => {
  const { page, errors } = await profile.openPage('/blank.html');
  expect(await page.evaluate(() => crossOriginIsolated)).toBe(false);
  await page.evaluate(() => {
    const script = document.createElement('script');
    script.textContent = 'globalThis.ran = true';
    document.head.append(script);
  });
  expect(await page.evaluate(() => 'ran' in globalThis)).toBe(false);
  await expect.poll(() => errors.join(), { timeout: 30_000 }).toContain('Content Security Policy');
});
