/**
 * A definition, checked and ready to be applied: where a document's key comes from, which values each index computes, and under which
 * keys of the store everything is stored:
 *
 *     [name, 'doc', key]                  the document
 *     [name, 'by', index, value, key]     true: the document has this value
 *     [name, 'by', index, value]          the key of the document: in an index that is unique
 *     ff "collection" id                  how the indexes are defined and built (see readiness.ts)
 *     ff "over" id generation             defined anew since, or an import or an upgrade wrote documents; and once more for the latter
 *
 * All of these keys are in the store or view of the collection, except the reserved ones: those are the store's. So the id of a
 * collection in a view contains the prefix of the view.
 *
 * Invariant: an entry follows from the document and the definition alone. So the entries of a stored document are known
 * without looking for them. All values but those of documents have the codec `structured`, so keys in them stay what they are.
 */

import { ReservedKey } from '../codec/reserved-key.ts';
import { isWellFormed } from '../codec/text.ts';
import { structured } from '../codec/values.ts';
import { invalid, VarveError } from '../errors.ts';
import { checkOptions, type Known } from '../options.ts';
import type { View } from '../store/view.ts';
import type { Key } from '../types.ts';
import { checkKey, textOf } from './key.ts';
import type { IndexValue, MultiIndex } from './types.ts';

/** Strings of so many code units fit into a key: prefixes and names are short, too. */
const SHORT_MAX = 1000;

/** Any document. */
export type Document = Readonly<Record<string, unknown>>;

/** An index as it is applied. */
export interface DefinedIndex {
  readonly name: string;
  readonly isUnique: boolean;
  readonly isMulti: boolean;
  /** Differs if the entries differ: it contains the properties, the options and, for a function, the version of the collection. */
  readonly kind: string;
  /** The prefix of its entries. */
  readonly base: readonly Key[];
  /** The index values of a document. */
  readonly values: (document: Document) => Iterable<IndexValue>;
}

/** One entry of an index. */
export interface IndexEntry {
  readonly index: DefinedIndex;
  readonly key: Key;
  readonly value: unknown;
}

/** A definition after its types are checked. */
interface LooseDefinition {
  readonly key: unknown;
  readonly newKey?: (() => Key) | undefined;
  readonly indexes?: Readonly<Record<string, unknown>> | undefined;
  readonly version?: number | undefined;
}

const DEFINITION: Known<LooseDefinition> = { key: 1, newKey: 1, indexes: 1, version: 1 };
const INDEX: Known<MultiIndex<never>> = { of: 1, multi: 1, unique: 1 };

/** A collection's name, keys and indexes. */
export class Layout {
  readonly name: string;
  readonly version: number;
  readonly indexes: ReadonlyMap<string, DefinedIndex>;
  /** The prefix of the documents. */
  readonly documents: readonly Key[];
  /** The prefix of all indexes. */
  readonly entries: readonly Key[];
  /** The key under which the definition is stored. */
  readonly definition: Key;
  /** The store or view as it has all values but those of documents. */
  readonly own: View<Key, unknown>;
  readonly #key: unknown;
  readonly #newKey: (() => Key) | undefined;
  /** The name, and the prefix if there is one, in a text that no other collection of the store has. */
  readonly #id: string;

  /** The layout of a collection in a store or a view. */
  constructor(name: string, definition: LooseDefinition, db: View<Key, unknown>) {
    checkOptions(definition ?? null, DEFINITION);
    const { key, newKey, indexes = {}, version = 1 } = definition;
    if (typeof name !== 'string' || name === '') throw invalid('A collection has a name, a string that is not empty.');
    if (!Number.isSafeInteger(version) || version < 1)
      throw invalid(`version is an integer from 1, not ${String(version)}.`);
    if (typeof key !== 'string' && typeof key !== 'function')
      throw invalid('key is the name of a property, or a function.');
    if (newKey !== undefined && (typeof newKey !== 'function' || typeof key !== 'string'))
      throw invalid('newKey is a function, and key the name of the property that it fills.');
    this.name = name;
    this.version = version;
    this.documents = [name, 'doc'];
    this.entries = [name, 'by'];
    const { prefix } = db.formats.keys;
    this.#id = textOf(prefix.length === 0 ? name : [...prefix, name]);
    this.own = db.at([], { values: structured });
    this.definition = reserved(`collection ${this.#id}`);
    this.#key = key;
    this.#newKey = newKey;
    const define = ([index, spec]: [string, unknown]) => [index, defined(spec, [name, 'by', index], version)] as const;
    this.indexes = new Map(Object.entries(indexes).map(define));
  }

  /** The key of a note that a generation is over. Each batch that writes depends on the absence of this note. */
  retired(generation: number): Key {
    return reserved(`over ${this.#id} ${generation}`);
  }

  /**
   * The key of a note that a generation is over because of an import or an upgrade. Only these write it, so transactions that read it
   * conflict with these alone.
   */
  imported(generation: number): Key {
    return reserved(`over ${this.#id} ${generation} by import`);
  }

  /** The store key of a document. Throws `VARVE_INVALID_KEY`. */
  place(key: Key): readonly [string, string, Key] {
    return [this.name, 'doc', checkKey(key, `The key of a document of '${this.name}'`)];
  }

  /** The key of a document. */
  keyOf(document: Document): Key {
    const key =
      typeof this.#key === 'string' ? document[this.#key] : (this.#key as (of: Document) => unknown)(document);
    return checkKey(key, `The key of a document of '${this.name}'`);
  }

