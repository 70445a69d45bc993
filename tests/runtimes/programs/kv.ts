// Writes a store in Deno KV, closes it, opens it again and prints what it found; leaves it open: the process must end all the same.

import { deleteStore, listStores, open } from 'varve';
import { denoKv } from 'varve/deno-kv';
import { openKv } from '../support/kv.ts';
import { parameters, say } from '../support/program.ts';

const ENTRIES = 8000;

const { directory } = parameters();
const options = { storage: denoKv(await openKv(directory)), memoryBytes: 1 << 20 };
const value = (number: number): Uint8Array => new Uint8Array(300).fill(1 + (number % 250));

const db = await open<string | number, unknown>('store', options);
const { kind } = db.storage;
const first = db.recovery.state;
for (let from = 0; from < ENTRIES; from += 500) {
  await Promise.all(Array.from({ length: 500 }, (_, i) => db.set(((from + i) * 7919) % ENTRIES, value(from + i))));
}
await db.set('large', new Uint8Array(3_000_000).fill(7), { durability: 'strict' });
await db.compact();
await db.close();

const again = await open<string | number, unknown>('store', { ...options, storage: denoKv(await openKv(directory)) });
let wrong = 0;
for (let i = 0; i < ENTRIES; i++) {
  const found = (await again.get((i * 7919) % ENTRIES)) as Uint8Array;
  if (found?.length !== 300 || found[299] !== 1 + (i % 250)) wrong++;
}
const large = (await again.get('large')) as Uint8Array;
const report = await again.check();
const refused = await open('store', { ...options, lockTimeout: 0 }).then(
  () => 'opened',
  (error: { code: string }) => error.code,
);
const encryption = { key: new Uint8Array(32).fill(7) };
const other = await open('other', { ...options, encryption });
await other.set('a', 1);
await other.close();
const withoutKey = await open('other', options).catch((error: { code: string }) => error.code);
const withKey = await open('other', { ...options, encryption });
const secret = [withoutKey, await withKey.get('a')];
await withKey.close();
const { storage } = options;
const stores = await listStores({ storage });
const gone = await deleteStore('other', { storage });
const left = await listStores({ storage });
const {
  flush: { count: flushes },
} = await again.stats();
say(
  JSON.stringify({
    ...{ kind, first, state: again.recovery.state, count: await again.count(), wrong, large: large.length },
    ...{ problems: report.problems, hasTables: report.tables > 0, refused, secret, stores, gone, left, flushes },
  }),
);
