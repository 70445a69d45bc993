/**
 * The reads of a collection, with any kind of access.
 *
 * Invariant: everything that a walk has open, a scan and maybe a snapshot, is closed when the walk ends or its caller leaves it.
 */

import { invalid } from '../errors.ts';
import { several } from '../options.ts';
import { allOf } from '../runtime/all-of.ts';
import type { Key, StoreIterator, WaitOptions } from '../types.ts';
import { type Access, readMany, type Source } from './access.ts';
import { type DefinedIndex, type Document, entryPlace, type Layout } from './definition.ts';
import { countsOf, openPage } from './distinct.ts';
import { compareKeys, textOf } from './key.ts';
import type { Found } from './types.ts';
import { firstIn, type LooseWhere, type PlaceRange, rangeAfter, rangeOf, VALUES, whereOf } from './where.ts';

/** Documents fetched at once: few for the first ones, then more. */
const PAGE_MIN = 32;
const PAGE_MAX = 128;

/** A query: what to find, and in which index. Without an index it goes by the keys of documents. */
interface Query {
  readonly index: DefinedIndex | undefined;
  readonly where: LooseWhere;
  readonly range: PlaceRange;
  /** Whether a document may have several entries in the range. */
  readonly isRepeating: boolean;
  /** If it is repeating: only documents that a walk of the range comes to after this place. */
  readonly after?: Key | undefined;
}

/** Reads of a collection. */
export class Reader {
  protected readonly layout: Layout;
  readonly #access: Access;

  constructor(layout: Layout, access: Access) {
    this.layout = layout;
    this.#access = access;
  }

  async get(key: Key, options?: WaitOptions): Promise<unknown> {
    const place = this.layout.place(key);
    return this.#access.plain(async () => this.#access.view.get(place, options), options?.signal);
  }

  async getMany(keys: Iterable<Key>, options?: WaitOptions): Promise<unknown[]> {
    const places = Array.from(several(keys), (key) => this.layout.place(key));
    return this.#access.plain(async () => this.#access.view.getMany(places, options), options?.signal);
  }

  async has(key: Key, options?: WaitOptions): Promise<boolean> {
    const place = this.layout.place(key);
    return this.#access.plain(async () => this.#access.view.has(place, options), options?.signal);
  }

  find(target?: unknown, where?: unknown): Found<unknown> {
    const query = this.#query(target, where);
    return new Finding(() => (query.index === undefined ? this.#stored(query) : this.#indexed(query, query.index)));
  }

  async first(target?: unknown, where?: unknown): Promise<unknown> {
    const query = this.#query(target, where);
    const limited = { ...query, where: { ...query.where, limit: Math.min(1, query.where.limit ?? 1) } };
    const found = query.index === undefined ? this.#stored(limited) : this.#indexed(limited, query.index);
    for await (const document of found) return document;
    return undefined;
  }

  keys(target?: unknown, where?: unknown): Found<unknown> {
    const query = this.#query(target, where);
    return new Finding(() => this.#keys(query));
  }

  async count(target?: unknown, where?: unknown): Promise<number> {
    const query = this.#query(target, where);
    const { index, range, isRepeating } = query;
    const { signal } = query.where;
    const count = async (): Promise<number> => this.#access.view.count({ ...range, signal });
    if (index === undefined) return this.#access.plain(count, signal);
    if (!isRepeating) return this.#access.indexed(count, signal);
    let distinct = 0;
    for await (const _ of this.#keys({ ...query, where: { ...query.where, limit: undefined } })) distinct++;
    return distinct;
  }

  distinct(name: string, where?: unknown): Found<unknown> {
    return this.#counted(name, where, false, ([value]) => value);
  }

  countBy(name: string, where?: unknown): Found<unknown> {
    return this.#counted(name, where, true, (counted) => counted);
  }

  /** The values of an index, and how many documents have each if `isCounting`. */
  #counted(name: string, given: unknown, isCounting: boolean, result: (of: [Key, number]) => unknown): Found<unknown> {
    const index = this.layout.index(name);
    const where = whereOf(given, VALUES);
    const access = this.#access;
    return new Finding(async function* () {
      const opened = await access.walk((view) => openPage(view, index, where), where.signal);
      try {
        for await (const one of countsOf(opened, index, where, isCounting)) {
          where.signal?.throwIfAborted();
          yield result(one);
        }
      } finally {
        opened.close();
      }
    });
  }

  #query(target: unknown, where: unknown): Query {
    const index = typeof target === 'string' ? this.layout.index(target) : undefined;
    const lookedFor = whereOf(index === undefined ? target : where);
    const { after, reverse } = lookedFor;
    const range = rangeOf(index?.base ?? this.layout.documents, lookedFor);
    const isRepeating = index?.isMulti === true && lookedFor.eq === undefined;
    const query = { index, where: lookedFor, range, isRepeating };
    if (after === undefined) return query;
    const place = firstIn(range, this.#placesOf(after as Document, index, lookedFor.eq), reverse);
    if (place === undefined) throw invalid(`after has no value in the index '${index?.name}'.`);
    return isRepeating ? { ...query, after: place } : { ...query, range: rangeAfter(range, place, reverse) };
  }

  /** The store keys at which a query finds a document. */
  #placesOf(document: Document, index: DefinedIndex | undefined, eq: Key | undefined): Key[] {
    const key = this.layout.keyOf(document);
    if (index === undefined) return [this.layout.place(key)];
    if (eq !== undefined) return [entryPlace(index, eq, key)];
    return Array.from(this.layout.entriesOf(document, key, [index]).values(), (entry) => entry.key);
  }

  /** Documents by their keys: one scan. */
  async *#stored({ range, where }: Query): AsyncGenerator<unknown, void, undefined> {
    const { reverse, limit, signal } = where;
    const read = async () => this.#access.view.values({ ...range, reverse, limit, signal });
    yield* await this.#access.plain(read, signal);
  }

  /** Documents by an index: reads its entries and, page by page, the documents that they name. */
  async *#indexed(query: Query, index: DefinedIndex): AsyncGenerator<unknown, void, undefined> {
    const { signal } = query.where;
    const { scan, view, close } = await this.#access.walk((of) => scanOf(of, query, index, this.layout), signal);
    const keys = keysOf(scan, query, index);
    try {
      yield* documentsOf(view, keys, this.layout, signal);
    } finally {
      void keys.return();
      close();
    }
  }

