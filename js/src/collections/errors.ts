/**
 * The errors of collections.
 *
 * Invariant: their codes are the store's codes, and a conflict over a key keeps the details that the store reported.
 */

import { type Conflict, hasCode, VarveError } from '../errors.ts';
import type { Key } from '../types.ts';
import { textOf } from './key.ts';

/** The indexes were defined anew after this code had them ready. */
export function outdated(name: string): VarveError {
  return new VarveError(
    'VARVE_VERSION',
    `Other code has defined the indexes of the collection '${name}' again. Reload to get that code.`,
  );
}

/** A snapshot or a transaction does not see the current indexes. */
export function tooOld(name: string): VarveError {
  return new VarveError(
    'VARVE_RETRY',
    `This read point is from before the indexes of the collection '${name}' were built, or before an import or an upgrade wrote its documents. Take a new snapshot, and await ready() before.`,
  );
}

/** A key of the store already has an entry: a document, or an entry of a unique index. */
export function taken(place: Key, sequence: number | null): VarveError {
  const [name, kind, ...rest] = place as readonly [string, string, ...Key[]];
  const what =
    kind === 'doc'
      ? `The collection '${name}' has a document with the key ${shown(rest[0])} already`
      : `The collection '${name}' has a document with the value ${shown(rest[1])} in the unique index ${shown(rest[0])} already`;
  return conflict(`${what}. Nothing was written.`, { key: place, sequence });
}

/** Others wrote a document again and again. */
export function contended(place: Key): VarveError {
  const [name, , key] = place as readonly [string, string, Key];
  return conflict(
    `Others wrote the document ${shown(key)} of '${name}' each time that it was to be written. Try again.`,
    {
      key: place,
      sequence: null,
    },
  );
}

/** Two documents have the same value in a unique index. */
export function notUnique(place: Key, one: Key, other: Key): VarveError {
  const [name, , index, value] = place as readonly [string, string, string, Key];
  return conflict(
    `The documents ${shown(one)} and ${shown(other)} of '${name}' both have the value ${shown(value)} in the unique index '${index}'. Change or delete one of them in the store: check() of the collection lists all such documents, and keyOf() returns their keys.`,
    { key: place, sequence: null },
  );
}

/** Whether documents caused the build of indexes to fail: two with the same unique value, or one from which an index makes no key. */
export function isOfDocuments(error: unknown): boolean {
  const code = error instanceof VarveError ? error.code : 'VARVE_INVALID_KEY';
  return ['VARVE_CONFLICT', 'VARVE_INVALID_KEY', 'VARVE_INVALID_ARGUMENT'].includes(code);
}

/** The place of a conflict within a collection: `[name, kind, ...]`; undefined for other errors. */
export function placeOf(error: unknown, name: string): readonly Key[] | undefined {
  const key = hasCode(error, 'VARVE_CONFLICT') ? error.conflict?.key : undefined;
  return Array.isArray(key) && key[0] === name ? key : undefined;
}

/** Whether a batch was refused because its generation is over. Of all its conditions, only that note is not on a user's key. */
export function isOver(error: unknown): boolean {
  return error instanceof VarveError && error.conflict !== undefined && error.conflict.key === undefined;
}

/** The error for the caller of a write. */
export function explained(error: unknown, name: string): unknown {
  const place = placeOf(error, name);
  return place === undefined ? error : taken(place, (error as VarveError).conflict?.sequence ?? null);
}

function conflict(message: string, found: Conflict): VarveError {
  return new VarveError('VARVE_CONFLICT', message, { conflict: found });
}

function shown(key: Key | undefined): string {
  if (key instanceof Date) return key.toISOString();
  return key === undefined ? 'undefined' : typeof key === 'number' ? String(key) : textOf(key);
}
