/**
 * What a page and the worker that holds a peer's store say to one another.
 *
 * Invariant: every request is answered once, with its number; the worker takes them in their order. Values that travel
 * together lie in one buffer, which is transferred: cloning hundreds of small arrays would cost more than storing them.
 */

import type { Place, PointCall, SessionOptions } from '../core/engine.ts';
import type { Key } from '../core/generator.ts';

/** Values one behind the other. A length below 0: no value, but what a PointCall has in its place. */
export interface PackedValues {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly lengths: Int32Array;
}

/** A call of a session. */
export type Call =
  | { readonly type: 'open'; readonly peer: string; readonly name: string; readonly options: SessionOptions }
  | { readonly type: 'set'; readonly key: Key; readonly value: Uint8Array }
  | { readonly type: 'get'; readonly key: Key }
  | { readonly type: 'delete'; readonly key: Key }
  | { readonly type: 'batch'; readonly keys: readonly Key[]; readonly values: PackedValues }
  | { readonly type: 'transact'; readonly keys: readonly Key[]; readonly values: PackedValues }
  | { readonly type: 'range'; readonly from: Key | undefined; readonly limit: number }
  | { readonly type: 'deleteRange'; readonly from: Key; readonly to: Key }
  | { readonly type: 'wave'; readonly keys: readonly Key[]; readonly values: PackedValues }
  | { readonly type: 'settle'; readonly where: Place; readonly entries: number }
  | { readonly type: 'close' };

export type Request = Call & { readonly id: number };

/** What a call came to: a value, the entries of a range, the values of a wave, or whether entries lie where they should. */
export interface Answer {
  readonly value?: Uint8Array | undefined;
  readonly keys?: readonly Key[];
  readonly values?: PackedValues;
  readonly settled?: boolean;
}

export type Reply = { readonly id: number } & (Answer | { readonly error: string });

const NONE = -1;
const DELETE = -2;

/** Puts values into one buffer. */
export function pack(values: readonly (Uint8Array | undefined | null)[]): PackedValues {
  const lengths = Int32Array.from(values, (value) => value?.length ?? (value === null ? DELETE : NONE));
  const bytes = new Uint8Array(lengths.reduce((sum, length) => sum + Math.max(length, 0), 0));
  let at = 0;
  for (const value of values) {
    if (!value) continue;
    bytes.set(value, at);
    at += value.length;
  }
  return { bytes, lengths };
}

/** The values of a buffer, each a view of it; undefined where there is none, null where a delete was. */
export function unpack({ bytes, lengths }: PackedValues): (Uint8Array | undefined | null)[] {
  let at = 0;
  return Array.from(lengths, (length) => {
    if (length < 0) return length === DELETE ? null : undefined;
    const value = bytes.subarray(at, at + length);
    at += length;
    return value;
  });
}

/** The point calls of a wave that was packed. */
export function callsOf(keys: readonly Key[], values: PackedValues): PointCall[] {
  return unpack(values).map((value, i) => ({ key: keys[i] as Key, value }));
}
