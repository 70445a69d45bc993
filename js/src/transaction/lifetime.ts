/**
 * What becomes of an entry's expiry when the entry is updated.
 *
 * Invariant: an update that says nothing of a lifetime leaves the expiry where it is, to the millisecond.
 */

import type { Lifetime, UpdateLifetime } from '../types.ts';

/** A lifetime whose both fields say what they are, so that it can be laid over options. */
interface WholeLifetime extends Lifetime {
  expiresIn: number | undefined;
  expiresAt: Date | number | undefined;
}

/** The lifetime that an update writes: the one it asks for, or else the one that the entry has. */
export function lifetimeOf({ expiresIn, expiresAt }: UpdateLifetime, kept: Lifetime): WholeLifetime {
  if (expiresIn === undefined && expiresAt === undefined)
    return { expiresIn: kept.expiresIn, expiresAt: kept.expiresAt };
  return { expiresIn: expiresIn ?? undefined, expiresAt };
}
