/**
 * Rows that belong to a collection: documents and entries of indexes. An import of an export marks such indexes as out of date. Rows are
 * plain writes that no index follows, so two documents could get one value of a unique index.
 *
 * Invariant: nothing here knows what is derived, or how: the store states it (transaction/derived.ts).
 */

import type { Transaction } from '../store/transaction.ts';
import { DERIVED_KEY, hasPrefix, isDerived, readDerivations } from '../transaction/derived.ts';
import type { Key } from '../types.ts';

/** Why a row with this key is refused; undefined if it is not. */
export type Refusal = (key: Key) => string | undefined;

/** The function that refuses rows, by the collections that the store has in this transaction; undefined if it has none. */
export async function refusalIn(tx: Transaction<Key, unknown>): Promise<Refusal | undefined> {
  const { reserved, operations } = tx.state;
  const stated = readDerivations(await reserved.get(DERIVED_KEY));
  if (stated.length === 0) return undefined;
  return (key) => {
    const bytes = operations.keys.encode(key);
    if (!isDerived(stated, bytes) && !stated.some(({ source }) => hasPrefix(bytes, source))) return undefined;
    return 'It belongs to a collection, whose indexes would not follow. Import an export of Varve, or call insertMany() of the collection.';
  };
}
