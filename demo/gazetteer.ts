// The cities in their store: how they are written, found, listed, changed and counted.
// Invariant: a record, its index keys and the count of its country change in one transaction over the stored state. So they never
// disagree, even if the page is closed at any time or other tabs write.

import type { Key, KeyRange, ScanOptions, Store, Transaction } from 'varve';
import { type City, fold, indexKeys, recordKey, type Summary, summaryOf, TOP_LETTERS } from './city.ts';

/** The content of the store: records, summaries behind index keys, counts, and how far loading went. */
export type Stored = City | Summary | number | Progress;
export type CityStore = Store<Key, Stored>;

/** How far the file of cities was loaded; written with every batch of it. */
export interface Progress {
  readonly rows: number;
  /** The whole file was loaded. */
  readonly isComplete: boolean;
  /** When the last batch was written, in milliseconds since 1970. */
  readonly atMs: number;
}

/** The result of a search, how it was found, and how long it took. */
export interface Found {
  readonly cities: readonly City[];
  /** How many names begin like this; undefined where only the largest were read. */
  readonly matches: number | undefined;
  /** The call that answered, as one would write it. */
  readonly call: string;
  readonly tookMs: number;
}

/** One line of a list. */
export interface Row {
  readonly key: Key;
  readonly id: number;
  readonly name: string;
  readonly country: string;
  readonly population: number;
}

const PROGRESS: Key = ['meta', 'progress'];
const NOTHING: Progress = { rows: 0, isComplete: false, atMs: 0 };
/** Sorts after every name that begins with the text before it. */
const LAST = '\u{10ffff}';
/** More names than begin with any four letters. */
const MATCHES_MAX = 8000;

/** Changes that arrived while the store was being read. */
interface Taken {
  readonly counts: Map<string, number>;
  progress: Progress | undefined;
}

export class Gazetteer {
  readonly store: CityStore;
  /** Cities of each country, as far as this tab knows. */
  readonly counts = new Map<string, number>();
  #progress = NOTHING;
  /** Changes since reading began: they are newer than the result of the read. */
  #taken: Taken = { counts: new Map(), progress: undefined };

  constructor(store: CityStore) {
    this.store = store;
  }

  get size(): number {
    let sum = 0;
    for (const count of this.counts.values()) sum += count;
    return sum;
  }

  get progress(): Progress {
    return this.#progress;
  }

