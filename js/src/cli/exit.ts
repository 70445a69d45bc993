/**
 * How the command ends: its exit codes, and the errors that it reports.
 *
 * Invariant: the codes are part of the interface; docs/guide/command-line.md lists them.
 */

import { hasCode, SALVAGE, type VarveErrorCode } from '../errors.ts';
import { Unreadable } from '../rows/typed.ts';

/** Exit codes. */
export const Exit = {
  ok: 0,
  /** `get`: there is no such key. */
  absent: 1,
  /** The command line or the input is wrong: a flag, a key, a line of a file; or the target is there already. */
  usage: 2,
  /** There is no such store or file. */
  missing: 3,
  /** Another process has the store open. */
  locked: 4,
  /** The store or the export is damaged, or a repair lost data. */
  damaged: 5,
  /** Everything else: the disk, the network, a conflict. */
  failed: 6,
  /** Ctrl-C. */
  interrupted: 130,
  /** SIGTERM. */
  terminated: 143,
} as const;

/** An error that the command reports. */
export class CommandError extends Error {
  readonly exit: number;
  readonly code: VarveErrorCode | undefined;

  constructor(exit: number, message: string, code?: VarveErrorCode) {
    super(message);
    this.exit = exit;
    this.code = code;
  }
}

/** The reason of an abort by a signal of the operating system. */
export class Interrupted extends CommandError {
  constructor(signal: 'SIGINT' | 'SIGTERM') {
    super(signal === 'SIGINT' ? Exit.interrupted : Exit.terminated, 'Cancelled.');
  }
}

/** Why standard output cannot be written. A reader such as `head` has what it wants: that ends the work, and is no failure. */
export function outputError(error: unknown): CommandError {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === 'EPIPE') return new CommandError(Exit.ok, '');
  return new CommandError(Exit.failed, `Standard output cannot be written: ${message}.`);
}

/** The error for a wrong command line, or wrong input. */
export function wrong(message: string): CommandError {
  return new CommandError(Exit.usage, message);
}

/** The error for a target that is there already. */
export function taken(message: string): CommandError {
  return new CommandError(Exit.usage, message, 'VARVE_EXISTS');
}

/** The exit code for an error. */
export function exitOf(error: unknown): number {
  if (error instanceof CommandError) return error.exit;
  if (error instanceof Unreadable) return Exit.usage;
  return hasAnyCode(error) ? exitOfCode(error.code) : Exit.failed;
}

/** The exit code for the code of a `VarveError`. */
export function exitOfCode(code: VarveErrorCode): number {
  switch (code) {
    case 'VARVE_LOCKED':
      return Exit.locked;
    case 'VARVE_CORRUPT':
      return Exit.damaged;
    case 'VARVE_NOT_FOUND':
      return Exit.missing;
    case 'VARVE_EXISTS':
    case 'VARVE_INVALID_ARGUMENT':
    case 'VARVE_INVALID_KEY':
    case 'VARVE_INVALID_VALUE':
      return Exit.usage;
    default:
      return Exit.failed;
  }
}

/** The sentences of an error, with the advice of a program's API turned into the advice of this command. */
export function messageOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  if (hasCode(error, 'VARVE_CORRUPT')) {
    return message.replace(
      SALVAGE,
      '`varve check` lists the damage, and `varve repair` saves the rest into a new store.',
    );
  }
  if (hasCode(error, 'VARVE_KEY')) {
    return message
      .replace(/(Open it with its key)(: open\(.*?\))?\./, '$1: --key-file FILE.')
      .replace('import(source, { encryption: { key } })', '--export-key-file FILE')
      .replace('the option encryption', '--export-key-file');
  }
  if (hasCode(error, 'VARVE_INVALID_VALUE') && !(error instanceof CommandError)) {
    return `${message} --values names the codec.`;
  }
  return message;
}

/** The code in an error, for programs. */
export function codeOf(error: unknown): VarveErrorCode | undefined {
  return hasAnyCode(error) ? error.code : undefined;
}

function hasAnyCode(error: unknown): error is { code: VarveErrorCode } {
  const { code } = (error ?? {}) as { code?: unknown };
  return typeof code === 'string' && code.startsWith('VARVE_');
}
