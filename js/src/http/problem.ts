/**
 * Errors as responses: a status and a body of `application/problem+json` (RFC 9457).
 *
 *   { "title": "Precondition Failed", "status": 412, "detail": "...", "code": "VARVE_CONFLICT", "conflict": { ... } }
 *
 * Invariant: everything that a handler throws becomes a response here. If it is neither a `VarveError` nor a `Refusal`, the
 * response contains no details of it.
 */

import { VarveError, type VarveErrorCode } from '../errors.ts';
import type { Key } from '../types.ts';
import { keyToJson } from './json-key.ts';
import { Refusal } from './refusal.ts';

/** The time that a client should wait before it tries again, in seconds. */
const RETRY_AFTER = '1';

const STATUS_OF: Readonly<Record<VarveErrorCode, number>> = {
  VARVE_INVALID_KEY: 400,
  VARVE_INVALID_VALUE: 400,
  VARVE_INVALID_ARGUMENT: 400,
  VARVE_NOT_FOUND: 404,
  VARVE_EXISTS: 409,
  VARVE_CONFLICT: 412,
  VARVE_LOCKED: 503,
  VARVE_LEADER_STALLED: 503,
  VARVE_RETRY: 503,
  VARVE_CLOSED: 503,
  VARVE_POISONED: 503,
  VARVE_UNAVAILABLE: 503,
  VARVE_STORAGE_FULL: 507,
  VARVE_UNSUPPORTED: 501,
  VARVE_CORRUPT: 500,
  VARVE_KEY: 500,
  VARVE_VERSION: 500,
  VARVE_IO: 500,
  VARVE_INTERNAL: 500,
};

const TITLES: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  406: 'Not Acceptable',
  409: 'Conflict',
  412: 'Precondition Failed',
  413: 'Content Too Large',
  415: 'Unsupported Media Type',
  421: 'Misdirected Request',
  499: 'Client Closed Request',
  500: 'Internal Server Error',
  501: 'Not Implemented',
  503: 'Service Unavailable',
  507: 'Insufficient Storage',
};

/** An error as JSON: the body of a response, or of one result of a batch. */
export interface Problem {
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly code?: VarveErrorCode | undefined;
  readonly conflict?: { readonly key?: unknown; readonly sequence: number | null } | undefined;
}

/** Describes a thrown error. */
export function problemOf(error: unknown): Problem {
  if (error instanceof Refusal) return problem(error.status, error.message, error.code);
  // Recognized by its shape: the store may come from another copy of the package.
  if (error instanceof VarveError || isVarveError(error)) {
    const { code, message, conflict } = error;
    const found = problem(STATUS_OF[code] ?? 500, message, code);
    if (conflict === undefined) return found;
    return { ...found, conflict: { key: keyInProblem(conflict.key), sequence: conflict.sequence } };
  }
  return problem(500, 'The handler stopped on an unexpected error.', 'VARVE_INTERNAL');
}

/** The response for a thrown error. */
export function problemResponse(error: unknown): Response {
  const body = problemOf(error);
  const headers = new Headers({ 'content-type': 'application/problem+json', 'cache-control': 'no-store' });
  if (error instanceof Refusal) for (const [name, value] of Object.entries(error.headers)) headers.set(name, value);
  if (body.status === 503) headers.set('retry-after', RETRY_AFTER);
  return new Response(JSON.stringify(body), { status: body.status, headers });
}

function isVarveError(error: unknown): error is VarveError {
  const { name, code } = (error ?? {}) as { name?: unknown; code?: unknown };
  return name === 'VarveError' && typeof code === 'string' && Object.hasOwn(STATUS_OF, code);
}

function problem(status: number, detail: string, code: VarveErrorCode | undefined): Problem {
  const title = TITLES[status] ?? 'Error';
  return code === undefined ? { title, status, detail } : { title, status, detail, code };
}

/** A key for a problem. With a user's key codec a key may be any value; it is omitted if it is not a Varve key. */
function keyInProblem(key: unknown): unknown {
  try {
    return keyToJson(key as Key);
  } catch {
    return undefined;
  }
}
