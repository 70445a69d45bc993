/**
 * A last resort for what a program forgot to close: called back some time after the object is gone.
 *
 * Invariant: nothing rests on it. Where there is no `FinalizationRegistry` (workerd with an older compatibility date), what is
 * forgotten stays until the store is closed.
 */

/** What is used of a `FinalizationRegistry`. */
export type Collected<Held> = Pick<FinalizationRegistry<Held>, 'register' | 'unregister'>;

/** A registry, or one that forgets what it is told. */
export function whenCollected<Held>(callback: (held: Held) => void): Collected<Held> {
  if (typeof FinalizationRegistry === 'function') return new FinalizationRegistry(callback);
  return { register: () => undefined, unregister: () => false };
}
