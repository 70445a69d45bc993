// The logs of the LevelDBs in which Chromium keeps names of files and IndexedDB, and what a kill leaves at their ends.
//
// A log is blocks of 32 KiB. A record is one or several fragments, none across the end of a block: a header of 7 bytes (u32
// checksum, u16 length, u8 type: 1 whole, 2 first, 3 middle, 4 last) and that many bytes. Chromium writes fragments one after
// the other, and the header of each before its bytes; a kill can come in between. The next start appends after the
// rest: https://github.com/google/leveldb/blob/main/doc/log_format.md

import { appendFileSync, existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const BLOCK_BYTES = 32 * 1024;
const HEADER_BYTES = 7;
const WHOLE = 1;
const LAST = 4;

/** The logs of the names of files in the origin private file systems of a profile, and those of its IndexedDB. */
export function logsOf(profile: string, what: 'names' | 'indexeddb'): string[] {
  const folder = join(profile, 'Default', what === 'names' ? 'File System' : 'IndexedDB');
  if (!existsSync(folder)) return [];
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  const wanted = what === 'names' ? /\bPaths\W\d+\.log$/ : /(\d+\.log|MANIFEST-\d+)$/;
  return files.filter((file) => wanted.test(file)).map((file) => join(folder, file));
}

/** Whether a log ends within a record. */
export function isTorn(log: string): boolean {
  const bytes = readFileSync(log);
  let type = WHOLE;
  for (let at = 0; at < bytes.length; ) {
    const left = BLOCK_BYTES - (at % BLOCK_BYTES);
    if (left < HEADER_BYTES) at += left;
    else if (at + HEADER_BYTES > bytes.length) return true;
    else {
      type = bytes.readUInt8(at + 6);
      at += HEADER_BYTES + bytes.readUInt16LE(at + 4);
    }
    if (at > bytes.length) return true;
  }
  return type !== WHOLE && type !== LAST;
}

/** Has the same effect as a kill between the two writes. */
export function tear(log: string): void {
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt16LE(1000, 4);
  header.writeUInt8(WHOLE, 6);
  appendFileSync(log, header);
}
