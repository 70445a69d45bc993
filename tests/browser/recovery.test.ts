// Crashes during a recovery, many in a row, and a crash right after one. Nothing more is lost. Data that was dropped once never comes
// back.

import type { Worker } from 'playwright';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { History, type Plan } from '../support/history.ts';
import { consoleOf, Progress } from '../support/progress.ts';
import { randomFrom } from '../support/random.ts';
import { numberFrom, runSeed } from '../support/seed.ts';
import { newProfile, openWorker, type Profile } from './support/profile.ts';

const KILLS = numberFrom('VARVE_RECOVERY_KILLS', 4);
const seed = runSeed('browser', 'recovery');
const random = randomFrom(seed);
let profile: Profile;

beforeAll(async () => {
  profile = await newProfile();
});

afterAll(() => profile?.close());

/** A tab with the writer of the crash tests in it, in the page and in a worker. */
async function openWriters() {
  const { page } = await profile.openPage('/crash.html');
  const { worker } = await openWorker(page, '/crash-worker.js');
  return { page, worker, progress: new Progress(consoleOf(page)) };
}

test('a browser killed while stores recover, and right after, loses nothing more', async () => {
  const histories = { page: new History(), worker: new History() };
  const plans: Record<'page' | 'worker', Plan> = {
    page: { seed, round: 0, sequence: 0 },
    worker: { seed: seed + 1, round: 0, sequence: 0 },
  };
  const { page, worker, progress } = await openWriters();
  const started = performance.now();
  await Promise.all([page.evaluate(() => writer.open('page')), worker.evaluate(() => writer.open('worker'))]);
  const openingMs = performance.now() - started;
  await page.evaluate((plan) => writer.start('page', plan), plans.page);
  await worker.evaluate((plan) => writer.start('worker', plan), plans.worker);
  await Promise.all([progress.reached('page', 3000), progress.reached('worker', 3000)]);
  await profile.kill();

  let early = 0;
  for (let kill = 0; kill < KILLS; kill++) {
    const again = await openWriters();
    const opened = Promise.all([
      again.page.evaluate(() => writer.open('page')),
      again.worker.evaluate(() => writer.open('worker')),
    ]).then(
      () => 'opened',
      (error) => String(error),
    );
    // At some point while the store opens, or soon after: each kill covers its own part of that time.
    const moment = ((kill + random(1000) / 1000) / KILLS) * openingMs * 1.5;
    const reached = new Promise<string>((resolve) => setTimeout(resolve, moment, 'killed'));
    if ((await Promise.race([opened, reached])) === 'killed') early++;
    await profile.kill();
  }
  console.log(`${early} of ${KILLS} kills before both stores were open, within ${Math.round(openingMs)} ms`);

  const first = await openWriters();
  const found = {
    page: await first.page.evaluate(() => writer.open('page')),
    worker: await first.worker.evaluate(() => writer.open('worker')),
  };
  // It was read, so it must stay, although the browser is killed at once.
  await profile.kill();
  for (const name of ['page', 'worker'] as const) {
    histories[name].survive(plans[name], progress.groups(name), found[name]);
    expect(histories[name].size).toBeGreaterThan(500);
  }

  const second = await openWriters();
  histories.page.expect(await second.page.evaluate(() => writer.open('page')));
  histories.worker.expect(await second.worker.evaluate(() => writer.open('worker')));
});

/**
 * Flips a bit of the last record in the newest log segment of a store that nobody has open. Returns the place of the bit, so
 * that it can be flipped back. The layout is that of FORMAT.md: a slot's page with its header, a segment's header, records.
 */
function flipLastRecord(worker: Worker, name: string, place?: { file: string; offset: number }) {
  return worker.evaluate(
    async ([store, known]) => {
      const PAGE = 4096;
      const SEGMENT_HEADER = 48;
      const RECORD_HEADER = 24;
      const origin = await navigator.storage.getDirectory();
      const folder = await (await origin.getDirectoryHandle('varve')).getDirectoryHandle(store);
      const flip = async (file: string, offset: number): Promise<void> => {
        const handle = await (await folder.getFileHandle(file)).createSyncAccessHandle();
        const byte = new Uint8Array(1);
        handle.read(byte, { at: offset });
        byte[0] = (byte[0] ?? 0) ^ 0x20;
        handle.write(byte, { at: offset });
        handle.flush();
        handle.close();
      };
      if (known !== undefined) {
        await flip(known.file, known.offset);
        return known;
      }
      let newest: { file: string; offset: number; segment: bigint } | undefined;
      for await (const file of folder.values()) {
        if (file.kind !== 'file') continue;
        const view = new DataView(await (await file.getFile()).arrayBuffer());
        if (view.byteLength <= PAGE + SEGMENT_HEADER || view.getUint32(PAGE, true) !== 0x4c565256) continue;
        const segment = view.getBigUint64(PAGE + 8, true);
        const salt = view.getBigUint64(PAGE + 16, true);
        let last = 0;
        for (let at = SEGMENT_HEADER; PAGE + at + RECORD_HEADER <= view.byteLength; ) {
          if (view.getBigUint64(PAGE + at, true) !== (salt ^ BigInt(at))) break;
          last = at;
          at += RECORD_HEADER + Math.ceil(view.getUint32(PAGE + at + 8, true) / 8) * 8;
        }
        if (last > 0 && (newest === undefined || segment > newest.segment)) {
          newest = { file: file.name, offset: PAGE + last + RECORD_HEADER, segment };
        }
      }
      if (newest === undefined) throw new Error('the store has no log');
      await flip(newest.file, newest.offset);
      return { file: newest.file, offset: newest.offset };
    },
    [name, place] as const,
  );
}

/** The keys of a store, and what opening it reported. */
function keysOf(worker: Worker, name: string): Promise<{ state: string; keys: number[] }> {
  return worker.evaluate(async (store) => {
    const db = await varveSync.open<number, string>(store, { lockTimeout: 20_000 });
    return { state: db.recovery.state, keys: [...db.keys()] };
  }, name);
}

test('a torn record is dropped for good: it does not come back when its bytes do, also after a kill', async () => {
  const opened = await profile.openPage('/blank.html');
  const { worker, terminate } = await openWorker(opened.page);
  const all = await worker.evaluate(async () => {
    const db = await varveSync.open<number, string>('torn');
    for (let key = 0; key < 20; key++) db.set(key, 'flushed', { durability: 'strict' });
    return [...db.keys()];
  });
  // At once, so that no seal is written.
  await terminate();

  const reader = await openWorker(opened.page);
  const place = await flipLastRecord(reader.worker, 'torn');
  expect(await keysOf(reader.worker, 'torn')).toEqual({ state: 'torn', keys: all.slice(0, -1) });
  await profile.kill();

  const again = await profile.openPage('/blank.html');
  const healer = await openWorker(again.page);
  await flipLastRecord(healer.worker, 'torn', place);
  const found = await keysOf(healer.worker, 'torn');
  expect(found.keys).toEqual(all.slice(0, -1));
  await profile.kill();
  const last = await profile.openPage('/blank.html');
  expect((await keysOf((await openWorker(last.page)).worker, 'torn')).keys).toEqual(all.slice(0, -1));
});