  /** A document with its key: the same document if it has a key, otherwise a copy with a new key. */
  withKey(document: Document): Document {
    const property = this.#key;
    if (this.#newKey === undefined || typeof property !== 'string' || (document[property] ?? undefined) !== undefined)
      return document;
    return { ...document, [property]: this.#newKey() };
  }

  /** The index with this name. Throws `VARVE_INVALID_ARGUMENT` if there is none. */
  index(name: string): DefinedIndex {
    const index = this.indexes.get(name);
    if (index !== undefined) return index;
    const known = [...this.indexes.keys()].map((one) => `'${one}'`).join(', ');
    throw invalid(
      `The collection '${this.name}' has no index '${name}'${known === '' ? '' : `, but ${known}`}. Add it to its definition.`,
    );
  }

  /**
   * The entries of a document with this key, by a text that is the same for the same entry. An index that refuses a document which is
   * stored already has no entries of it: so the document can be replaced and deleted.
   */
  entriesOf(
    document: Document | undefined,
    key: Key,
    indexes: Iterable<DefinedIndex> = this.indexes.values(),
    isStored = false,
  ): Map<string, IndexEntry> {
    const entries = new Map<string, IndexEntry>();
    if (document === undefined) return entries;
    for (const index of indexes) {
      try {
        for (const entry of this.#entriesIn(index, document, key)) entries.set(textOf(entry.key), entry);
      } catch (error) {
        if (!isStored) throw error;
      }
    }
    return entries;
  }

  #entriesIn(index: DefinedIndex, document: Document, key: Key): IndexEntry[] {
    const entries: IndexEntry[] = [];
    for (const value of index.values(document)) {
      if (value === null || value === undefined) continue;
      const what = `The value for the index '${index.name}' of '${this.name}' in the document ${textOf(key)}`;
      const own = checkKey(value, what);
      const place = entryPlace(index, own, key);
      if (!isShort(own) || !isShort(key)) this.ensureFits(place, what);
      entries.push({ index, key: place, value: index.isUnique ? key : true });
    }
    return entries;
  }

  /** Throws `VARVE_INVALID_KEY` for a place whose bytes are too many, or that has a lone surrogate; the message begins with `what`. */
  ensureFits(place: Key, what: string): void {
    try {
      this.own.formats.keys.encode(place);
    } catch (error) {
      throw new VarveError('VARVE_INVALID_KEY', `${what} makes no key: ${(error as Error).message}`, { cause: error });
    }
  }
}

/** Whether a part of a key is sure to fit into one. To try it would encode each entry twice. */
function isShort(part: Key): boolean {
  return (
    typeof part === 'number' ||
    part instanceof Date ||
    (typeof part === 'string' && part.length <= SHORT_MAX && isWellFormed(part))
  );
}

/** The store key of an entry. */
export function entryPlace({ base, isUnique }: DefinedIndex, value: Key, key: Key): readonly Key[] {
  return isUnique ? [...base, value] : [...base, value, key];
}

/** A reserved key, not a user's key. So it survives a `clear` of the store, and a copy does not bring the one of another store. */
function reserved(text: string): Key {
  return new ReservedKey(text) as unknown as Key;
}

function defined(spec: unknown, base: readonly [string, string, string], version: number): DefinedIndex {
  const [collection, , name] = base;
  const isOptions = typeof spec === 'object' && spec !== null && !Array.isArray(spec);
  if (isOptions) checkOptions(spec, INDEX);
  const { of, multi = false, unique = false } = (isOptions ? spec : { of: spec }) as Record<string, unknown>;
  const isProperties = Array.isArray(of) && of.length > 0 && of.every((property) => typeof property === 'string');
  if (typeof multi !== 'boolean' || typeof unique !== 'boolean')
    throw invalid(`multi and unique of the index '${name}' of '${collection}' are true or false.`);
  if (name === '' || (typeof of !== 'string' && typeof of !== 'function' && (!isProperties || multi)))
    throw invalid(
      `The index '${name}' of '${collection}' is of a property, a function or, unless it is multi, several properties.`,
    );
  const one = typeof of === 'string' ? (document: Document) => document[of] : (of as (document: Document) => unknown);
  const values = isProperties ? together(of as string[]) : multi ? listed(one, name) : alone(one);
  const kind = JSON.stringify({ of: typeof of === 'function' ? { version } : of, multi, unique });
  return { name, isUnique: unique, isMulti: multi, kind, base, values };
}

const alone = (one: (document: Document) => unknown) => (document: Document) => [one(document) as IndexValue];

/** One array of several properties, if the document has all of them. */
function together(properties: readonly string[]): DefinedIndex['values'] {
  return (document) => {
    const parts = properties.map((property) => document[property] as IndexValue);
    return parts.some((part) => part === null || part === undefined) ? [] : [parts as Key];
  };
}

function listed(list: (document: Document) => unknown, name: string): DefinedIndex['values'] {
  return (document) => {
    const values = list(document) ?? [];
    // A string is iterable too, but its letters are hardly what the user wants.
    if (typeof values !== 'object' || typeof (values as Iterable<IndexValue>)[Symbol.iterator] !== 'function')
      throw invalid(`The index '${name}' is multi: it takes an array or a Set of values, not a ${typeof values}.`);
    return values as Iterable<IndexValue>;
  };
}
