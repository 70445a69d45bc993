// Opens a store in Deno KV, writes, and is then frozen until a file is there, as a host freezes an isolate. Then it writes again.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { open, type VarveError } from 'varve';
import { denoKv } from 'varve/deno-kv';
import { openKv } from '../support/kv.ts';
import { parameters, say } from '../support/program.ts';

const { directory, freezes } = parameters<{ freezes: boolean }>();
const storage = denoKv(await openKv(directory, 'zombie.db'), { lease: 1000 });
const db = await open<string, number>('store', { storage, lockTimeout: 30_000 });
await db.set(freezes ? 'first' : 'heir', 1);
say('written');
if (freezes) {
  const clock = new Int32Array(new SharedArrayBuffer(4));
  while (!existsSync(join(directory, 'go on'))) Atomics.wait(clock, 0, 0, 50);
  const code = await db.set('zombie', 1).catch((error: unknown) => (error as VarveError).code);
  await db.close().catch(() => undefined);
  say(JSON.stringify({ code }));
} else {
  const keys: string[] = [];
  for await (const key of db.keys()) keys.push(key);
  await db.close();
  say(JSON.stringify({ keys }));
}
