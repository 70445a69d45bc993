/**
 * The adapter over a directory of the file system.
 *
 * Invariant: opening, listing and removing a store all go by its directory; opening and removing happen under its claim. A directory
 * with a slot or a claim in it is a store, even if it was copied or restored from a backup. Any other directory is not a store.
 * Nothing else is ever removed.
 */

import { type Dirent, lstatSync } from 'node:fs';
import { join } from 'node:path';
import { VarveError } from '../../errors.ts';
import type { LockOptions, StorageAdapter } from '../adapter.ts';
import { escapeName, slotNumber, unescapeName } from '../names.ts';
import { entriesIn, type FileCalls, NODE_CALLS, namesIn, removeFile, syncDirectory } from './calls.ts';
import { claim, isClaim } from './claim.ts';
import { FileDevice } from './device.ts';
import { errnoOf, isNoDirectory, refusal } from './errno.ts';

/** How a `FileStorage` keeps its stores. */
interface FileStorageOptions {
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

  /** `root` is an absolute path; it need not exist yet. */
  constructor(root: string, { slotsMax, calls = NODE_CALLS }: FileStorageOptions) {
    this.#root = root;
    this.#calls = calls;
    this.#slotsMax = slotsMax;
  }

  async open(name: string, options: LockOptions): Promise<FileDevice> {
    const directory = join(this.#root, escapeName(name));
    try {
      const held = await claim(this.#calls, name, directory, options);
      try {
        return new FileDevice(held, { calls: this.#calls, slotsMax: this.#slotsMax });
      } catch (error) {
        held.release();
        throw error;
      }
    } catch (error) {
      throw refusal(error);
    }
  }

  async list(): Promise<string[]> {
    try {
      return namesIn(this.#root).flatMap((directory) => {
        const name = unescapeName(directory);
        return name !== undefined && isStore(join(this.#root, directory)) ? name : [];
      });
    } catch (error) {
      throw refusal(error);
    }
  }

  async delete(name: string, options: LockOptions): Promise<boolean> {
    const directory = join(this.#root, escapeName(name));
    try {
      if (!namesIn(this.#root).includes(escapeName(name)) || !isStore(directory)) return false;
      if (lstatSync(directory).isSymbolicLink()) throw linked(name, directory);
      const { release } = await claim(this.#calls, name, directory, options);
      try {
        for (const { name: file } of entriesIn(directory).filter(isSlot))
          removeFile(this.#calls, join(directory, file));
      } finally {
        release();
      }
      this.#removeDirectory(name, directory);
      return true;
    } catch (error) {
      throw refusal(error);
    }
  }

  /** Removes the directory, unless an opener that waited for the store has it by now: that one has an empty store. */
  #removeDirectory(name: string, directory: string): void {
    try {
      this.#calls.rmdirSync(directory);
      syncDirectory(this.#calls, this.#root);
    } catch (error) {
      if (!['ENOTEMPTY', 'EEXIST', 'ENOENT'].includes(errnoOf(error) ?? '')) throw error;
      const others = entriesIn(directory).filter((entry) => !isOurs(entry));
      if (others.length > 0) throw kept(name, directory, others);
    }
  }
}

/** Whether the file is a slot. A link with such a name is not: its file is elsewhere. */
function isSlot(entry: Dirent): boolean {
  return slotNumber(entry.name) !== undefined && entry.isFile();
}

function isOurs(entry: Dirent): boolean {
  return isSlot(entry) || isClaim(entry.name);
}

/** Whether the path is a directory with a store in it. */
function isStore(path: string): boolean {
  try {
    return entriesIn(path).some(isOurs);
  } catch (error) {
    if (isNoDirectory(error)) return false;
    throw error;
  }
}

function linked(name: string, directory: string): VarveError {
  return new VarveError(
    'VARVE_UNSUPPORTED',
    `The store "${name}" was not deleted: ${directory} is a symbolic link. Remove the link, and the folder that it leads to, yourself.`,
  );
}

function kept(name: string, directory: string, others: readonly Dirent[]): VarveError {
  return new VarveError(
    'VARVE_IO',
    `The store "${name}" is deleted, but its folder ${directory} stays: ${others.map((other) => other.name).join(', ')} in it does not belong to the store. Remove the folder yourself if nobody needs it.`,
  );
}
