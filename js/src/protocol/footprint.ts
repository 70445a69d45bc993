/**
 * The keys and ranges that something reads or writes, as text (`textOfBytes`): for comparing reads with writes.
 *
 * Invariant: a footprint may be larger than what it stands for, never smaller. One that would take too much memory is everything.
 */

/** A range of key texts, from its start to before its end; without an end, to the end of the store. */
export type TextRange = readonly [start: string, end: string | undefined];

/** A footprint as plain data, for messages; undefined for everything. */
export type PlainFootprint = { readonly keys: readonly string[]; readonly ranges: readonly TextRange[] } | undefined;

/** Characters of keys, with an allowance for each. Above it a footprint is everything. */
const SIZE_MAX = 512 * 1024;
const KEY_SIZE = 64;
/** Ranges are compared one by one. */
const RANGES_MAX = 200;

/** Keys and ranges. */
export class Footprint {
  readonly #keys = new Set<string>();
  #ranges: TextRange[] = [];
  #size = 0;
  #isEverything = false;

  static of(plain: PlainFootprint): Footprint {
    const footprint = new Footprint();
    if (plain === undefined) footprint.addEverything();
    else {
      for (const key of plain.keys) footprint.add(key);
      for (const [start, end] of plain.ranges) footprint.addRange(start, end);
    }
    return footprint;
  }

  get isEverything(): boolean {
    return this.#isEverything;
  }

  get isEmpty(): boolean {
    return !this.#isEverything && this.#keys.size === 0 && this.#ranges.length === 0;
  }

  add(key: string): void {
    if (this.#isEverything || this.#keys.has(key)) return;
    this.#keys.add(key);
    this.#size += KEY_SIZE + key.length;
    if (this.#size > SIZE_MAX) this.addEverything();
  }

  addRange(start: string, end: string | undefined): void {
    if (this.#isEverything || this.#ranges.some(([from, to]) => from === start && to === end)) return;
    this.#ranges.push([start, end]);
    if (this.#ranges.length > RANGES_MAX) this.addEverything();
  }

  addAll({ isEverything, keys, ranges }: Footprint): void {
    if (isEverything) this.addEverything();
    for (const key of keys) this.add(key);
    for (const [start, end] of ranges) this.addRange(start, end);
  }

  addEverything(): void {
    if (this.#isEverything) return;
    this.clear();
    this.#isEverything = true;
  }

  clear(): void {
    this.#isEverything = false;
    this.#keys.clear();
    this.#ranges = [];
    this.#size = 0;
  }

  get keys(): ReadonlySet<string> {
    return this.#keys;
  }

  get ranges(): readonly TextRange[] {
    return this.#ranges;
  }

  /** Whether both have a key in common. */
  touches(other: Footprint): boolean {
    if (this.isEmpty || other.isEmpty) return false;
    if (this.#isEverything || other.#isEverything) return true;
    const [few, many] = this.#keys.size < other.#keys.size ? [this.#keys, other.#keys] : [other.#keys, this.#keys];
    for (const key of few) if (many.has(key)) return true;
    return this.#rangesTouch(other) || other.#rangesTouch(this);
  }

  /** Removes the keys and ranges that the other one touches, and returns them. Of everything, everything is removed. */
  remove(other: Footprint): Footprint {
    const removed = new Footprint();
    if (this.#isEverything || other.#isEverything) {
      removed.addAll(this);
      this.clear();
      return removed;
    }
    for (const key of other.#keys) this.#move(key, removed);
    if (other.#ranges.length > 0) {
      for (const key of this.#keys) if (other.#ranges.some((range) => isIn(key, range))) this.#move(key, removed);
    }
    this.#ranges = this.#ranges.filter((range) => {
      const isRemoved = isTouched(range, other.#keys, other.#ranges);
      if (isRemoved) removed.addRange(...range);
      return !isRemoved;
    });
    return removed;
  }

  plain(): PlainFootprint {
    return this.#isEverything ? undefined : { keys: [...this.#keys], ranges: [...this.#ranges] };
  }

  #move(key: string, to: Footprint): void {
    if (!this.#keys.delete(key)) return;
    this.#size -= KEY_SIZE + key.length;
    to.add(key);
  }

  #rangesTouch(other: Footprint): boolean {
    return this.#ranges.some((range) => isTouched(range, other.#keys, other.#ranges));
  }
}

/** Whether a key lies in a range. */
export function isIn(key: string, [start, end]: TextRange): boolean {
  return key >= start && (end === undefined || key < end);
}

/** Whether one of these keys lies in a range, or one of these ranges overlaps with it. */
function isTouched(range: TextRange, keys: Iterable<string>, ranges: readonly TextRange[]): boolean {
  for (const key of keys) if (isIn(key, range)) return true;
  return ranges.some((other) => overlap(range, other));
}

/** Whether two ranges have a key in common; they may have none although they overlap. */
export function overlap([start, end]: TextRange, [otherStart, otherEnd]: TextRange): boolean {
  return (otherEnd === undefined || start < otherEnd) && (end === undefined || otherStart < end);
}
