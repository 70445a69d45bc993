/**
 * `varve/fs`: stores in files, on Node from version 20, Bun and Deno.
 *
 * Invariant: importing this touches no file; it is an adapter for the option `storage` of `varve` and `varve/sync`.
 */

import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { VarveError } from './errors.ts';
import type { StorageAdapter } from './storage/adapter.ts';
import { FileStorage } from './storage/fs/files.ts';

export { VarveError, type VarveErrorCode } from './errors.ts';
export type { AdapterWait, StorageAdapter } from './storage/adapter.ts';
export type { ManagedDevice, SlotDevice } from './storage/device.ts';

/** Options of `files`. */
export interface FilesOptions {
  /**
   * Most files of a store, all of them open at once: an integer from 16. A store of `n` files holds up to `n / 2` times
   * 32 MiB. Default 1000. Where the process may open fewer, a store has as many as it gets.
   */
  readonly filesMax?: number | undefined;
}

/**
 * Stores in files under `directory`, a folder each. One process has a store open at a time, and one thread of it; another one gets
 * `VARVE_LOCKED`, which names the process. A process that was killed leaves its stores to the next one.
 *
 * `relaxed` hands a write to the operating system, so it survives the death of the process; `strict` has it flushed
 * (fdatasync), so it survives power loss. A relative path counts from the directory that the process is in now.
 *
 * @example
 * import { open } from 'varve';
 * import { files } from 'varve/fs';
 * const db = await open('notes', { storage: files('./data') });
 */
export function files(directory: string | URL, { filesMax }: FilesOptions = {}): StorageAdapter {
  if (filesMax !== undefined && !(Number.isInteger(filesMax) && filesMax >= 16 && filesMax <= 10_000)) {
    throw new VarveError('VARVE_INVALID_ARGUMENT', 'filesMax is an integer from 16 to 10,000.');
  }
  const isPlace = (typeof directory === 'string' && directory !== '') || directory instanceof URL;
  if (!isPlace) throw new VarveError('VARVE_INVALID_ARGUMENT', 'The directory of stores is a path or a file: URL.');
  return new FileStorage(resolve(directory instanceof URL ? fileURLToPath(directory) : directory), {
    slotsMax: filesMax,
  });
}
