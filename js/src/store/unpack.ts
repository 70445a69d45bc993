/** Turns the batches of a scan into keys, values or entries. */

import type { Operations } from '../client/operations.ts';
import type { Unpack } from './scan-iterator.ts';

/** The keys of a batch, decoded together. */
export function keysOf<K, V>({ keys }: Operations<K, V>): Unpack<K> {
  return (batch) => {
    const all = keys.readAll(batch.keys, batch.keyEnds);
    return (i) => all[i] as K;
  };
}

/** The values of a batch, each decoded when it is taken. */
export function valuesOf<K, V>({ values }: Operations<K, V>): Unpack<V> {
  return ({ values: bytes, valueEnds }) =>
    (i) =>
      values.read(bytes, i === 0 ? 0 : (valueEnds[i - 1] as number), valueEnds[i] as number);
}

/** Keys with their values. */
export function entriesOf<K, V>(operations: Operations<K, V>): Unpack<[K, V]> {
  const [keys, values] = [keysOf(operations), valuesOf(operations)];
  return (batch) => {
    const [key, value] = [keys(batch), values(batch)];
    return (i) => [key(i), value(i)];
  };
}
