/**
 * Compares the documents of a collection with the entries of its indexes.
 *
 * Invariant: documents and entries are read at one read point, at which the indexes are complete. If the indexes cannot be built, only
 * the documents are compared with each other. Besides the differences, memory contains one page of each; the unique values are in memory
 * only if the indexes cannot be built.
 */

import { hasCode } from '../errors.ts';
import { checkOptions } from '../options.ts';
import type { ReadView } from '../store/read-view.ts';
import type { Snapshot } from '../store/snapshot.ts';
import type { View } from '../store/view.ts';
import type { Key } from '../types.ts';
import { readMany, SnapshotAccess } from './access.ts';
import type { Document, IndexEntry, Layout } from './definition.ts';
import { isOfDocuments } from './errors.ts';
import { checkKey, textOf } from './key.ts';
import { READY, type Readiness } from './readiness.ts';
import type { CollectionReport, Difference, ReadyOptions } from './types.ts';

type AnySnapshot = Snapshot<Key, unknown>;
type Entries = ReadonlyMap<string, IndexEntry>;

const PAGE = 250;
const DIFFERENCES_MAX = 1000;
/** The most snapshots that one check takes, if imports come in between. */
const ATTEMPTS_MAX = 16;

/** One check. */
export class Checker {
  readonly #db: View<Key, unknown>;
  readonly #readiness: Readiness;
  readonly #layout: Layout;
  readonly #options: ReadyOptions;
  #differences: Difference<Key>[] = [];
  #found = 0;
  #documents = 0;
  #entries = 0;

  constructor(db: View<Key, unknown>, readiness: Readiness, options: ReadyOptions) {
    this.#db = db;
    this.#readiness = readiness;
    this.#layout = readiness.layout;
    this.#options = options;
  }

  async check(): Promise<CollectionReport<Key>> {
    checkOptions(this.#options, READY);
    for (let attempt = 1; ; attempt++) {
      const isBuilt = await this.#isBuilt();
      const snapshot = this.#db.snapshot();
      try {
        if (isBuilt) await new SnapshotAccess(snapshot, this.#readiness).check(this.#options.signal);
        await this.#compare(snapshot, isBuilt);
        break;
      } catch (error) {
        if (!hasCode(error, 'VARVE_RETRY') || attempt === ATTEMPTS_MAX) throw error;
        this.#differences = [];
        this.#found = this.#documents = this.#entries = 0;
      } finally {
        void snapshot.close();
      }
    }
    const differences = this.#differences;
    return {
      ok: this.#found === 0,
      documents: this.#documents,
      entries: this.#entries,
      found: this.#found,
      differences,
    };
  }

  /** Whether the indexes can be built. */
  async #isBuilt(): Promise<boolean> {
    try {
      await this.#readiness.ready(this.#options);
      return true;
    } catch (error) {
      if (isOfDocuments(error)) return false;
      throw error;
    }
  }

  async #compare(snapshot: AnySnapshot, isBuilt: boolean): Promise<void> {
    const { documents, entries, own } = this.#layout;
    const total = await snapshot.count({ prefix: documents });
    const owners = new Map<string, Key>();
    await this.#pages(snapshot, documents, async (page) => {
      const keyed = page.map(([place, document]) => ({ key: lastOf(place), document: document as Document }));
      const expected = keyed.flatMap(({ key, document }) =>
        [...(this.#entriesOf(document, key) ?? [])].map(([text, entry]) => ({ text, entry, key })),
      );
      if (isBuilt) await this.#compareDocuments(snapshot, expected);
      else for (const one of expected) this.#compareOwners(owners, one);
      this.#documents += page.length;
      this.#options.onProgress?.({ done: this.#documents, total });
    });
    if (isBuilt) await this.#pages(snapshot.at(own), entries, (page) => this.#compareEntries(snapshot, page));
  }

