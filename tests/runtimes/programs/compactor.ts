// In a round: fills a store until its tables are merged, beside this thread where that is possible, and closes it in the middle of that.
// It fills another store then, so that work which outlives the close has time to write. Without a round it checks the store, and leaves
// it open. The process must end all the same.

import { join } from 'node:path';
import { files } from 'varve/fs';
import { open, type SyncStore } from 'varve/synchronous';
import { hashOf } from '../support/folder-hash.ts';
import { parameters, say } from '../support/program.ts';

const { directory, round } = parameters<{ round?: number }>();
const storage = files(directory);
const value = (number: number): Uint8Array => new Uint8Array(300).fill(number % 251);
const openStore = (name: string): Promise<SyncStore<number, Uint8Array>> =>
  open<number, Uint8Array>(name, { storage, memoryBytes: 2 << 20 });

async function fill(store: SyncStore<number, Uint8Array>, sets: number): Promise<void> {
  for (let i = 0; i < sets; i++) {
    const key = (i * 7919) % 10_000;
    store.set(key, value(key));
    if (i % 200 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Begins to merge a store. Resolves when so many thirds of that are done, or when it has ended. */
async function mergePart(store: SyncStore<number, Uint8Array>, thirds: number): Promise<void> {
  await new Promise<void>((resolve) => {
    const onProgress = ({ done, total }: { done: number; total: number }): void => {
      if (done >= (total * thirds) / 3) resolve();
    };
    // Closing the store ends this with an error.
    store.compact({ onProgress }).then(resolve, () => resolve());
  });
}

if (round !== undefined) {
  const store = await openStore('merged');
  await fill(store, 15_000);
  await mergePart(store, round);
  const hasFlushed = store.stats().flush.count > 0;
  await store.close();
  const hash = hashOf(join(directory, 'merged'));
  const other = await openStore('other');
  await fill(other, 5000);
  await other.close();
  say(JSON.stringify({ hasFlushed, hash }));
} else {
  const device = await storage.open('device', { lockTimeout: 0 });
  const { lendable } = device;
  await device.closeAll();
  const store = await openStore('merged');
  const { problems } = await store.check();
  let wrong = 0;
  for (let key = 0; key < 10_000; key++) if (store.get(key)?.[299] !== key % 251) wrong++;
  say(JSON.stringify({ lendable, problems, wrong }));
  await fill(store, 5000);
}
