// One session of a store: the part that its page or service worker runs itself.

import type { OpenOptions, Store } from 'varve';
import type { Census } from '../../support/visits.ts';
import type { Visited, VisitPlan } from './visitor.ts';

type Open = (name: string, options: OpenOptions<string, string>) => Promise<Store<string, string>>;

/** Runs the session that `plan` describes, in the realm of `open`. */
export async function visit(open: Open, plan: VisitPlan): Promise<Visited> {
  const { storage, write, asked, readsAll, waits, closes, wait, dwell } = plan;
  const db = await open(`life-${storage}`, { storage, lockTimeout: wait });
  const counted = await census(db);
  const values = await db.getMany(asked);
  const entries: [string, string][] = [];
  if (readsAll) for await (const entry of db.entries()) entries.push(entry);
  const { key, value } = write;
  const written = value === undefined ? db.delete(key) : db.set(key, value);
  if (waits) await written;
  else written.catch(() => undefined);
  if (dwell > 0) await new Promise((resolve) => setTimeout(resolve, dwell));
  if (closes) await db.close();
  return { census: counted, values, entries };
}

async function census(db: Store<string, string>): Promise<Census> {
  const {
    log: { segments: walSegments },
    levels,
    disk: { bytes: diskBytes },
  } = await db.stats();
  const tables = levels.reduce((sum, level) => sum + level.tables, 0);
  const files = db.storage.kind === 'opfs' ? await filesIn(await navigator.storage.getDirectory()) : 0;
  return { records: db.recovery.records, segments: walSegments, tables, files, bytes: diskBytes, calls: 0 };
}

/** Files of the origin. A file that is created or removed meanwhile may be counted or not. */
async function filesIn(directory: FileSystemDirectoryHandle): Promise<number> {
  let files = 0;
  try {
    for await (const entry of directory.values()) {
      files += entry.kind === 'file' ? 1 : await filesIn(entry as FileSystemDirectoryHandle);
    }
  } catch (error) {
    if (!(error instanceof DOMException && error.name === 'NotFoundError')) throw error;
  }
  return files;
}
