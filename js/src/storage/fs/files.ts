/**
 * The adapter over a directory of the file system.
 *
 * Invariant: whatever opens, lists or removes a store does so by its directory; opening and removing happen under its
 * claim. A store is its directory: one that was copied, or put back from a backup, is a store.
 */

import { join } from 'node:path';
import type { AdapterWait, StorageAdapter } from '../adapter.ts';
import { escapeName, slotNumber, unescapeName } from '../names.ts';
import { type FileCalls, NODE_CALLS, namesIn, removeFile, syncDirectory } from './calls.ts';
import { claim } from './claim.ts';
import { FileDevice } from './device.ts';
import { errnoOf, refusal } from './errno.ts';

/** How a `FileStorage` keeps its stores. */
export interface FileStorageOptions {
  /** Most files of a store, each an open file descriptor. */
  readonly slotsMax: number;
  /** The file calls to use instead of the runtime's, for tests. */
  readonly calls?: FileCalls | undefined;
}

/** Stores in one directory. */
export class FileStorage implements StorageAdapter {
  readonly kind = 'files';
  readonly #root: string;
  readonly #calls: FileCalls;
  readonly #slotsMax: number;

  /** `root` is an absolute path; it need not be there yet. */
  constructor(root: string, { slotsMax, calls = NODE_CALLS }: FileStorageOptions) {
    this.#root = root;
    this.#calls = calls;
    this.#slotsMax = slotsMax;
  }

  async open(name: string, options: AdapterWait): Promise<FileDevice> {
    const directory = join(this.#root, escapeName(name));
    try {
      const { release } = await claim(this.#calls, name, directory, options);
      try {
        return new FileDevice(directory, { calls: this.#calls, slotsMax: this.#slotsMax, onClosed: release });
      } catch (error) {
        release();
        throw error;
      }
    } catch (error) {
      throw refusal(error);
    }
  }

  async list(): Promise<string[]> {
    try {
      return namesIn(this.#root).flatMap((directory) => unescapeName(directory) ?? []);
    } catch (error) {
      throw refusal(error);
    }
  }

  async delete(name: string, options: AdapterWait): Promise<boolean> {
    const directory = join(this.#root, escapeName(name));
    if (!namesIn(this.#root).includes(escapeName(name))) return false;
    try {
      const { release } = await claim(this.#calls, name, directory, options);
      try {
        for (const file of namesIn(directory)) {
          if (slotNumber(file) !== undefined) removeFile(this.#calls, join(directory, file));
        }
      } finally {
        release();
      }
      this.#removeDirectory(directory);
      return true;
    } catch (error) {
      throw refusal(error);
    }
  }

  /** One that waited for the store may have it by now, empty as it is. */
  #removeDirectory(directory: string): void {
    try {
      this.#calls.rmdirSync(directory);
      syncDirectory(this.#calls, this.#root);
    } catch (error) {
      if (!['ENOTEMPTY', 'EEXIST', 'ENOENT'].includes(errnoOf(error) ?? '')) throw error;
    }
  }
}
