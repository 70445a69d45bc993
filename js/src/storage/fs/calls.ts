/**
 * The file calls that slots use, and directories whose entries are durable.
 *
 * Invariant: every call that a store's bytes pass through is in `FileCalls`, so that tests can lose, cut and refuse the bytes.
 */

import * as fs from 'node:fs';
import { dirname } from 'node:path';
import { errnoOf, isForbidden } from './errno.ts';

/** The file operations that are used: the functions of `node:fs` of these names. */
export interface FileCalls {
  openSync(path: string, flags: number | string, mode?: number): number;
  closeSync(file: number): void;
  readSync(file: number, into: Uint8Array, from: number, length: number, at: number): number;
  writeSync(file: number, bytes: Uint8Array, from: number, length: number, at: number): number;
  fsyncSync(file: number): void;
  fdatasyncSync(file: number): void;
  ftruncateSync(file: number, bytes: number): void;
  unlinkSync(path: string): void;
  rmdirSync(path: string): void;
}

/** The file calls of the runtime. */
export const NODE_CALLS: FileCalls = fs;

/** Opens a directory for `syncEntries`; undefined on Windows, which cannot open directories and journals entries by itself. */
export function openDirectory(calls: FileCalls, path: string): number | undefined {
  try {
    return calls.openSync(path, 'r');
  } catch (error) {
    if (['EISDIR', 'EPERM'].includes(errnoOf(error) ?? '')) return undefined;
    throw error;
  }
}

/** Makes the entries of a directory durable: the names of its files. */
export function syncEntries(calls: FileCalls, directory: number | undefined): void {
  if (directory === undefined) return;
  try {
    calls.fsyncSync(directory);
  } catch (error) {
    // This file system cannot sync directories.
    if (!['EINVAL', 'ENOTSUP', 'EPERM'].includes(errnoOf(error) ?? '')) throw error;
  }
}

/** Opens, syncs and closes a directory. */
export function syncDirectory(calls: FileCalls, path: string): void {
  const directory = openDirectory(calls, path);
  try {
    syncEntries(calls, directory);
  } finally {
    if (directory !== undefined) calls.closeSync(directory);
  }
}

/**
 * Makes the entry of a directory durable in its parent, except in a parent that may not be read (Deno with permission for the directory of
 * stores alone).
 */
export function syncParent(calls: FileCalls, path: string): void {
  try {
    syncDirectory(calls, dirname(path));
  } catch (error) {
    if (!isForbidden(error)) throw error;
  }
}

/** Makes a directory and the missing ones above it. The entries of those above are durable then; `syncParent` does it for the last one. */
export function makeDirectory(calls: FileCalls, path: string, hasParent = false): void {
  try {
    fs.mkdirSync(path);
  } catch (error) {
    if (errnoOf(error) === 'EEXIST') return;
    const parent = dirname(path);
    // In /proc a directory cannot be made although its parent is there, with the same error.
    if (errnoOf(error) !== 'ENOENT' || hasParent || parent === path) throw error;
    makeDirectory(calls, parent);
    syncParent(calls, parent);
    makeDirectory(calls, path, true);
  }
}

/** The names in a directory; none where there is no such directory. */
export function namesIn(path: string): string[] {
  return entriesIn(path).map(({ name }) => name);
}

/** The entries of a directory, each with its type; none where there is no such directory. */
export function entriesIn(path: string): fs.Dirent[] {
  try {
    return fs.readdirSync(path, { withFileTypes: true });
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return [];
    throw error;
  }
}

/** Removes a file, if it exists. */
export function removeFile(calls: FileCalls, path: string): void {
  try {
    calls.unlinkSync(path);
  } catch (error) {
    if (!['ENOENT', 'ENOTDIR'].includes(errnoOf(error) ?? '')) throw error;
  }
}

/** How many files the process may have open at once; undefined where this is unknown. */
export function openFilesMax(): number | undefined {
  try {
    const [, limit] = /^Max open files +(\d+)/m.exec(fs.readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return limit === undefined ? undefined : Number(limit);
  } catch {
    return undefined;
  }
}
