/**
 * Bearer tokens, compared in a time that reveals nothing about them.
 *
 * Invariant: the SHA-256 digests are compared, always in full, so the time depends neither on the length of a token nor on
 * its first difference.
 */

import { invalid } from '../errors.ts';
import { checkOptions, type Known } from '../options.ts';
import type { Access } from './types.ts';

/** Tokens by the rights that they give. */
export interface BearerTokens {
  /** Tokens that may do everything. */
  readonly write?: readonly string[] | undefined;
  /** Tokens that may only read (entries, ranges, counts, metrics). */
  readonly read?: readonly string[] | undefined;
}

const TOKENS: Known<BearerTokens> = { write: 1, read: 1 };

/** The form of a token in `Authorization: Bearer <token>` (RFC 6750, b64token). */
const TOKEN = /^[\w.~+/-]+=*$/;

const encoder = new TextEncoder();

function digest(token: string): Promise<ArrayBuffer> {
  return crypto.subtle.digest('SHA-256', encoder.encode(token));
}

function areEqual(a: ArrayBuffer, b: ArrayBuffer): boolean {
  const [left, right] = [new Uint8Array(a), new Uint8Array(b)];
  let difference = left.length ^ right.length;
  for (let i = 0; i < left.length; i++) difference |= (left[i] as number) ^ (right[i] as number);
  return difference === 0;
}

/**
 * An `authorize` function for fixed tokens: one token that may do everything, or a list of those that may do everything and a
 * list of those that may only read. `/health` needs no token, so that a load balancer can use it.
 *
 * @example
 * createHandler(db, { authorize: bearer(token) });
 * createHandler(db, { authorize: bearer({ write: [admin], read: [dashboard] }) });
 */
export function bearer(tokens: string | BearerTokens): (access: Access) => Promise<boolean> {
  if (typeof tokens !== 'string') checkOptions(tokens, TOKENS);
  // `tokens` may be undefined: an environment variable may be unset.
  const { write = [], read = [] } = typeof tokens === 'string' ? { write: [tokens] } : (tokens ?? {});
  // Only arrays: if a string were spread, each of its letters would be a token.
  const all = Array.isArray(write) && Array.isArray(read) ? [...write, ...read] : [];
  // A token of another form could never match, whatever a client sends.
  if (all.length === 0 || !all.every((token) => typeof token === 'string' && TOKEN.test(token))) {
    throw invalid(
      'bearer takes at least one token; a token is letters, digits and - . _ ~ + /, with = at its end only.',
    );
  }
  const digests = Promise.all(all.map(digest));
  return async ({ kind, token }) => {
    if (kind === 'health') return true;
    if (token === undefined) return false;
    const given = await digest(token);
    let may = false;
    for (const [i, known] of (await digests).entries()) {
      const isKnown = areEqual(given, known);
      if (isKnown && (kind !== 'write' || i < write.length)) may = true;
    }
    return may;
  };
}

/** Whether two secrets are equal, in a time that does not depend on where they differ. */
export async function secretsEqual(a: string, b: string): Promise<boolean> {
  const [left, right] = await Promise.all([digest(a), digest(b)]);
  return areEqual(left, right);
}
