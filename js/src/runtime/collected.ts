/**
 * A last resort for objects that a program did not close: the callback runs some time after the object is gone.
 *
 * Invariant: nothing depends on it. Where there is no `FinalizationRegistry` (workerd with an older compatibility date), a
 * object that was not closed stays open until the store is closed.
 */

/** The part of a `FinalizationRegistry` that is used. */
type Collected<Held> = Pick<FinalizationRegistry<Held>, 'register' | 'unregister'>;

/** A registry, or a stand-in that does nothing. */
export function whenCollected<Held>(callback: (held: Held) => void): Collected<Held> {
  if (typeof FinalizationRegistry === 'function') return new FinalizationRegistry(callback);
  return { register: () => undefined, unregister: () => false };
}
