// The writes of a crash test: an endless history of groups that a seed decides, and the judge of what a crash left of it.
//
//   round 0: group 0, group 1, ... group g | crash      round 1: group 0, ... | crash      ...
//
// A group is one call: a set, a delete, a range or a batch. Its operations have the engine's own sequences, one after another over all
// rounds. Every value contains the sequence and the round of the set that wrote it. So the sequence at which a store recovers decides
// which prefix of the history it must contain, and no part of another prefix can be mistaken for it.

import { randomFrom } from './random.ts';

/** Keys are numbers below this: few enough to be overwritten and deleted often. */
const KEY_COUNT = 3000;
const ROUND = 0x1_0000_0000;

export type Op =
  | { readonly kind: 'set'; readonly key: number }
  | { readonly kind: 'delete'; readonly key: number }
  | { readonly kind: 'deleteRange'; readonly from: number; readonly to: number };

/** Writes that happen together. */
export interface Group {
  readonly ops: readonly Op[];
  readonly durability: 'memory' | 'relaxed' | 'strict';
  /** Whether the writer waits for it before it continues. */
  readonly wait: boolean;
}

/** Where a writer begins: its seed, its round, and the sequence of the last write before it. */
export interface Plan {
  readonly seed: number;
  readonly round: number;
  readonly sequence: number;
}

/** Called while a writer runs: how many groups are acknowledged as relaxed or strict, and how many sets are in them. */
export type Report = (groups: number, sets: number) => void;

/** Which set wrote a value: its round and its sequence in one number. */
export type Stamp = number;

/** The stamp of the set with a sequence. */
export function stampOf(round: number, sequence: number): Stamp {
  return round * ROUND + sequence;
}

/** The sequence in a stamp. */
export function sequenceOf(stamp: Stamp): number {
  return stamp % ROUND;
}

/** Group number `index` of a round. */
export function groupOf({ seed, round }: Plan, index: number): Group {
  const random = randomFrom(seed, round, index);
  const count = random(2) === 0 ? 1 : 2 + random(39);
  const ops = Array.from({ length: count }, (): Op => {
    const key = random(KEY_COUNT);
    const kind = random(100);
    if (kind < 85) return { kind: 'set', key };
    if (kind < 98) return { kind: 'delete', key };
    return { kind: 'deleteRange', from: key, to: key + 1 + random(30) };
  });
  const level = random(100);
  return { ops, durability: level < 12 ? 'memory' : level < 96 ? 'relaxed' : 'strict', wait: random(8) === 0 };
}

/** The value that a set with this stamp stores. */
export function storedBy(stamp: Stamp): { stamp: Stamp; text: string } {
  const random = randomFrom(stamp, Math.floor(stamp / ROUND));
  const length = random(50) === 0 ? 3000 : 20 + random(180);
  return { stamp, text: String.fromCharCode(97 + random(26)).repeat(length) };
}

/** A batch of either kind of store. */
interface Batch {
  set(key: number, value: unknown): unknown;
  delete(key: number): unknown;
  deleteRange(range: { gte: number; lt: number }): unknown;
}

/** Adds a group's operations to a batch; `sequence` is that of the first. */
export function fill(batch: Batch, { ops }: Group, round: number, sequence: number): void {
  ops.forEach((op, i) => {
    if (op.kind === 'set') batch.set(op.key, storedBy(stampOf(round, sequence + i)));
    else if (op.kind === 'delete') batch.delete(op.key);
    else batch.deleteRange({ gte: op.from, lt: op.to });
  });
}

/** Whether a value is exactly the one that some set stored; its stamp if so. */
export function stampIn(value: unknown): Stamp | undefined {
  const { stamp, text } = (value ?? {}) as { stamp?: unknown; text?: unknown };
  return typeof stamp === 'number' && storedBy(stamp).text === text ? stamp : undefined;
}

/** The content that was found in a store. */
export interface Found {
  /** The state that `recovery` reported. */
  readonly state: string;
  /** The sequence at which it opened. */
  readonly sequence: number;
  /** Every key with the stamp of its value. */
  readonly entries: readonly (readonly [key: number, stamp: Stamp])[];
  /** The contradictions: a value that nobody wrote, ways of reading that differ. */
  readonly faults: readonly string[];
}

/** The content that a store must have, and how far its history has come. */
export class History {
  #model = new Map<number, Stamp>();
  #sequence = 0;

  /** Sequence of the last write that survived. */
  get sequence(): number {
    return this.#sequence;
  }

  /** How many keys it must have. */
  get size(): number {
    return this.#model.size;
  }

  /**
   * Judges the remains of a round after a crash: they must be the history up to the end of some group, not before the last acknowledged
   * one. From then on the store must have that content.
   * @returns how many groups of the round survived
   * @throws an error that says what is wrong
   */
  survive(plan: Plan, acknowledged: number, found: Found): number {
    let sequence = this.#sequence;
    let groups = 0;
    for (; sequence < found.sequence; groups++) {
      const { ops } = groupOf(plan, groups);
      for (const op of ops) this.#apply(op, stampOf(plan.round, ++sequence));
    }
    if (sequence !== found.sequence) {
      throw new Error(`sequence ${found.sequence} is inside of group ${groups - 1}: a part of a group survived`);
    }
    if (groups < acknowledged) {
      throw new Error(`group ${acknowledged - 1} was acknowledged, but only ${groups} groups survived`);
    }
    this.#sequence = sequence;
    this.expect(found);
    return groups;
  }

  /** Throws unless the store has exactly the content that it must have. */
  expect(found: Found): void {
    const wrong = [...found.faults];
    const left = new Map(this.#model);
    if (found.sequence !== this.#sequence) wrong.push(`sequence ${found.sequence} instead of ${this.#sequence}`);
    for (const [key, stamp] of found.entries) {
      const expected = left.get(key);
      if (expected !== stamp) wrong.push(`key ${key} has the value of ${stamp}, not of ${expected}`);
      left.delete(key);
    }
    for (const [key, stamp] of left) wrong.push(`key ${key} is missing: ${stamp} set it`);
    if (wrong.length > 0) throw new Error(`${wrong.length} faults (${found.state}): ${wrong.slice(0, 8).join('; ')}`);
  }

  #apply(op: Op, stamp: Stamp): void {
    if (op.kind === 'set') this.#model.set(op.key, stamp);
    else if (op.kind === 'delete') this.#model.delete(op.key);
    else for (let key = op.from; key < op.to; key++) this.#model.delete(key);
  }
}
