// The program of the kill loop on Deno KV: as kill.ts on files. A killed process releases the store when its lease is over.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { open } from 'varve';
import { denoKv } from 'varve/deno-kv';
import * as promises from '../../support/async-writer.ts';
import { openKv } from '../support/kv.ts';
import { parameters, say } from '../support/program.ts';

const { directory, seed, round } = parameters<{ seed: number; round: number }>();
const storage = denoKv(await openKv(directory), { lease: 1000 });
const db = await open<number, unknown>('killed', { storage, memoryBytes: 2 << 20, lockTimeout: 30_000 });
const found = await promises.read(db);
// The file is complete before the line is.
writeFileSync(join(directory, `found-${round}.json`), JSON.stringify(found));
say('found');
await promises.write(db, { seed, round, sequence: found.sequence }, Number.POSITIVE_INFINITY, (groups, sets) =>
  say(`acknowledged ${groups} ${sets}`),
);
