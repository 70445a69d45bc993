// Flip a byte: one byte of a closed store is changed in its files, as a failing disk would.
// Invariant: the store is made for this. A byte that nobody reads changes nothing, and then another one is flipped.

import { deleteStore, open, repair, VarveError } from 'varve';
import { formatBytes, formatCount, formatKey, plural } from '../format.ts';
import { sentence } from '../page.ts';
import { type Entries, Ledger } from './ledger.ts';
import type { Timeline } from './timeline.ts';

const STORE = 'break-byte';
const REPAIRED = 'break-byte-repaired';
const ENTRIES = 4000;
const VALUE_BYTES = 200;
/** The first page of a file says what it is; it is left alone, so that the damage is in what is kept. */
const HEADER_BYTES = 4096;
const FLIPS_MAX = 12;

/** Builds a store, damages it, and shows what is told, what is salvaged and what is lost. */
export async function flip(timeline: Timeline): Promise<void> {
  const ledger = await build(timeline);
  for (let flips = 1; flips <= FLIPS_MAX; flips += 1) {
    timeline.add('broken', await flipByte());
    if (await isTold(timeline)) return salvage(timeline, ledger);
    timeline.add('told', 'check() found nothing wrong: that byte was one that nobody reads. Another one, then.');
  }
  timeline.add('wrong', `After ${FLIPS_MAX} flipped bytes nothing was told.`);
}

/** A store with tables, closed. */
async function build(timeline: Timeline): Promise<Ledger> {
  for (const name of [STORE, REPAIRED]) await deleteStore(name);
  const ledger = new Ledger(VALUE_BYTES);
  const db: Entries = await open(STORE, { storage: 'opfs', memory: 2 ** 20 });
  for (let first = 0; first < ENTRIES; first += 500) {
    const keys = Array.from({ length: 500 }, (_, i) => first + i);
    await db.setMany(keys.map((key) => [key, ledger.value(key)] as const));
    for (const key of keys) ledger.note(key);
  }
  await db.compact();
  const { levels } = await db.stats();
  const tables = levels.reduce((sum, level) => sum + level.tables, 0);
  await db.close();
  const size = `${formatCount(ENTRIES)} entries in ${plural(tables, 'table', 'tables')}`;
  timeline.add('done', `Made a store, "${STORE}", of ${size}, and closed it.`);
  return ledger;
}

/** Changes one bit of the largest file of the store; says which. */
async function flipByte(): Promise<string> {
  const { handle, size } = await largestFile();
  const file = await handle.getFile();
  const offset = HEADER_BYTES + Math.floor(Math.random() * (size - HEADER_BYTES));
  const byte = new Uint8Array(await file.slice(offset, offset + 1).arrayBuffer())[0] ?? 0;
  const bit = Math.floor(Math.random() * 8);
  const writable = await handle.createWritable({ keepExistingData: true });
  await writable.write({ type: 'write', position: offset, data: Uint8Array.of(byte ^ (1 << bit)) });
  await writable.close();
  return `Bit ${bit} of byte ${formatCount(offset)} of ${handle.name} was flipped (the file has ${formatBytes(size)}).`;
}

async function largestFile(): Promise<{ handle: FileSystemFileHandle; size: number }> {
  const origin = await navigator.storage.getDirectory();
  const folder = await (await origin.getDirectoryHandle('varve')).getDirectoryHandle(STORE);
  let largest: { handle: FileSystemFileHandle; size: number } | undefined;
  for await (const handle of folder.values()) {
    if (!(handle instanceof FileSystemFileHandle)) continue;
    const { size } = await handle.getFile();
    if (largest === undefined || size > largest.size) largest = { handle, size };
  }
  if (largest === undefined) throw new Error('The store has no files.');
  return largest;
}

/** Opens the store and reads all of it; whether the damage was told. */
async function isTold(timeline: Timeline): Promise<boolean> {
  let db: Entries;
  try {
    db = await open(STORE, { storage: 'opfs' });
  } catch (error) {
    if (!isCorrupt(error)) throw error;
    timeline.add('told', `open: ${sentence(error)}`);
    return true;
  }
  try {
    timeline.add('done', 'It opens: opening reads little. Now every entry is read.');
    let read = 0;
    try {
      for await (const _ of db.entries()) read += 1;
      timeline.add('done', `${formatCount(read)} entries were read, all right.`);
    } catch (error) {
      if (!isCorrupt(error)) throw error;
      timeline.add('told', `Reading stopped after ${plural(read, 'entry', 'entries')}: ${sentence(error)}`);
    }
    const { problems, blocks } = await db.check();
    for (const { file, message, offset } of problems.slice(0, 4)) {
      const where = offset === undefined ? '' : ` at byte ${formatCount(offset)}`;
      timeline.add('told', `check(), over ${plural(blocks, 'block', 'blocks')}: ${file}${where}: ${message}.`);
    }
    return problems.length > 0;
  } finally {
    await db.close();
  }
}

/** Repairs the store into another one and compares. */
async function salvage(timeline: Timeline, ledger: Ledger): Promise<void> {
  const report = await repair(STORE, { into: REPAIRED });
  const { entries, lost } = report;
  timeline.add('done', `repair() wrote what it could read to "${REPAIRED}": ${plural(entries, 'entry', 'entries')}.`);
  for (const { file, message, bytes, from, to, data } of lost.slice(0, 4)) {
    const keys = data ? `, keys from ${keyText(from)} to ${keyText(to)}` : ', no entries in it';
    const size = bytes === undefined ? '' : ` (${formatBytes(bytes)})`;
    timeline.add('told', `Lost in ${file}: ${message}${size}${keys}.`);
  }
  const db: Entries = await open(REPAIRED, { storage: 'opfs' });
  const { kept, missing, extra } = await ledger.audit(db);
  await db.close();
  const all = `${formatCount(kept)} of ${formatCount(ledger.size)} entries are there with the values that were written`;
  if (extra.length > 0) {
    timeline.add('wrong', `${plural(extra.length, 'entry is', 'entries are')} there that nobody wrote.`);
  } else if (missing.some((key) => !lost.some((part) => part.data && isWithin(key, part.from, part.to)))) {
    timeline.add('wrong', `${all}, and some are missing that were not told as lost.`);
  } else if (missing.length === 0) {
    timeline.add(
      'verified',
      `All ${formatCount(kept)} entries are there: what was damaged was only a means to find them.`,
    );
  } else {
    const which = `keys ${formatCount(missing[0] ?? 0)} to ${formatCount(missing.at(-1) ?? 0)}`;
    timeline.add('verified', `${all}. ${formatCount(missing.length)} are lost, ${which}, as was told; none is wrong.`);
  }
}

function isWithin(key: number, from: unknown, to: unknown): boolean {
  return !(typeof from === 'number' && key < from) && !(typeof to === 'number' && key > to);
}

function keyText(key: unknown): string {
  return key === undefined ? 'the end' : formatKey(key);
}

function isCorrupt(error: unknown): boolean {
  return error instanceof VarveError && error.code === 'VARVE_CORRUPT';
}