  /** Reads a range page by page. */
  async #pages(
    snapshot: ReadView<Key, unknown>,
    prefix: readonly Key[],
    each: (page: [Key, unknown][]) => Promise<void>,
  ): Promise<void> {
    const { signal } = this.#options;
    let page: [Key, unknown][] = [];
    for await (const entry of snapshot.entries({ prefix, signal })) {
      page.push(entry);
      if (page.length < PAGE) continue;
      await each(page);
      page = [];
      signal?.throwIfAborted();
    }
    if (page.length > 0) await each(page);
  }

  /** Looks for the entries that the documents should have. */
  async #compareDocuments(snapshot: AnySnapshot, expected: readonly Expected[]): Promise<void> {
    const stored = await snapshot.at(this.#layout.own).getMany(expected.map(({ entry }) => entry.key));
    for (const [i, { entry, key }] of expected.entries()) {
      const value = stored[i];
      if (isSame(value, entry.value)) continue;
      const other = entry.index.isUnique ? keyIn(value) : undefined;
      const isTaken = other !== undefined && (await this.#hasEntry(snapshot, other, entry));
      this.#note(
        isTaken ? { kind: 'conflict', ...named(entry), key, other } : { kind: 'missing', ...named(entry), key },
      );
    }
  }

  /** Checks whether an earlier document has the same unique value. */
  #compareOwners(owners: Map<string, Key>, { text, entry, key }: Expected): void {
    if (!entry.index.isUnique) return;
    const other = owners.get(text);
    if (other === undefined) owners.set(text, key);
    else this.#note({ kind: 'conflict', ...named(entry), key, other });
  }

  /** Looks for the documents that the entries belong to. */
  async #compareEntries(snapshot: AnySnapshot, page: readonly [Key, unknown][]): Promise<void> {
    const named = page.map(([place, value]) => {
      const [, , index, of, last] = place as readonly [string, string, string, Key, Key?];
      const key = last ?? (value as Key);
      return { place, value, index, of, key, own: this.#placeOf(key) };
    });
    const owners = named.flatMap(({ own }) => (own === undefined ? [] : [own]));
    const documents = (await readMany(snapshot, owners)).values();
    for (const { place, value, index, of, key, own } of named) {
      this.#entries++;
      // Where there is no valid key, there is no document.
      const document = own === undefined ? undefined : documents.next().value;
      const entries = this.#expected(document as Document | undefined, key);
      // The document is refused by an index; this was already reported.
      if (entries === undefined) continue;
      const entry = entries.get(textOf(place));
      if (entry === undefined || !isSame(value, entry.value)) this.#note({ kind: 'stray', index, value: of, key });
    }
  }

  async #hasEntry(snapshot: AnySnapshot, key: Key, { key: place }: IndexEntry): Promise<boolean> {
    const own = this.#placeOf(key);
    const document = (own && (await snapshot.get(own))) as Document | undefined;
    return this.#expected(document, key)?.has(textOf(place)) === true;
  }

  /** The store key of the document that an entry names; undefined if no document can have that key. */
  #placeOf(key: Key): Key | undefined {
    try {
      const place = this.#layout.place(key);
      this.#layout.ensureFits(place, 'It');
      return place;
    } catch {
      return undefined;
    }
  }

  /** The entries of a document. Reports a document that an index refuses, and returns undefined for it. */
  #entriesOf(document: Document, key: Key): Entries | undefined {
    try {
      return this.#layout.entriesOf(document, this.#layout.place(key)[2]);
    } catch (error) {
      this.#note({ kind: 'refused', key, error });
      return undefined;
    }
  }

  #expected(document: Document | undefined, key: Key): Entries | undefined {
    try {
      return this.#layout.entriesOf(document, key);
    } catch {
      return undefined;
    }
  }

  #note(difference: Difference<Key>): void {
    if (this.#found++ < DIFFERENCES_MAX) this.#differences.push(difference);
  }
}

/** An entry that a document should have. */
interface Expected {
  readonly text: string;
  readonly entry: IndexEntry;
  readonly key: Key;
}

const named = ({ index, key }: IndexEntry): { index: string; value: Key } => ({
  index: index.name,
  value: (key as readonly Key[])[3] as Key,
});

/** The value if it is a key; undefined for anything else that an entry has in its place. */
function keyIn(value: unknown): Key | undefined {
  try {
    return checkKey(value, 'It');
  } catch {
    return undefined;
  }
}

/** Whether the value of an entry is the wanted one: true, or a key. */
function isSame(value: unknown, wanted: unknown): boolean {
  const key = keyIn(value);
  return key !== undefined && textOf(key) === textOf(wanted as Key);
}

const lastOf = (place: Key): Key => (place as readonly Key[])[2] as Key;
