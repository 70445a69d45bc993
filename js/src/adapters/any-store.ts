/** What adapters take: types only. */

import type { View } from '../store/view.ts';

/** A store of `varve` or `varve/inline`, or a view of one. */
export type AnyStore = Pick<View<never, never>, 'at'>;
