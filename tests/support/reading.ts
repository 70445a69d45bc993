// The results of reading a store that contains a history: forwards, then backwards, then by key.

import { type Found, type Stamp, sequenceOf, stampIn } from './history.ts';

/** Collects the results, and records where they contradict each other. */
export class Reading {
  /** The entries that were read forwards. */
  readonly entries: [key: number, stamp: Stamp][] = [];
  readonly #faults: string[] = [];
  #backwards = 0;

  /** The next entry forwards. */
  forwards(key: number, value: unknown): void {
    const stamp = stampIn(value);
    if (stamp === undefined) this.#faults.push(`key ${key} has a value that nobody wrote`);
    this.entries.push([key, stamp ?? -1]);
  }

  /** The next key backwards. */
  backwards(key: number): void {
    const at = ++this.#backwards;
    if (this.entries.at(-at)?.[0] !== key) this.#faults.push(`key ${key} comes ${at}th from the end`);
  }

  /** The entry of a key that was read forwards with this stamp. */
  byKey(key: number, stamp: Stamp, entry: { value: unknown; sequence: number } | undefined): void {
    if (stampIn(entry?.value) !== stamp) this.#faults.push(`key ${key} is read and scanned differently`);
    if (entry?.sequence === sequenceOf(stamp)) return;
    this.#faults.push(`key ${key} has sequence ${entry?.sequence} of ${stamp}`);
  }

  /** All results; `sequence` is the one at which the store opened. */
  found(state: string, sequence: number): Found {
    const missing = this.entries.length - this.#backwards;
    if (missing !== 0) this.#faults.push(`${missing} keys do not come backwards`);
    return { state, sequence, entries: this.entries, faults: this.#faults };
  }
}