  /**
   * Reads the counts, which are few, and how far loading went. If several reads run at once, the one that began last
   * counts: an earlier one may end after it, and knows less.
   */
  async start(): Promise<void> {
    const taken: Taken = { counts: new Map(), progress: undefined };
    this.#taken = taken;
    const read = this.store.get(PROGRESS);
    const counts = new Map<string, number>();
    for await (const [key, count] of this.store.entries({ prefix: ['count'] })) {
      counts.set(String(part(key, 1)), count as number);
    }
    const progress = ((await read) as Progress | undefined) ?? NOTHING;
    if (this.#taken !== taken) return;
    this.counts.clear();
    this.take([...counts, ...taken.counts], taken.progress ?? progress);
  }

  /** Applies changes made by another tab, or by this one. */
  take(counts: Iterable<readonly [string, number]>, progress: Progress | undefined): void {
    for (const [country, count] of counts) {
      this.counts.set(country, count);
      this.#taken.counts.set(country, count);
    }
    this.#taken.progress = progress ?? this.#taken.progress;
    this.#progress = progress ?? this.#progress;
  }

  /** Stores rows of the file, and with them how far the file was read. */
  async load(cities: readonly City[], progress: Progress): Promise<void> {
    const changes = new Map<string, number>();
    for (const { country } of cities) changes.set(country, (changes.get(country) ?? 0) + 1);
    const counts = await this.store.transaction(async (tx) => {
      tx.set(PROGRESS, progress);
      for (const city of cities) write(tx, city);
      return count(tx, changes);
    });
    this.take(counts, progress);
  }

  /** Deletes everything. */
  async clear(): Promise<void> {
    await this.store.clear();
    // Reads that are still under way no longer count.
    this.#taken = { counts: new Map(), progress: undefined };
    this.counts.clear();
    this.#progress = NOTHING;
  }

  /** A city as it is now. */
  async city(id: number): Promise<{ city: City; sequence: number } | undefined> {
    const entry = await this.store.getEntry(recordKey(id));
    return entry && { city: entry.value as City, sequence: entry.sequence };
  }

  /** The largest cities whose names begin with a text. */
  async search(text: string, limit: number, signal?: AbortSignal): Promise<Found> {
    const start = performance.now();
    const prefix = fold(text);
    const letters = [...prefix].length;
    let keys: Key[] = [];
    let call = '';
    let matches: number | undefined;
    if (letters <= TOP_LETTERS) {
      keys = await this.store.keys({ prefix: ['top', prefix], limit, signal }).toArray();
      call = `db.keys({ prefix: ['top', '${prefix}'], limit: ${limit} })`;
    }
    if (keys.length < limit) {
      // Every name that begins like this: only its keys are read, and the largest of them are kept.
      const range = { gte: ['name', prefix], lt: ['name', prefix + LAST] };
      keys = await this.store.keys({ ...range, limit: MATCHES_MAX, signal }).toArray();
      call = `db.keys({ gte: ['name', '${prefix}'], lt: ['name', '${prefix}\\u{10ffff}'] })`;
      matches = keys.length;
      keys.sort((a, b) => Number(part(a, 2)) - Number(part(b, 2)));
      keys.length = Math.min(keys.length, limit);
    }
    const records = await this.store.getMany(
      keys.map((key) => recordKey(Number(part(key, 3)))),
      { signal },
    );
    const cities = records.filter((record): record is City => record !== undefined);
    return { cities, matches, call, tookMs: performance.now() - start };
  }

  /** A page of a country's cities by population, from the row after `after`. */
  byCountry(country: string, page: Page): Promise<Row[]> {
    return this.#rows({ prefix: ['country', country] }, page, ([countryCode, name], key) => ({
      ...{ key, id: Number(part(key, 3)), name, country: countryCode, population: 0 - Number(part(key, 2)) },
    }));
  }

  /** A page of the names from one letter to another, the last letter included. */
  byName(from: string, to: string, page: Page): Promise<Row[]> {
    const range = { gte: ['name', from], lt: ['name', to + LAST] };
    return this.#rows(range, page, ([country, name], key) => ({
      ...{ key, id: Number(part(key, 3)), name, country, population: 0 - Number(part(key, 2)) },
    }));
  }

  /** Every record of the store, in the order of their keys. */
  records(signal: AbortSignal): AsyncIterable<City> {
    return this.store.values({ prefix: ['city'], signal }) as AsyncIterable<City>;
  }

  /** Writes a changed city: the record, and the index keys that moved. False when it is not stored any more. */
  replace(after: City): Promise<boolean> {
    return this.store.transaction(async (tx) => {
      const before = await tx.get(recordKey(after.id));
      if (before === undefined) return false;
      for (const key of indexKeys(before as City)) tx.delete(key);
      write(tx, after);
      return true;
    });
  }

  /** Deletes a city and all of its index keys. */
  async remove(id: number): Promise<void> {
    const counts = await this.store.transaction(async (tx) => {
      const city = (await tx.get(recordKey(id))) as City | undefined;
      if (city === undefined) return [];
      tx.delete(recordKey(id));
      for (const key of indexKeys(city)) tx.delete(key);
      return count(tx, [[city.country, -1]]);
    });
    this.take(counts, undefined);
  }

  /** Restores a city that was deleted. */
  async restore(city: City): Promise<void> {
    const counts = await this.store.transaction(async (tx) => {
      if (await tx.has(recordKey(city.id))) return [];
      write(tx, city);
      return count(tx, [[city.country, 1]]);
    });
    this.take(counts, undefined);
  }

  async #rows(range: KeyRange, page: Page, rowOf: (summary: Summary, key: Key) => Row): Promise<Row[]> {
    const found = await this.store.entries(onPage(range, page)).toArray();
    return found.map(([key, value]) => rowOf(value as Summary, key));
  }
}

/** The wanted rows of a list. */
export interface Page {
  readonly after: Key | undefined;
  readonly reverse: boolean;
  readonly limit: number;
  readonly signal: AbortSignal;
}

/** The range of a list, cut to the rows after the last shown one. */
function onPage(range: KeyRange, { after, reverse, limit, signal }: Page): ScanOptions {
  if (after === undefined) return { ...range, reverse, limit, signal };
  if (reverse) return { ...range, lt: after, reverse, limit, signal };
  const { gte: _, ...rest } = range;
  return { ...rest, gt: after, limit, signal };
}

type CityTransaction = Transaction<Key, Stored>;

/** Writes a record and its index keys. */
function write(tx: CityTransaction, city: City): void {
  const summary = summaryOf(city);
  tx.set(recordKey(city.id), city);
  for (const key of indexKeys(city)) tx.set(key, summary);
}

/** Changes the counts of countries; returns the new ones. */
async function count(tx: CityTransaction, changes: Iterable<readonly [string, number]>): Promise<[string, number][]> {
  const countries = [...changes];
  const before = await tx.getMany(countries.map(([country]) => ['count', country]));
  return countries.map(([country, change], i) => {
    const after = Number(before[i] ?? 0) + change;
    tx.set(['count', country], after);
    return [country, after];
  });
}

/** An element of a tuple key. */
function part(key: Key, index: number): Key | undefined {
  return Array.isArray(key) ? (key as readonly Key[])[index] : undefined;
}
