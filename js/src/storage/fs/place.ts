/**
 * The directory of an open store, and whether it is still the opener's.
 *
 * A path alone does not identify a directory. The directory can be removed, renamed or replaced by a backup while a store in it is
 * open. Code that opens the path then finds another store. The claim shows this: either its path leads to the very file that the
 * claim made (device and inode), or the directory is no longer the claim's. Some runtimes report other numbers for an open file than
 * for its path (devices on Windows, libuv 1.49 and 1.50). A number that differs for a claim that was just made is not compared.
 *
 * Invariant: a slot that `openSlot` returns lies in the directory of the claim, and is no symbolic link. Both are checked after the
 * file was opened, so it does not matter what happened to the path before.
 */

import { constants, fstatSync, lstatSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { VarveError } from '../../errors.ts';
import { slotName } from '../names.ts';
import type { FileCalls } from './calls.ts';
import { errnoOf } from './errno.ts';

/** The identity of a file, whatever its path. */
interface FileIdentity {
  readonly dev: number;
  readonly ino: number;
}

/** The directory of a store as its claim knows it. Plain data, because it is sent to the compactor. */
export interface Place extends FileIdentity {
  /** The path of the claim, in the directory of the store. */
  readonly claim: string;
  /** Whether the holder must touch the claim, see pulse.ts. */
  readonly isTouched: boolean;
  /** The numbers that identify a file here. */
  readonly knownBy: readonly (keyof FileIdentity)[];
}

/** The place of a claim that was just made: its path, the file that was opened there, and whether it must be touched. */
export function placeOf(claim: string, file: number, isTouched: boolean): Place {
  const { dev, ino } = fstatSync(file);
  const found = lstatSync(claim);
  const knownBy = (['dev', 'ino'] as const).filter((number) => found[number] === { dev, ino }[number]);
  return { claim, dev, ino, isTouched, knownBy };
}

/** Whether the directory is still the one of the claim. In doubt it is not: two writers would destroy a store. */
export function isClaimed(place: Place): boolean {
  return isAt(place, place.claim, place);
}

/** The error of a store that takes no more writes because its directory is no longer the claim's. */
export function lostPlace({ claim }: Place): VarveError {
  return new VarveError(
    'VARVE_POISONED',
    `The folder ${dirname(claim)}, or its file ${basename(claim)}, was removed, renamed or replaced while the store was open, so nothing more is written. Close the store and open it again.`,
  );
}

/**
 * Opens a slot for reading and writing; makes it with `create`.
 * @throws `lostPlace`, `notSlot`, or the error of a file call.
 */
export function openSlot(calls: FileCalls, place: Place, slot: number, create = false): number {
  const path = join(dirname(place.claim), slotName(slot));
  // No file may be made in a directory of somebody else.
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
  // Windows has no such flag, and Deno follows the link in spite of it: `isAt` finds the link then.
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
