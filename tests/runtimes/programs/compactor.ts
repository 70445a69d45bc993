// Fills a store until its tables are merged, beside this thread where that is possible. It closes the store in the middle of that, and
// checks whether anything is written afterwards. Then it leaves a store open. The process must end all the same.

import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { files } from 'varve/fs';
import { open, type SyncStore } from 'varve/synchronous';
import { parameters, say } from '../support/program.ts';

const { directory } = parameters();
const storage = files(directory);
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const value = (number: number): Uint8Array => new Uint8Array(300).fill(number % 251);

async function fill(store: SyncStore<number, Uint8Array>, sets: number): Promise<void> {
  for (let i = 0; i < sets; i++) {
    const key = (i * 7919) % 10_000;
    store.set(key, value(key));
    if (i % 200 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
}

/** A hash over all files of the store. */
function contents(): string {
  const hash = createHash('sha256');
  const folder = join(directory, 'merged');
  for (const file of readdirSync(folder).sort()) hash.update(file).update(readFileSync(join(folder, file)));
  return hash.digest('hex');
}

const device = await storage.open('device', { lockTimeout: 0 });
const { lendable } = device;
await device.closeAll();

let changes = 0;
let flushes = 0;
for (let round = 0; round < 3; round++) {
  const store = await open<number, Uint8Array>('merged', { storage, memoryBytes: 2 << 20 });
  await fill(store, 15_000);
  const compacting = store.compact().catch(() => undefined);
  await pause(round * 15);
  flushes += store.stats().flush.count;
  await store.close();
  const closed = contents();
  await Promise.all([compacting, pause(150)]);
  if (contents() !== closed) changes++;
}
const store = await open<number, Uint8Array>('merged', { storage, memoryBytes: 2 << 20 });
const { problems } = await store.check();
let wrong = 0;
for (let key = 0; key < 10_000; key++) if (store.get(key)?.[299] !== key % 251) wrong++;
say(JSON.stringify({ lendable, hasFlushed: flushes > 0, changes, problems, wrong }));
await fill(store, 5000);
