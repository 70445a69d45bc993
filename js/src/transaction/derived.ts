/**
 * Which keys of a store are derived from others, so that exports can leave them out, and imports and upgrades can mark them as out of date.
 *
 *   key      ff "derived"                 reserved: no key of a user begins with ff
 *   value    { u32 marks, at most 65535 | u32 runs | { u32 length | bytes }* }*, for each derivation: source, marks, derived prefixes
 *
 * Code that derives keys reads a mark before it relies on them. An import or an upgrade that writes under a source sets the marks
 * in the same batch, on the condition that the statement is still as it was read. Code that makes a statement reads a mark of the
 * previous statement in the same transaction. So keys that are out of date always have their marks.
 *
 * Invariant: nothing here knows what is derived, or how. A value that does not fit this layout is of a later one: `VARVE_VERSION`.
 */

import type { KeyFormat } from '../codec/key-format.ts';
import { newer } from '../codec/newer.ts';
import { compareBytes } from '../codec/range.ts';
import { ByteSink } from '../codec/sink.ts';

/** The reserved key. */
export const DERIVED_KEY: Uint8Array = Uint8Array.of(0xff, ...new TextEncoder().encode('derived'));

/** The value of a mark, which is never read. */
export const MARK: Uint8Array = new Uint8Array(0);

/** One statement, in bytes of keys. */
export interface Derivation {
  /** The prefix of the keys from which others are derived. */
  readonly source: Uint8Array;
  /** The keys that an import or an upgrade sets. */
  readonly marks: readonly Uint8Array[];
  /** The prefixes of the derived keys. */
  readonly derived: readonly Uint8Array[];
}

/** Reserved keys of a store, within one transaction: data that the store keeps about itself. */
export interface Reserved<R = Promise<Uint8Array | undefined>> {
  get(key: Uint8Array): R;
  set(key: Uint8Array, value: Uint8Array): void;
  /** Whether the transaction has written keys of users with this prefix. */
  touches(prefix: Uint8Array): boolean;
}

/** The statements in a value; none if there is no value. Throws `VARVE_VERSION`. */
export function readDerivations(value: Uint8Array | undefined): Derivation[] {
  const all: Derivation[] = [];
  if (value === undefined) return all;
  const view = new DataView(value.buffer, value.byteOffset, value.length);
  const unknown = (): Error => newer('the list of derived keys');
  let at = 0;
  const take = (length: number): number => {
    at += length;
    if (at > value.length) throw unknown();
    return at - length;
  };
  const word = (): number => view.getUint32(take(4), true);
  const run = (): Uint8Array => {
    const start = take(word());
    return value.slice(start, at);
  };
  while (at < value.length) {
    const marks = word();
    const [source, ...others] = Array.from({ length: word() }, run);
    if (marks > 0xffff || source === undefined || others.length < marks) throw unknown();
    all.push({ source, marks: others.slice(0, marks), derived: others.slice(marks) });
  }
  return all;
}

function bytesOf(all: readonly Derivation[]): Uint8Array {
  const sink = new ByteSink();
  for (const { source, marks, derived } of all) {
    const runs = [source, ...marks, ...derived];
    sink.u32(marks.length);
    sink.u32(runs.length);
    for (const run of runs) {
      sink.u32(run.length);
      sink.append(run);
    }
  }
  return sink.copy();
}

/** Whether a key is derived by one of the statements. */
export function isDerived(all: readonly Derivation[], key: Uint8Array): boolean {
  return all.some(({ derived }) => derived.some((prefix) => hasPrefix(key, prefix)));
}

/** Marks derived keys as out of date if a transaction has written some of them, or keys from which they are derived. */
export function markWritten(stated: Uint8Array | undefined, reserved: Omit<Reserved<unknown>, 'get'>): void {
  for (const { source, marks, derived } of readDerivations(stated)) {
    if (![source, ...derived].some((prefix) => reserved.touches(prefix))) continue;
    for (const mark of marks) reserved.set(mark, MARK);
  }
}

/** Whether a key begins with these bytes. */
export function hasPrefix(key: Uint8Array, prefix: Uint8Array): boolean {
  return prefix.length <= key.length && prefix.every((byte, i) => byte === key[i]);
}

/** The statement about a source, in keys of a store. */
interface Statement<K> {
  readonly marks: readonly K[];
  readonly derived: readonly K[];
}

/** The statements of one store, within one transaction. */
export class Derivations<K> {
  readonly #reserved: Reserved;
  readonly #keys: KeyFormat<K>;

  constructor(reserved: Reserved, keys: KeyFormat<K>) {
    this.#reserved = reserved;
    this.#keys = keys;
  }

  /** Makes a statement about a source, and replaces the previous one. Once in a transaction. */
  async state(source: K, { marks, derived }: Statement<K>): Promise<void> {
    const bytes = this.#bytes(source);
    const others = readDerivations(await this.#reserved.get(DERIVED_KEY)).filter(
      (one) => compareBytes(one.source, bytes) !== 0,
    );
    const all = (keys: readonly K[]): Uint8Array[] => keys.map((key) => this.#bytes(key));
    const stated = { source: bytes, marks: all(marks), derived: all(derived) };
    this.#reserved.set(DERIVED_KEY, bytesOf([...others, stated]));
  }

  #bytes(key: K): Uint8Array {
    const sink = new ByteSink(64);
    this.#keys.write(key, sink);
    return sink.copy();
  }
}
