// Many short sessions of one store, as a page that saves a setting and a service worker that keeps a push live them: each one
// opens the store, writes a little once, and goes, closed or not.
//
//   visit      one session; its number and a seed decide what it writes
//   guestbook  what all visits so far must have left: the judge
//   census     how large the store was that a visit came upon: it must not grow with the number of visits

import { randomFrom } from './random.ts';

const SETTINGS = 5;
/** A visit that deletes deletes what one of the last so many left. */
const DELETED_AGE_MAX = 50;
/** What the visit before left is asked for, and so many others. */
const ASKED = 3;

/** The one write of a visit; without a value the key is deleted. */
export interface VisitWrite {
  readonly key: string;
  readonly value: string | undefined;
}

/** What visit number `visit` writes: mostly an entry of its own, else a setting that many write, or it deletes an older entry. */
export function visitWrite(seed: number, visit: number): VisitWrite {
  const random = randomFrom(seed, visit);
  const kind = random(10);
  if (kind === 0) return { key: `visit ${Math.max(0, visit - 1 - random(DELETED_AGE_MAX))}`, value: undefined };
  const value = `${visit} ${String.fromCharCode(97 + random(26)).repeat(10 + random(90))}`;
  return { key: kind < 4 ? `setting ${random(SETTINGS)}` : `visit ${visit}`, value };
}

/** What the visits have left, as far as it is known from what they were told. */
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

  /** Keys that visit number `visit` is to read: those that say most. */
  asked(visit: number): string[] {
    const random = randomFrom(this.#seed, visit, ASKED);
    const keys = Array.from({ length: ASKED }, () => visitWrite(this.#seed, random(visit + 1)).key);
    if (visit > 0) keys.push(visitWrite(this.#seed, visit - 1).key);
    // The visit before may have been refused: what is in doubt may be older.
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

  /** Judges all that there is. */
  checkAll(entries: readonly (readonly [key: string, value: string])[]): void {
    const found = new Map(entries);
    if (this.#doubtful !== undefined) this.#resolve(this.#doubtful, found.get(this.#doubtful.key));
    this.check(entries);
    for (const key of this.#entries.keys()) if (!found.has(key)) throw new Error(`${key} is gone`);
  }

  /** A visit has ended, with its write acknowledged or not. The visit before it was judged. */
  ended(visit: number, isAcknowledged: boolean): void {
    const write = visitWrite(this.#seed, visit);
    if (isAcknowledged) this.#apply(write);
    else this.#doubtful = write;
  }

  /** Whether a doubtful write was done is known once its key was read, and stays so. */
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
  /** Files of the storage (rows of it, where it has no files), and their bytes. */
  readonly files: number;
  readonly bytes: number;
  /** Calls to the storage that opening it took, where somebody counts them. */
  readonly calls: number;
}

/** So many visits may pass until a store is as large as it gets, and so many more it takes to tell. */
const YOUNG_MAX = 100;
const TOLD_MIN = 400;
/** How much more, on average, the last third of the visits may come upon than the first. */
const GROWTH_MAX = 2;

/**
 * Refuses counts beyond `limits`, and those that grow with the number of visits, where there were enough of them to tell: the last third of
 * the visits comes upon twice as much as the first, on average, and that is more than any visit of the first third. Averages alone do not
 * tell: tables become more until they are merged, again and again, and it is chance when. Bytes grow with what is in the store, and have a
 * limit only.
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
    const [before, after] = [mean(first), mean(counts.slice(2 * third))];
    // One more of something is no growth.
    if (name !== 'bytes' && after > GROWTH_MAX * Math.max(1, before) && after > Math.max(...first)) {
      faults.push(`${name} grow, from ${before.toFixed(1)} to ${after.toFixed(1)} on average`);
    }
  }
  if (faults.length > 0) throw new Error(`The store grows with the number of its sessions: ${faults.join('; ')}.`);
}

function mean(counts: readonly number[]): number {
  return counts.reduce((sum, count) => sum + count, 0) / Math.max(1, counts.length);
}

/** What there was at most, in words. */
export function summary(censuses: readonly Census[]): string {
  const names = Object.keys(censuses[0] ?? {}) as (keyof Census)[];
  return names.map((name) => `${Math.max(...censuses.map((census) => census[name]))} ${name}`).join(', ');
}
