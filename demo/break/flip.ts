// Flip a byte: one byte of a closed store is changed in its files, as a failing disk would.
// Invariant: the store is made for this. A flip in a byte that nobody reads changes nothing, and then another byte is flipped.

import { deleteStore, open, repair, VarveError } from 'varve';
import { sentence } from '../../js/src/inspector/errors.ts';
import { formatBytes, formatCount, plural } from '../format.ts';
import { type Entries, Ledger } from './ledger.ts';
import { largestTable } from './slot-files.ts';
import type { Timeline } from './timeline.ts';

const STORE = 'break-byte';
const REPAIRED = 'break-byte-repaired';
const ENTRIES = 4000;
const VALUE_BYTES = 200;
const FLIPS_MAX = 12;
/** The first byte of a key that is a number. */
const NUMBER_KEY = 0x30;

/** Builds a store, damages it, and shows what is reported, salvaged and lost. */
export async function flip(timeline: Timeline): Promise<void> {
  const ledger = await build(timeline);
  for (let flips = 1; flips <= FLIPS_MAX; flips += 1) {
    timeline.add('broken', await flipByte());
    if (await isTold(timeline)) return salvage(timeline, ledger);
    timeline.add('reported', 'check() found no problem, because nothing reads that byte. The next byte follows.');
  }
  timeline.add('wrong', `After ${FLIPS_MAX} flipped bytes no damage was reported.`);
}

/** A store with tables, closed. */
async function build(timeline: Timeline): Promise<Ledger> {
  for (const name of [STORE, REPAIRED]) await deleteStore(name);
  const ledger = new Ledger(VALUE_BYTES);
  const db: Entries = await open(STORE, { storage: 'opfs', memoryBytes: 2 ** 20 });
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

/** Changes one bit of the largest table of the store, but not in the page that describes the slot; returns which. */
async function flipByte(): Promise<string> {
  const { handle, start, size } = await largestTable(STORE);
  const file = await handle.getFile();
  const offset = start + Math.floor(Math.random() * (size - start));
  const byte = new Uint8Array(await file.slice(offset, offset + 1).arrayBuffer())[0] ?? 0;
  const bit = Math.floor(Math.random() * 8);
  const writable = await handle.createWritable({ keepExistingData: true });
  await writable.write({ type: 'write', position: offset, data: Uint8Array.of(byte ^ (1 << bit)) });
  await writable.close();
  return `Bit ${bit} of byte ${formatCount(offset)} of ${handle.name}, a table of ${formatBytes(size - start)}, was flipped.`;
}

/** Opens the store and reads all of it; returns whether the damage was reported. */
async function isTold(timeline: Timeline): Promise<boolean> {
  let db: Entries;
  try {
    db = await open(STORE, { storage: 'opfs' });
  } catch (error) {
    if (!isCorrupt(error)) throw error;
    timeline.add('reported', `open: ${sentence(error)}`);
    return true;
  }
  try {
    timeline.add('done', 'The store opens, because opening reads little. Now every entry is read.');
    let read = 0;
    try {
      for await (const _ of db.entries()) read += 1;
      timeline.add('done', `${formatCount(read)} entries were read without an error.`);
    } catch (error) {
      if (!isCorrupt(error)) throw error;
      timeline.add('reported', `Reading stopped after ${plural(read, 'entry', 'entries')}: ${sentence(error)}`);
    }
    const { problems, blocks } = await db.check();
    for (const { file, message, offset } of problems.slice(0, 4)) {
      const where = offset === undefined ? '' : ` at byte ${formatCount(offset)}`;
      timeline.add('reported', `check(), over ${plural(blocks, 'block', 'blocks')}: ${file}${where}: ${message}.`);
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
    const keys = data ? `, keys between ${keyText(from)} and ${keyText(to)}` : ', no entries in it';
    const size = bytes === undefined ? '' : ` (${formatBytes(bytes)})`;
    timeline.add('reported', `Lost in ${file}: ${message}${size}${keys}.`);
  }
  const db: Entries = await open(REPAIRED, { storage: 'opfs' });
  const { kept, missing, extra } = await ledger.audit(db);
  await db.close();
  const all = `${formatCount(kept)} of ${formatCount(ledger.size)} entries are there with their right values`;
  if (extra.length > 0) {
    timeline.add('wrong', `${plural(extra.length, 'entry is', 'entries are')} there although nothing wrote them.`);
  } else if (missing.some((key) => !lost.some((part) => part.data && isWithin(key, part.from, part.to)))) {
    timeline.add('wrong', `${all}, and some are missing that repair() did not report as lost.`);
  } else if (missing.length === 0) {
    timeline.add('verified', `All ${formatCount(kept)} entries are there: the damaged byte only helped to find them.`);
  } else {
    const which = `keys ${formatCount(missing[0] ?? 0)} to ${formatCount(missing.at(-1) ?? 0)}`;
    timeline.add(
      'verified',
      `${all}. ${formatCount(missing.length)} are lost, ${which}, as repair() reported. None is wrong.`,
    );
  }
}

function isWithin(key: number, from: unknown, to: unknown): boolean {
  return key >= numberAt(from, Number.NEGATIVE_INFINITY) && key <= numberAt(to, Number.POSITIVE_INFINITY);
}

/**
 * The number at an end of a lost part. Such an end may lie between two keys and is then reported as bytes: 0x30, and the start of
 * a double whose sign bit is inverted (FORMAT.md, "Keys"); missing bytes count as zeros.
 */
function numberAt(end: unknown, unknown: number): number {
  if (typeof end === 'number') return end;
  if (!(end instanceof Uint8Array) || end[0] !== NUMBER_KEY) return unknown;
  const bytes = new Uint8Array(8);
  bytes.set(end.subarray(1, 9));
  bytes[0] = (bytes[0] as number) ^ 0x80;
  return new DataView(bytes.buffer).getFloat64(0);
}

function keyText(end: unknown): string {
  const number = numberAt(end, Number.NaN);
  return Number.isNaN(number) ? 'the end' : formatCount(number);
}

function isCorrupt(error: unknown): boolean {
  return error instanceof VarveError && error.code === 'VARVE_CORRUPT';
}
