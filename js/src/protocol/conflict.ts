/**
 * A conflict as the engine reports it, and as the caller of a write gets it.
 *
 * Invariant: an `EngineConflict` never reaches a caller: its key is in bytes, and only the store that made the write can
 * decode them.
 */

import type { KeyFormat } from '../codec/key-format.ts';
import { VarveError } from '../errors.ts';

/** A condition that was not true: the bytes of the key, and the sequence found, 0 for none. */
export class EngineConflict extends VarveError {
  readonly keyBytes: Uint8Array;
  readonly found: number;

  constructor(keyBytes: Uint8Array, found: number) {
    super('VARVE_CONFLICT', 'A condition of this write was false. Read again and retry.');
    this.keyBytes = keyBytes;
    this.found = found;
  }
}

/** The message for a write whose own condition was not true. */
const CONDITION = 'A condition of this write was false';

/** The error that the caller gets: a conflict with its key decoded, any other error unchanged. `what` begins its message. */
export function namedConflict<K>(error: unknown, keys: KeyFormat<K>, what = CONDITION): unknown {
  if (!(error instanceof EngineConflict)) return error;
  const { keyBytes, found } = error;
  const sequence = found === 0 ? null : found;
  const state = sequence === null ? 'is absent' : `has sequence ${sequence}`;
  let key: K | undefined;
  let name = 'a key';
  try {
    key = keys.read(keyBytes, 0, keyBytes.length);
    name = `the key ${shown(key)}`;
  } catch {
    // A range was deleted, and its start is not a key.
  }
  const message = `${what}: ${name} ${state}. Nothing was written; read again and retry.`;
  return new VarveError('VARVE_CONFLICT', message, { conflict: { key, sequence } });
}

/** A key in a message. */
function shown(key: unknown): string {
  if (typeof key === 'string') return JSON.stringify(key);
  if (Array.isArray(key)) return `[${key.map(shown).join(', ')}]`;
  if (key instanceof Date) return key.toISOString();
  return typeof key === 'bigint' ? `${key}n` : String(key);
}
