/**
 * Decides an entry's expiry when the entry is updated.
 *
 * Invariant: an update without a lifetime keeps the expiry, to the millisecond.
 */

import type { Lifetime, UpdateLifetime } from '../types.ts';

/** A lifetime with both fields present, so that it can be merged over options. */
interface WholeLifetime extends Lifetime {
  expiresIn: number | undefined;
  expiresAt: Date | number | undefined;
}

/** The lifetime that an update writes: the one in its options, or else the one that the entry has. */
export function lifetimeOf({ expiresIn, expiresAt }: UpdateLifetime, kept: Lifetime = {}): WholeLifetime {
  if (expiresIn === undefined && expiresAt === undefined)
    return { expiresIn: kept.expiresIn, expiresAt: kept.expiresAt };
  return { expiresIn: expiresIn ?? undefined, expiresAt };
}