  async *#keys(query: Query): AsyncGenerator<Key, void, undefined> {
    const { index, range, where } = query;
    const { reverse, limit, signal } = where;
    if (index === undefined) {
      const read = async () => this.#access.view.keys({ ...range, reverse, limit, signal });
      const places = await this.#access.plain(read, signal);
      for await (const place of places) yield keyIn(place);
    } else {
      const opened = async (): Promise<StoreIterator<unknown>> => scanOf(this.#access.view, query, index, this.layout);
      const scan = await this.#access.indexed(opened, signal, (one) => void one.return?.());
      yield* keysOf(scan, query, index);
    }
  }
}

/** Opens a scan of an index immediately, in the turn of the call. */
function scanOf(
  view: Source,
  { range, where, isRepeating }: Query,
  index: DefinedIndex,
  { own }: Layout,
): StoreIterator<unknown> {
  const { reverse, signal } = where;
  const options = { ...range, reverse, signal, limit: isRepeating ? undefined : where.limit };
  return index.isUnique ? view.at(own).entries(options) : view.keys(options);
}

/** The keys of the documents that entries name, each once. */
async function* keysOf(
  scan: StoreIterator<unknown>,
  { where, isRepeating, after }: Query,
  index: DefinedIndex,
): AsyncGenerator<Key, void, undefined> {
  const seen = new Set<string>();
  let left = where.limit ?? Number.POSITIVE_INFINITY;
  let isBefore = after !== undefined;
  for await (const item of scan) {
    if (left === 0) return;
    const [place, key] = index.isUnique ? (item as [Key, Key]) : [item as Key, keyIn(item as Key)];
    if (isRepeating) {
      const { size } = seen;
      if (seen.add(textOf(key)).size === size) continue;
      isBefore &&= compareKeys(place, after as Key) * (where.reverse ? -1 : 1) <= 0;
      if (isBefore) continue;
    }
    left--;
    yield key;
  }
}

/** The documents of keys. The next page is fetched while the caller consumes the current one. */
async function* documentsOf(
  view: Source,
  keys: AsyncIterator<Key, void>,
  layout: Layout,
  signal: AbortSignal | undefined,
): AsyncGenerator<unknown, void, undefined> {
  let size = PAGE_MIN;
  const fetchPage = async (): Promise<unknown[]> => {
    const places: Key[] = [];
    for (let next = await keys.next(); next.done !== true; next = await keys.next()) {
      places.push(layout.place(next.value));
      if (places.length === size) break;
    }
    size = Math.min(2 * size, PAGE_MAX);
    return places.length === 0 ? places : readMany(view, places, signal);
  };
  for (let page = await fetchPage(); page.length > 0; ) {
    const next = fetchPage();
    // A caller that gets to this page gets the error.
    next.catch(() => undefined);
    for (const document of page) {
      signal?.throwIfAborted();
      // Undefined: a transaction has deleted the document since.
      if (document !== undefined) yield document as Document;
    }
    page = await next;
  }
}

/** The key of the document: the last part of the store key of the document or of its entry. */
function keyIn(place: Key): Key {
  return (place as readonly Key[]).at(-1) as Key;
}

/** A query that runs once for each walk. */
class Finding<T> implements Found<T> {
  readonly #walk: () => AsyncGenerator<T, void, undefined>;

  constructor(walk: () => AsyncGenerator<T, void, undefined>) {
    this.#walk = walk;
  }

  [Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    return this.#walk();
  }

  toArray(): Promise<T[]> {
    return allOf(this);
  }
}
