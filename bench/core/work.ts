/** The calls of a loop. */

import type { Order } from './draw.ts';

/** Calls of several kinds, by their shares; the rest are sets of keys that are there. */
export interface Shares {
  readonly reads?: number;
  readonly inserts?: number;
  /** Ranges of 1 to `size` entries. */
  readonly scans?: number;
  readonly size?: number;
  /** Gets that are followed by a set of the key. */
  readonly modifies?: number;
}

/** The point calls of a suite: of one kind, or of several. */
export type Mix = 'set' | 'get' | 'miss' | 'delete' | Shares;

export type Work =
  /** Single calls. */
  | { readonly kind: 'points'; readonly mix: Mix; readonly order: Order }
  /** Batches of `size` entries. */
  | { readonly kind: 'batches'; readonly size: number }
  /** Ranges of `size` entries from random keys. */
  | { readonly kind: 'ranges'; readonly size: number }
  /** All entries, first to last. */
  | { readonly kind: 'scan' }
  /** Opening the store and getting one entry. */
  | { readonly kind: 'open' }
  /** Gets of `size` keys in one call, as of one moment. */
  | { readonly kind: 'reads'; readonly size: number }
  /** Transactions that get `size` keys and set them. */
  | { readonly kind: 'transactions'; readonly size: number };
