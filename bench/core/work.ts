/** The calls of a loop. */

import type { Order } from './draw.ts';

/** Which point calls a suite makes: one kind, or reads and writes with this share of reads (and of inserts among all). */
export type Mix = 'set' | 'get' | 'miss' | 'delete' | { readonly reads: number; readonly inserts?: number };

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
  /** Gets, and in these shares inserts, ranges of 1 to `size` entries, and gets that are followed by a set of the key. */
  | {
      readonly kind: 'mix';
      readonly shares: { readonly inserts: number; readonly scans: number; readonly modifies: number };
      readonly order: Exclude<Order, 'sequential'>;
      readonly size: number;
    }
  /** Gets of `size` keys in one call, as of one moment. */
  | { readonly kind: 'reads'; readonly size: number }
  /** Transactions that get `size` keys and set them. */
  | { readonly kind: 'transactions'; readonly size: number };
