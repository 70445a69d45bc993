/**
 * The directory of an open store, and whether it is still the opener's.
 *
 * A path says nothing about what is behind it: a directory can be removed, renamed or replaced by a backup while a store in it
 * is open, and whoever opens the path then has another store there. The claim tells: its path leads to the very file that the
 * claim made (device and inode), or the directory is not the claim's any more. Some runtimes say other numbers of an open file than
 * of its path (devices on Windows, libuv 1.49 and 1.50): what is not the same for a claim that was just made tells nothing.
 *
 * Invariant: a slot that `openSlot` gives lies in the directory of the claim, and is no symbolic link. Both are asked after the
 * file was opened, so that it does not matter what happened to the path before.
 */

import { constants, fstatSync, lstatSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { VarveError } from '../../errors.ts';
import { slotName } from '../names.ts';
import type { FileCalls } from './calls.ts';
import { errnoOf } from './errno.ts';

/** Which file is meant, whatever its path. */
interface FileIdentity {
  readonly dev: number;
  readonly ino: number;
}

/** The directory of a store as its claim knows it. Plain data: the compactor is told of it. */
export interface Place extends FileIdentity {
  /** The path of the claim, in the directory of the store. */
  readonly claim: string;
  /** The numbers by which one file is known. */
  readonly knownBy: readonly (keyof FileIdentity)[];
}

/** The place of a claim that was just made: its path, and the file that was opened there. */
export function placeOf(claim: string, file: number): Place {
  const { dev, ino } = fstatSync(file);
  const found = lstatSync(claim);
  const knownBy = (['dev', 'ino'] as const).filter((number) => found[number] === { dev, ino }[number]);
  return { claim, dev, ino, knownBy };
}

/** Whether the directory is still the one of the claim. In doubt it is not: two writers would destroy a store. */
export function isClaimed(place: Place): boolean {
  return isAt(place, place.claim, place);
}

/** Why a store whose directory is not the claim's any more takes nothing. */
export function lostPlace({ claim }: Place): VarveError {
  return new VarveError(
    'VARVE_POISONED',
    `The folder ${dirname(claim)}, or its file ${basename(claim)}, was removed, renamed or replaced while the store was open, so nothing more is written. Close the store and open it again.`,
  );
}

/**
 * Opens a slot for reading and writing; makes it with `create`.
 * @throws `lostPlace`, or what a call throws.
 */
export function openSlot(calls: FileCalls, place: Place, slot: number, create = false): number {
  const path = join(dirname(place.claim), slotName(slot));
  // Nothing is made in the directory of somebody else.
  if (!isClaimed(place)) throw lostPlace(place);
  const file = openFile(calls, path, create);
  try {
    const opened = fstatSync(file);
    const isOurs = isClaimed(place);
    if (isOurs && opened.isFile() && isAt(place, path, opened)) return file;
    throw isOurs ? notSlot(path) : lostPlace(place);
  } catch (error) {
    calls.closeSync(file);
    throw error;
  }
}

function openFile(calls: FileCalls, path: string, create: boolean): number {
  // Windows has no such flag, and Deno follows the link all the same: `isAt` sees it then.
  const { O_RDWR, O_CREAT, O_NOFOLLOW = 0 } = constants;
  try {
    return calls.openSync(path, O_RDWR | O_NOFOLLOW | (create ? O_CREAT : 0), 0o666);
  } catch (error) {
    throw errnoOf(error) === 'ELOOP' ? notSlot(path) : error;
  }
}

/** Whether a path of this place, with no link followed at its end, is this file. */
function isAt({ knownBy }: Place, path: string, file: FileIdentity): boolean {
  try {
    const found = lstatSync(path);
    return !found.isSymbolicLink() && knownBy.every((number) => found[number] === file[number]);
  } catch {
    return false;
  }
}

function notSlot(path: string): VarveError {
  return new VarveError(
    'VARVE_UNSUPPORTED',
    `${path} is a symbolic link or no plain file, and is not used. Put the file itself in its place, or remove it.`,
  );
}
