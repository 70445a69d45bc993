// The program of the kill loop: opens a store, leaves what it found in a file, and writes a history until it is killed.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { open } from 'varve';
import { files } from 'varve/fs';
import { open as openSync } from 'varve/synchronous';
import * as promises from '../../support/async-writer.ts';
import type { Found } from '../../support/history.ts';
import * as turns from '../../support/sync-writer.ts';
import { parameters, say } from '../support/program.ts';

const { directory, api, seed, round } = parameters<{
  api: 'varve' | 'varve/synchronous';
  seed: number;
  round: number;
}>();
// A small budget, so that tables are written and merged all the time. No other process could have the store open.
const options = { storage: files(directory), memoryBytes: 2 << 20, lockTimeout: 0 };
const report = (groups: number, sets: number): void => say(`acknowledged ${groups} ${sets}`);

/** Reports what was found: the file is complete before the line is. */
function found(what: Found): { seed: number; round: number; sequence: number } {
  writeFileSync(join(directory, `found-${round}.json`), JSON.stringify(what));
  say('found');
  return { seed, round, sequence: what.sequence };
}

if (api === 'varve') {
  const db = await open<number, unknown>('killed', options);
  await promises.write(db, found(await promises.read(db)), Number.POSITIVE_INFINITY, report);
} else {
  const db = await openSync<number, unknown>('killed', options);
  await turns.write(db, found(turns.read(db)), Number.POSITIVE_INFINITY, report);
}
