/**
 * How the directory of a store and the files in it are named on every file system, and its table in a Durable Object.
 *
 *     notes -> notes     a/b -> a%2Fb     Bob -> %42ob     con -> %63on
 *
 * Invariant: a name maps to one directory and back, also where a file system ignores case (macOS, Windows): capital letters are escaped.
 * An escaped name has only small letters, digits, `_`, `-`, and `%` with two hex digits. It is no name that Windows keeps for devices. It
 * has no dot and no separator, so other files beside a store can have names that no store can have.
 */

import { invalid } from '../errors.ts';

const SLOT_NAME = /^slot-(\d{4,5})$/;
/** Highest number of a slot: crates/varve/src/storage/files.rs has 16 bits for it. */
const SLOT_MAX = 0xffff;
/** Longest name that every file system accepts. */
const NAME_BYTES_MAX = 255;
/** Characters that are escaped, besides those that a URL escapes. */
const ESCAPED = /%..|[A-Z.!~*'()]/g;
/** Names of devices on Windows. */
const DEVICE = /^(?:con|prn|aux|nul|(?:com|lpt)\d)$/;

/** The directory name of a store. */
export function escapeName(name: string): string {
  let escaped: string;
  try {
    escaped = encodeURIComponent(name);
  } catch (cause) {
    throw invalid('A store name must not have half of a surrogate pair.', { cause });
  }
  escaped = escaped.replace(ESCAPED, (found) => (found.length > 1 ? found : hexOf(found)));
  if (DEVICE.test(escaped)) escaped = hexOf(escaped.charAt(0)) + escaped.slice(1);
  if (escaped === '' || escaped.length > NAME_BYTES_MAX) {
    throw invalid(
      `A store name has 1 to ${NAME_BYTES_MAX} characters, where a capital letter counts as three and others as in a URL.`,
    );
  }
  return escaped;
}

/** The store name of a directory, or undefined where the directory is not a store's. */
export function unescapeName(directory: string): string | undefined {
  try {
    const name = decodeURIComponent(directory);
    return escapeName(name) === directory ? name : undefined;
  } catch {
    return undefined;
  }
}

function hexOf(char: string): string {
  return `%${char.charCodeAt(0).toString(16).toUpperCase()}`;
}

/** The file name of a slot. */
export function slotName(slot: number): string {
  return `slot-${String(slot).padStart(4, '0')}`;
}

/** The slot number of a file name, or undefined. */
export function slotNumber(name: string): number | undefined {
  const slot = Number(SLOT_NAME.exec(name)?.[1]);
  return slot <= SLOT_MAX && slotName(slot) === name ? slot : undefined;
}
