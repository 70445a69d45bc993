// The program of the life test: sessions of a store in files, one after another. In the last one it is killed.

import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { open, type Store } from 'varve';
import { files } from 'varve/fs';
import { type Census, Guestbook, visitWrite } from '../../support/visits.ts';
import { parameters, say } from '../support/program.ts';

const NAME = 'life';
const { directory, seed, from, to } = parameters<{ seed: number; from: number; to: number }>();

async function census(db: Store<string, string>): Promise<Census> {
  const {
    log: { segments: walSegments },
    levels,
    disk: { bytes: diskBytes },
  } = await db.stats();
  const tables = levels.reduce((sum, level) => sum + level.tables, 0);
  const slots = readdirSync(join(directory, NAME)).length;
  return { records: db.recovery.records, segments: walSegments, tables, files: slots, bytes: diskBytes, calls: 0 };
}

// An app may run the code of its pages on a server as well: there it must get an error.
await open(NAME).then(
  () => say('on a server: opened'),
  (error) => say(`on a server: ${error.code}`),
);
const guestbook = new Guestbook(seed);
for (let visit = from; visit < to; visit++) {
  const isLast = visit === to - 1;
  const db = await open<string, string>(NAME, { storage: files(directory), lockTimeout: 0 });
  const counted = await census(db);
  const asked = guestbook.asked(visit);
  const values = await db.getMany(asked);
  const entries: [string, string][] = [];
  if (visit === from) for await (const entry of db.entries()) entries.push(entry);
  say(`came ${JSON.stringify({ visit, census: counted, asked, values, entries })}`);
  const { key, value } = visitWrite(seed, visit);
  const written = value === undefined ? db.delete(key) : db.set(key, value);
  // Every other process is killed before its last write is acknowledged; that write may be committed or not.
  if (isLast && visit % 2 === 0) await new Promise(() => say('stays'));
  await written;
  say(`wrote ${visit}`);
  if (isLast) await new Promise(() => say('stays'));
  await db.close();
}
