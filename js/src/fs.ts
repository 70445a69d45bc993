/**
 * `varve/fs`: stores in files, on Node from version 20, Bun and Deno.
 *
 * Invariant: importing this touches no file; it is an adapter for the option `storage` of `varve` and `varve/synchronous`.
 */

import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { invalid } from './errors.ts';
import { checkOptions, type Known } from './options.ts';
import type { StorageAdapter } from './storage/adapter.ts';
import { openFilesMax } from './storage/fs/calls.ts';
import { FileStorage } from './storage/fs/files.ts';

export { VarveError, type VarveErrorCode } from './errors.ts';
export type { StorageAdapter } from './storage/adapter.ts';

/** Most files of a store. */
const FILES_MAX = 1000;
/** With fewer files there is no room for level 0 together with the inputs and outputs of a merge. */
const FILES_MIN = 64;

/** Options of `files`. */
export interface FilesOptions {
  /**
   * Most files of a store, all of them open at once: an integer, at least 64. A store of `n` files takes up to `n / 2` times
   * 32 MiB. Default: 1000, or half of the files that the process may have open if that is fewer (known on Linux only), but at
   * least 64.
   */
  readonly maxFiles?: number | undefined;
}

const FILES: Known<FilesOptions> = { maxFiles: 1 };

/**
 * Stores in files under `directory`, one folder for each store. Only one thread of one process has a store open at a time; others get
 * `VARVE_LOCKED`, with the process named in the message. After a process was killed, the next one can open its stores.
 *
 * `relaxed` hands a write to the operating system, so it survives the death of the process; `strict` also flushes it
 * (fdatasync), so it survives power loss. A relative path is relative to the working directory at the time of this call.
 *
 * @example
 * import { open } from 'varve';
 * import { files } from 'varve/fs';
 * const db = await open('notes', { storage: files('./data') });
 */
export function files(directory: string | URL, options: FilesOptions = {}): StorageAdapter {
  checkOptions(options, FILES);
  const { maxFiles } = options;
  if (maxFiles !== undefined && !(Number.isInteger(maxFiles) && maxFiles >= FILES_MIN && maxFiles <= 10_000)) {
    throw invalid('maxFiles is an integer from 64 to 10,000.');
  }
  const isPlace = (typeof directory === 'string' && directory !== '') || directory instanceof URL;
  if (!isPlace) throw invalid('The directory of stores is a path or a file: URL.');
  return new FileStorage(resolve(directory instanceof URL ? fileURLToPath(directory) : directory), {
    slotsMax: maxFiles ?? maxFilesHere(),
  });
}

/** How many files a store has at most: fewer than the process may open. */
function maxFilesHere(): number {
  const limit = openFilesMax();
  return limit === undefined ? FILES_MAX : Math.max(FILES_MIN, Math.min(FILES_MAX, Math.floor(limit / 2)));
}
