/**
 * Code of stores that the compiler must accept or refuse. It never runs: `tsc` checks it, and an expected error that does not come is
 * itself an error.
 */

import type { Key, Store, Transaction } from 'varve';
import type { SyncStore, SyncTransaction } from 'varve/synchronous';

declare const untyped: Store<Key, unknown>;
declare const typed: Store<string, number>;

export const counted = [
  untyped.update('visits', (n = 0) => n + 1),
  untyped.update('visits', (n: number = 0) => n + 1),
  untyped.update('note', async (note) => ({ ...note, isRead: true })),
  (tx: Transaction<Key, unknown>) => tx.update('visits', (n = 0) => n + 1),
  (db: SyncStore<Key, unknown>) => db.update('visits', (n = 0) => n + 1),
  (tx: SyncTransaction<Key, unknown>) => tx.update('visits', (n = 0) => n + 1),
];

export const typedCounts = [
  typed.update('visits', (n = 0) => n + 1),
  // @ts-expect-error: the key may be absent
  typed.update('visits', (n) => n + 1),
  // @ts-expect-error: a value of another type
  typed.update('visits', (n) => String(n)),
  // @ts-expect-error: a default of another type
  typed.update('visits', (n = '') => n.length),
  // @ts-expect-error: not every number is 1
  typed.update('visits', (n: 1 | undefined) => n ?? 1),
  // @ts-expect-error: a number has no such property
  (tx: Transaction<string, number>) => tx.update('visits', (n = 0) => n.length),
  // @ts-expect-error: a number has no such property
  (db: SyncStore<string, number>) => db.update('visits', (n = 0) => n.length),
  // @ts-expect-error: a number has no such property
  (tx: SyncTransaction<string, number>) => tx.update('visits', (n = 0) => n.length),
];
