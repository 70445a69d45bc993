/** The stores that adapters take: types only. */

import type { View } from '../store/view.ts';

/** A store of `varve` or `varve/inline`, or a view of one. */
export type AnyStore = Pick<View<never, never>, 'at'>;

/** The name of a Varve store, which is opened at the first use; a store of your own, a view of one, or the promise of one. */
export type StoreOrName = string | AnyStore | PromiseLike<AnyStore>;
