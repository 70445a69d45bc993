/** The stores that adapters take: types only. */

import type { View } from '../store/view.ts';

/** A store of `varve` or `varve/inline`, or a view of one. */
export type AnyStore = Pick<View<never, never>, 'at'>;

/**
 * The name of a Varve store; a store of your own, a view of one, or the promise of one. A named store is opened at the first use, and again
 * when it was closed or deleted, or has failed. (A `VarvePersistence` and a `VarveLevel` stay with the store that they have opened.)
 */
export type StoreOrName = string | AnyStore | PromiseLike<AnyStore>;
