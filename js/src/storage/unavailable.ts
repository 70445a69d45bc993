/**
 * That a storage is not to be had in this context.
 *
 * Invariant: thrown only where the next storage may take its place: nothing of the store was touched.
 */

/** The storage is not to be had here; the message is a sentence that says why. */
export class Unavailable extends Error {}
