// Reads what npm packed: a gzipped ustar archive, whose files are below `package/`.

import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';

const BLOCK = 512;

/** The files of a tarball: path in the package, and bytes. */
export function readTarball(path: string): Map<string, Buffer> {
  const archive = gunzipSync(readFileSync(path));
  const field = (start: number, length: number): string =>
    archive.toString('utf8', start, start + length).replace(/\0.*$/s, '');
  const files = new Map<string, Buffer>();
  for (let at = 0; at + BLOCK <= archive.length && archive[at] !== 0; ) {
    const prefix = field(at + 345, 155);
    const name = (prefix === '' ? '' : `${prefix}/`) + field(at, 100);
    const bytes = Number.parseInt(field(at + 124, 12), 8);
    at += BLOCK;
    files.set(name.replace(/^package\//, ''), archive.subarray(at, at + bytes));
    at += Math.ceil(bytes / BLOCK) * BLOCK;
  }
  return files;
}
