/**
 * Code of stores that the compiler must accept or refuse. It never runs: `tsc` checks it, and an expected error that does not come is
 * itself an error.
 */

import type { BuiltInCodec, Key, LiveRange, Store, Transaction } from 'varve';
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

/** Fails to compile unless it is exactly this type. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const same = <A, B>(is: Same<A, B>): void => void is;

/** Live queries; never called. */
export function queries(range: LiveRange<string>): void {
  const entries = typed.live({ prefix: 'a' }, { initial: [] });
  same<[string, number][], typeof entries.value>(true);
  entries.update({ prefix: 'b', as: 'entries' });
  // @ts-expect-error: the values of this query are entries
  entries.update({ prefix: 'b', as: 'keys' });
  const keys = typed.live({ as: 'keys' });
  same<string[] | undefined, typeof keys.value>(true);
  // A range whose `as` is not known.
  const any = typed.live(range);
  same<[string, number][] | string[] | number[] | undefined, typeof any.value>(true);
  any.update({ as: 'keys' });
  const value = typed.live('a', { initial: undefined });
  same<number | undefined, typeof value.value>(true);
}

/** A codec of the package, without the methods that stores use. */
export function codec(json: BuiltInCodec<unknown>): void {
  json.as<number>().encode(1);
  // @ts-expect-error: internal
  json.write(1, undefined as never);
}
