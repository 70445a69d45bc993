/**
 * The one error class of Varve and its codes.
 * Invariant: `code` is stable across versions and the numbers are the engine's own (crates/varve/src/error.rs);
 * the sentence in `message` may change, so programs branch on `code` only.
 */

/**
 * Every code a `VarveError` can carry. The first thirteen come from the engine, the rest from TypeScript. A minor version may add a code:
 * treat one that you do not know as an error without special handling.
 */
export type VarveErrorCode =
  | 'VARVE_CORRUPT'
  | 'VARVE_STORAGE_FULL'
  | 'VARVE_LOCKED'
  | 'VARVE_CLOSED'
  | 'VARVE_CONFLICT'
  | 'VARVE_INVALID_KEY'
  | 'VARVE_INVALID_VALUE'
  | 'VARVE_POISONED'
  | 'VARVE_VERSION'
  | 'VARVE_INVALID_ARGUMENT'
  | 'VARVE_IO'
  | 'VARVE_RETRY'
  | 'VARVE_KEY'
  | 'VARVE_UNSUPPORTED'
  | 'VARVE_UNAVAILABLE'
  | 'VARVE_NOT_FOUND'
  | 'VARVE_EXISTS'
  | 'VARVE_LEADER_STALLED'
  | 'VARVE_INTERNAL';

/** Engine code numbers, by index: `ENGINE_CODES[4]` is `'VARVE_CLOSED'`. Index 0 is no engine code. */
const ENGINE_CODES: readonly VarveErrorCode[] = [
  'VARVE_INTERNAL',
  'VARVE_CORRUPT',
  'VARVE_STORAGE_FULL',
  'VARVE_LOCKED',
  'VARVE_CLOSED',
  'VARVE_CONFLICT',
  'VARVE_INVALID_KEY',
  'VARVE_INVALID_VALUE',
  'VARVE_POISONED',
  'VARVE_VERSION',
  'VARVE_INVALID_ARGUMENT',
  'VARVE_IO',
  'VARVE_RETRY',
  // 13: bytes are missing (wasm/call.ts), which is no code of the package.
  'VARVE_INTERNAL',
  'VARVE_KEY',
];

/** The advice for a damaged store. */
export const SALVAGE = 'Call check() to see what is wrong, and repair() to salvage the rest into a new store.';

/** The cause of a `VARVE_CONFLICT`. */
export interface Conflict {
  /**
   * The key whose entry does not meet the condition of the write, or was written after a transaction had read it. If a whole range
   * was deleted: the start of the part that the transaction had read, or undefined if that start is not a key.
   */
  readonly key: unknown;
  /** The sequence of its entry; null if there is no entry. */
  readonly sequence: number | null;
}

/** The form in which an error crosses a worker boundary. */
export interface WireError {
  readonly code: VarveErrorCode;
  readonly message: string;
}

/**
 * The error of every Varve operation.
 *
 * @example
 * try { await db.set('k', value); }
 * catch (error) { if (error instanceof VarveError && error.code === 'VARVE_STORAGE_FULL') await db.deleteRange({ prefix: ['cache'] }); }
 */
export class VarveError extends Error {
  override readonly name = 'VarveError';
  /** Stable name of the error; branch on this. */
  readonly code: VarveErrorCode;

  /** With `VARVE_CONFLICT`: the key, and the sequence that was found instead of the one that the write or transaction depends on. */
  readonly conflict: Conflict | undefined;

  constructor(code: VarveErrorCode, message: string, options?: { cause?: unknown; conflict?: Conflict | undefined }) {
    super(message, options);
    this.code = code;
    this.conflict = options?.conflict;
  }

  /** @internal The error for an engine code number (1..14); an unknown number gives `VARVE_INTERNAL`. */
  static fromNumber(code: number, message: string): VarveError {
    const name = ENGINE_CODES[code] ?? 'VARVE_INTERNAL';
    return new VarveError(name, name === 'VARVE_CORRUPT' ? `${message} ${SALVAGE}` : message);
  }

  /** @internal The error that a worker described in a message. */
  static fromWire(error: WireError): VarveError {
    return new VarveError(error.code, error.message);
  }
}

/** The engine's number for a code: 1..14, or 0 for a code that only TypeScript uses. */
export function codeNumber(code: VarveErrorCode): number {
  return code === 'VARVE_INTERNAL' ? 0 : Math.max(0, ENGINE_CODES.indexOf(code));
}

/** Describes any thrown value so that it can cross a worker boundary. */
export function toWire(error: unknown): WireError {
  if (error instanceof VarveError) return { code: error.code, message: error.message };
  const { name, message } = error instanceof Error ? error : { name: '', message: String(error) };
  // Site data is blocked, or this is a sandboxed frame.
  if (name === 'SecurityError') {
    return { code: 'VARVE_UNSUPPORTED', message: `The browser refuses storage to this page: ${message}` };
  }
  return { code: 'VARVE_INTERNAL', message: `The engine stopped on an unexpected error: ${message}` };
}

/** The error for an invalid argument. */
export function invalid(message: string, options?: { cause: unknown }): VarveError {
  return new VarveError('VARVE_INVALID_ARGUMENT', message, options);
}

/** Rejects for a part of the package that an `import()` did not load. */
export function notLoaded(cause: unknown): never {
  throw new VarveError(
    'VARVE_UNAVAILABLE',
    'A part of varve could not be loaded. Be online, or cache the files of the package; after a deploy, reload the page.',
    { cause },
  );
}

/** Whether an error has one of these codes. The error may come from another copy of the package. */
export function hasCode(error: unknown, ...codes: VarveErrorCode[]): error is VarveError {
  return codes.includes((error as Partial<VarveError> | null | undefined)?.code as VarveErrorCode);
}

/** The error of a client whose store was deleted while its page was frozen. */
export function deletedError(store: string): VarveError {
  return new VarveError('VARVE_CLOSED', `The store "${store}" was deleted. Open it again.`);
}

/** The error for a call on a store that is closed. */
export function closedError(): VarveError {
  return new VarveError('VARVE_CLOSED', 'The store is closed. Open it again.');
}
