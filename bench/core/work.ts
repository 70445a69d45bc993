/** The calls of a loop. */

import type { Order } from './draw.ts';

/** Calls of several kinds, by their shares; the rest are sets of keys that are there. */
export interface Shares {
  readonly reads?: number;
  readonly inserts?: number;
  /** Ranges of 1 to `size` entries. */
  readonly scans?: number;
  readonly size?: number;
  readonly modifies?: number;
}

export type Mix = 'set' | 'get' | 'miss' | 'delete' | Shares;

export type Work =
  | { readonly kind: 'points'; readonly mix: Mix; readonly order: Order }
  | { readonly kind: 'batches'; readonly size: number }
  | { readonly kind: 'ranges'; readonly size: number }
  | { readonly kind: 'scan' }
  | { readonly kind: 'open' }
  /** Gets of `size` keys in one call, as of one moment. */
  | { readonly kind: 'reads'; readonly size: number }
  | { readonly kind: 'transactions'; readonly size: number };
