/**
 * The error when a storage is unavailable in this context.
 *
 * Invariant: thrown only where the next storage may take its place: nothing of the store was touched.
 */

/** The storage is unavailable here; the message is a sentence with the reason. It has a `cause` if the storage exists, and refused. */
export class Unavailable extends Error {}
