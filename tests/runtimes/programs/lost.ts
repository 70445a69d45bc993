// Has the folder of open stores removed, and prints what each of them answers, and the content of the store opened in its place.

import { readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { open, VarveError } from 'varve';
import { files } from 'varve/fs';
import { parameters, say } from '../support/program.ts';

const { directory } = parameters();
const root = join(directory, 'lost');
const storage = files(root);
const value = (key: number): Uint8Array => new Uint8Array(1000).fill(key % 251);

async function codeOf(call: Promise<unknown>): Promise<string> {
  try {
    await call;
    return 'done';
  } catch (error) {
    return error instanceof VarveError ? error.code : String(error);
  }
}

const answers: Record<string, unknown> = {};
for (const [how, take] of [
  ['removed', () => rmSync(root, { recursive: true })],
  ['renamed', () => renameSync(root, `${root}.old`)],
] as const) {
  const first = await open<number, Uint8Array>('notes', { storage, memoryBytes: 1 << 20 });
  for (let key = 0; key < 3000; key++) await first.set(key, value(key));
  const merging = codeOf(first.compact());
  take();
  const second = await open<number, Uint8Array>('notes', { storage, memoryBytes: 1 << 20 });
  const refused = codeOf(first.set(-1, value(0), { durability: 'strict' }));
  for (let key = 0; key < 3000; key++) await second.set(key, value(key + 1));
  await second.compact();
  const codes = [await refused, await codeOf(first.get(1)), await merging];
  await first.close();
  const { ok } = await second.check();
  await second.close();
  const again = await open<number, Uint8Array>('notes', { storage });
  let wrong = (await again.count()) - 3000;
  for (let key = 0; key < 3000; key++) if ((await again.get(key))?.[0] !== (key + 1) % 251) wrong++;
  await again.close();
  answers[how] = { codes: codes.slice(0, 2), isMerged: ['done', 'VARVE_POISONED'].includes(codes[2] ?? ''), ok, wrong };
  rmSync(root, { recursive: true });
}
const filesLeft = readdirSync(`${root}.old/notes`).filter((name) => name.startsWith('slot')).length;
say(JSON.stringify({ ...answers, hasOldOne: filesLeft >= 8 }));
