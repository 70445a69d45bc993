// Opens a store in files and runs steps in it, as it reads them from its standard input: a line of JSON each, answered by one.

import * as process from 'node:process';
import { createInterface } from 'node:readline';
import { open } from 'varve';
import { files } from 'varve/fs';
import { open as openSync } from 'varve/synchronous';
import { type FullStore, steps } from '../../support/full-steps.ts';
import { parameters, say } from '../support/program.ts';

type Line = { readonly step: keyof typeof steps | 'close'; readonly rest: unknown[] };

const { directory, isSync } = parameters<{ isSync: boolean }>();
const storage = files(directory);
const db: FullStore = isSync
  ? await openSync<number, Uint8Array>('full', { storage })
  : await open<number, Uint8Array>('full', { storage });
say('open');
for await (const line of createInterface({ input: process.stdin })) {
  const { step, rest } = JSON.parse(line) as Line;
  if (step === 'close') break;
  const call = steps[step] as (db: FullStore, ...rest: unknown[]) => Promise<unknown>;
  say(JSON.stringify(await call(db, ...rest)));
}
await db.close();
process.exit(0);
