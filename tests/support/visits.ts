// Many short sessions of one store, like those of a page that saves a setting and of a service worker that keeps a push message: each
// session opens the store, writes a little once, and ends, with or without closing.
//
//   visit      one session; its number and a seed decide what it writes
//   guestbook  what all visits so far must have left: the judge
//   census     how large the store was that a visit came upon: it must not grow with the number of visits

import { randomFrom } from './random.ts';

const SETTINGS = 5;
/** A visit that deletes removes an entry that one of the last visits left, at most this many visits ago. */
const DELETED_AGE_MAX = 50;
/** A visit reads the key of the visit before, and this many others. */
const ASKED = 3;

/** The one write of a visit; without a value the key is deleted. */
export interface VisitWrite {
  readonly key: string;
  readonly value: string | undefined;
}

/** The writes of visit number `visit`: mostly an entry of its own, else a setting that many write, or it deletes an older entry. */
export function visitWrite(seed: number, visit: number): VisitWrite {
  const random = randomFrom(seed, visit);
  const kind = random(10);
  if (kind === 0) return { key: `visit ${Math.max(0, visit - 1 - random(DELETED_AGE_MAX))}`, value: undefined };
  const value = `${visit} ${String.fromCharCode(97 + random(26)).repeat(10 + random(90))}`;
  return { key: kind < 4 ? `setting ${random(SETTINGS)}` : `visit ${visit}`, value };
}

/** The entries that the visits have left, as far as their acknowledgements show. */
export class Guestbook {
  readonly #seed: number;
  readonly #entries = new Map<string, string>();
  /** The last write, if its visit ended before it was acknowledged: it may be there or not. */
  #doubtful: VisitWrite | undefined;

  constructor(seed: number) {
    this.#seed = seed;
  }

  /** Entries that must be there. */
  get size(): number {
    return this.#entries.size;
  }

  /** The keys that visit number `visit` must read: the most informative ones. */
  asked(visit: number): string[] {
    const random = randomFrom(this.#seed, visit, ASKED);
    const keys = Array.from({ length: ASKED }, () => visitWrite(this.#seed, random(visit + 1)).key);
    if (visit > 0) keys.push(visitWrite(this.#seed, visit - 1).key);
    // The visit before may have been refused, so the doubtful write may be older.
    if (this.#doubtful !== undefined) keys.push(this.#doubtful.key);
    return keys;
  }

  /** Judges what a visit read. */
  check(found: Iterable<readonly [key: string, value: string | undefined]>): void {
    for (const [key, value] of found) {
      if (this.#doubtful?.key === key) this.#resolve(this.#doubtful, value);
      const expected = this.#entries.get(key);
      if (value !== expected) throw new Error(`${key} is ${value}, and was acknowledged as ${expected}`);
    }
  }

  /** Judges the whole content. */
  checkAll(entries: readonly (readonly [key: string, value: string])[]): void {
    const found = new Map(entries);
    if (this.#doubtful !== undefined) this.#resolve(this.#doubtful, found.get(this.#doubtful.key));
    this.check(entries);
    for (const key of this.#entries.keys()) if (!found.has(key)) throw new Error(`${key} is gone`);
  }

  /** A visit has ended; its write was acknowledged or not. The visit before it was judged. */
  ended(visit: number, isAcknowledged: boolean): void {
    const write = visitWrite(this.#seed, visit);
    if (isAcknowledged) this.#apply(write);
    else this.#doubtful = write;
  }

  /** Once the key of a doubtful write was read, it is known whether the write was done, and that does not change. */
  #resolve(write: VisitWrite, found: string | undefined): void {
    this.#doubtful = undefined;
    if (found === write.value) this.#apply(write);
  }

  #apply({ key, value }: VisitWrite): void {
    if (value === undefined) this.#entries.delete(key);
    else this.#entries.set(key, value);
  }
}

/** Counts of a store that was just opened. */
export interface Census {
  /** Log records that opening it replayed. */
  readonly records: number;
  /** Segments of the log. */
  readonly segments: number;
  readonly tables: number;
  /** Files of the storage (rows, where it has no files), and their bytes. */
  readonly files: number;
  readonly bytes: number;
  /** Calls to the storage that opening it took, where they are counted. */
  readonly calls: number;
}

/** A store may take this many visits to reach its full size, and a verdict needs this many more. */
const YOUNG_MAX = 100;
const TOLD_MIN = 400;
/** How much larger the counts of the last third of the visits may be than the median of the first. */
const GROWTH_MAX = 2;
/** As few visits as these may find less, though a count grows. */
const LOWEST = 0.1;

/**
 * Refuses counts beyond `limits`, and counts that grow with the number of visits, if there were enough visits for a verdict. Counts grow
 * when nine of ten visits of the last third find twice the median of the first third, and more than any visit of the first third found.
 * Means and medians of the last third would not do: tables pile up until they are merged, again and again, and some forty visits in a row
 * may be too short for a merge (seed 605266 of the life in browsers). A young store is merged at each visit. Bytes grow with the content
 * of the store, and only have a limit.
 */
export function checkBounded(censuses: readonly Census[], limits: Census): void {
  const grown = censuses.length < YOUNG_MAX + TOLD_MIN ? [] : censuses.slice(YOUNG_MAX);
  const third = Math.floor(grown.length / 3);
  const faults: string[] = [];
  for (const name of Object.keys(limits) as (keyof Census)[]) {
    const most = Math.max(...censuses.map((census) => census[name]));
    if (most > limits[name]) faults.push(`${most} ${name}, more than ${limits[name]}`);
    const counts = grown.map((census) => census[name]);
    const first = counts.slice(0, third);
    const [before, after] = [quantile(first, 0.5), quantile(counts.slice(2 * third), LOWEST)];
    // One more of something is not growth.
    if (name !== 'bytes' && after > GROWTH_MAX * Math.max(1, before) && after > Math.max(...first)) {
      faults.push(`${name} grow, from ${before} to ${after} and more`);
    }
  }
  if (faults.length > 0) throw new Error(`The store grows with the number of its sessions: ${faults.join('; ')}.`);
}

function quantile(counts: readonly number[], part: number): number {
  return [...counts].sort((a, b) => a - b)[Math.floor(part * counts.length)] ?? 0;
}

/** The maximum of each count, in words. */
export function summary(censuses: readonly Census[]): string {
  const names = Object.keys(censuses[0] ?? {}) as (keyof Census)[];
  return names.map((name) => `${Math.max(...censuses.map((census) => census[name]))} ${name}`).join(', ');
}
