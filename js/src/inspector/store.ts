/** The stores that the inspector shows. Invariant: types only. */

import type { Store } from '../store/store.ts';
import type { Key, StoreStats } from '../types.ts';

/** Any store. */
export type AnyStore = Store<Key, unknown>;

/** A part of the inspector that shows a store. */
export interface View {
  readonly root: HTMLElement;
  /** Shows a store; resolves when it can be seen. */
  start(store: AnyStore): Promise<void> | void;
  /** Stops following the store. */
  stop(): void;
  /** Takes a look at the store. */
  look?(stats: StoreStats): void;
}
