// Fill the disk: a small one, in memory. The store and its engine are real; filling the real disk of a visitor would not be polite.
// Invariant: refused writes were not acknowledged, and are not there.

import { open, VarveError } from 'varve';
import { LossyStorage } from 'varve/testing';
import { sentence } from '../../js/src/inspector/errors.ts';
import { byId, setText } from '../dom.ts';
import { formatBytes, formatCount, plural } from '../format.ts';
import { type Entries, Ledger } from './ledger.ts';
import type { Timeline } from './timeline.ts';

const STORE = 'break-full';
const ROOM_BYTES = 4 * 2 ** 20;
const VALUE_BYTES = 8000;
/** More entries than fit. */
const ENTRIES_MAX = 3000;
/** Entries written again when there is room. */
const MORE = 20;

/** Fills the disk, deletes, and continues. */
export async function fillDisk(timeline: Timeline): Promise<void> {
  const disk = new LossyStorage();
  disk.setRoom(ROOM_BYTES);
  const ledger = new Ledger(VALUE_BYTES);
  const db: Entries = await open(STORE, { storage: disk, memoryBytes: 2 ** 20 });
  try {
    timeline.add('done', `Made a disk of ${formatBytes(ROOM_BYTES)} and opened a store on it.`);
    const next = await fill(db, ledger, timeline);
    await verify(db, ledger, timeline, 'No refused write is there');
    await shrink(db, ledger, timeline);
    await goOn(db, disk, ledger, timeline, next);
    await verify(db, ledger, timeline, 'Nothing was lost');
  } finally {
    await db.close();
  }
}

/** Writes until a write is refused; returns the key of that write. */
async function fill(db: Entries, ledger: Ledger, timeline: Timeline): Promise<number> {
  for (let key = 0; key < ENTRIES_MAX; key += 1) {
    try {
      await db.set(key, ledger.value(key), { durability: 'strict' });
      ledger.note(key);
    } catch (error) {
      if (!isFull(error)) throw error;
      await showDisk(db);
      timeline.add(
        'broken',
        `The disk is full after ${plural(ledger.size, 'acknowledged write', 'acknowledged writes')}.`,
      );
      timeline.add('reported', sentence(error));
      return key;
    }
    if (key % 8 === 0) await showDisk(db);
  }
  throw new Error('The disk took more than it has room for.');
}

/** Deletes still work on a full disk. */
async function shrink(db: Entries, ledger: Ledger, timeline: Timeline): Promise<void> {
  const half = Math.floor(ledger.size / 2);
  await db.delete(0, { durability: 'strict' });
  await db.deleteRange({ gte: 1, lt: half }, { durability: 'strict' });
  for (let key = 0; key < half; key += 1) ledger.strike(key);
  timeline.add('done', `On the full disk ${formatCount(half)} entries were deleted, and the deletes were flushed.`);
}

/** Continues in the room that the deletes freed, or on a larger disk if that room is not enough. */
async function goOn(db: Entries, disk: LossyStorage, ledger: Ledger, timeline: Timeline, next: number): Promise<void> {
  let room = ROOM_BYTES;
  try {
    await db.compact();
    await writeMore(db, ledger, next);
    timeline.add('done', `compact() freed their room: ${plural(MORE, 'write', 'writes')} succeeded on the same disk.`);
  } catch (error) {
    if (!isFull(error)) throw error;
    timeline.add('reported', `A merge needs some room itself: ${sentence(error)}`);
    room += (await db.stats()).disk.bytes;
    disk.setRoom(ROOM_BYTES);
    await writeMore(db, ledger, next);
    timeline.add(
      'done',
      `The disk was made larger: ${plural(MORE, 'write', 'writes')} succeeded, and the store stayed open.`,
    );
  }
  await showDisk(db, room);
}

async function writeMore(db: Entries, ledger: Ledger, first: number): Promise<void> {
  for (let key = first; key < first + MORE; key += 1) {
    await db.set(key, ledger.value(key), { durability: 'strict' });
    ledger.note(key);
  }
}

async function verify(db: Entries, ledger: Ledger, timeline: Timeline, words: string): Promise<void> {
  const { kept, missing, extra } = await ledger.audit(db);
  const isRight = missing.length === 0 && extra.length === 0;
  if (isRight) {
    timeline.add('verified', `${words}: all ${formatCount(kept)} acknowledged entries are there, and nothing else.`);
  } else {
    timeline.add(
      'wrong',
      `${missing.length} acknowledged entries are missing, and ${extra.length} refused ones are there.`,
    );
  }
}

async function showDisk(db: Entries, room = ROOM_BYTES): Promise<void> {
  const { disk } = await db.stats();
  byId('full-meter', HTMLElement).style.setProperty('--fill', String(Math.min(1, disk.bytes / room)));
  setText(byId('full-text', HTMLElement), `${formatBytes(disk.bytes)} of ${formatBytes(room)}`);
}

function isFull(error: unknown): boolean {
  return error instanceof VarveError && error.code === 'VARVE_STORAGE_FULL';
}
