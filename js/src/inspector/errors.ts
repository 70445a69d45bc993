/**
 * Errors in words.
 * Invariant: an error is judged by its code and not by its class, because the store may come from another copy of the package.
 */

/** The code of a `VarveError`; undefined for any other error. */
export function codeOf(error: unknown): string | undefined {
  const code: unknown = error instanceof Error ? Object(error).code : undefined;
  return typeof code === 'string' && code.startsWith('VARVE_') ? code : undefined;
}

/** An error as it is shown: its code, where it has one, and its message. */
export function sentence(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const code = codeOf(error);
  return code === undefined ? error.message : `${code}: ${error.message}`;
}

/** Whether a call failed because the leading tab does not answer for a while, or is gone. */
export function isPassing(error: unknown): boolean {
  const code = codeOf(error);
  return code === 'VARVE_LEADER_STALLED' || code === 'VARVE_RETRY';
}
