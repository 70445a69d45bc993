/**
 * Translates failed system calls into errors of a store.
 *
 * Invariant: only an error that means that there is no room counts as `full`. Every unknown error is `io`, after which the engine
 * acknowledges nothing any more.
 */

import { VarveError, type VarveErrorCode } from '../../errors.ts';
import { SlotError } from '../device.ts';

/** The disk, the quota of the user, the limit on the size of one file. */
const FULL = new Set(['ENOSPC', 'EDQUOT', 'EFBIG']);
/** `EFBIG` and `EDQUOT` as Deno reports them: in the message, without a code. */
const FULL_SAID = /\(os error (?:27|69|122)\)$/;
/** More files are open than the process, or the system, may have. */
const TOO_MANY = new Set(['EMFILE', 'ENFILE']);

/** The code of a failed call, such as `ENOENT`. */
export function errnoOf(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' ? code : undefined;
}

/** Whether a call failed because there is no room. */
export function isFull(error: unknown): boolean {
  const code = errnoOf(error);
  return code === undefined ? error instanceof Error && FULL_SAID.test(error.message) : FULL.has(code);
}

/** Whether a file was not opened because too many are open. */
export function isTooMany(error: unknown): boolean {
  return TOO_MANY.has(errnoOf(error) ?? '');
}

/** Whether the system, or Deno, does not allow a call. */
export function isForbidden(error: unknown): boolean {
  const name = error instanceof Error ? error.name : '';
  return ['EACCES', 'EPERM', 'EROFS'].includes(errnoOf(error) ?? '') || /NotCapable|PermissionDenied/.test(name);
}

/** Whether there is no directory at this path, or none that the caller may use. */
export function isNoDirectory(error: unknown): boolean {
  return isForbidden(error) || ['ENOENT', 'ENOTDIR', 'ELOOP'].includes(errnoOf(error) ?? '');
}

/** The `SlotError` for a failed call on a slot. */
export function slotError(error: unknown): SlotError {
  if (error instanceof SlotError) return error;
  const kind = isFull(error) ? 'full' : errnoOf(error) === 'EBADF' ? 'closed' : 'io';
  return new SlotError(kind, error instanceof Error ? error.message : String(error), { cause: error });
}

/** Why the files of a store could not be made, opened or removed. */
export function refusal(error: unknown): unknown {
  if (error instanceof VarveError) return error;
  const why = error instanceof Error ? error.message : String(error);
  const failed = (code: VarveErrorCode, message: string) =>
    new VarveError(code, `${message} (${why})`, { cause: error });
  if (isFull(error)) return failed('VARVE_STORAGE_FULL', 'There is no room to create the store: free some.');
  if (isTooMany(error)) {
    return failed('VARVE_UNAVAILABLE', 'The process has too many files open: raise its limit, as with ulimit -n.');
  }
  const code = errnoOf(error);
  if (isForbidden(error) || code === 'ENOTDIR') {
    return failed('VARVE_UNSUPPORTED', 'The directory of the store may not be read and written.');
  }
  return code === undefined ? error : failed('VARVE_IO', 'The directory of the store could not be used.');
}
