/**
 * Whether the indexes that the store has are those of the definition; and making them so.
 *
 * What the store keeps is a generation, the kinds of all indexes, and which of them are still being built. Code that defines them
 * otherwise begins the next generation in one transaction: it notes that the former one is over, drops what is no longer an
 * index, and lists what is missing. Then the documents are gone through page by page, each page a transaction that also says
 * how far it is: tabs that do that at once take turns, and one that dies leaves the rest to the next.
 *
 * Invariant: a writer of a generation that is over is refused, because each of its batches depends on that note being absent. Nobody
 * of the new generation writes before it is built. So a page that is built stays true.
 */

import { VarveError } from '../errors.ts';
import type { Store } from '../store/store.ts';
import type { Transaction } from '../store/transaction.ts';
import type { Key, ScanOptions } from '../types.ts';
import type { DefinedIndex, Document, Layout } from './definition.ts';
import { notUnique, outdated } from './errors.ts';
import { textOf } from './key.ts';
import type { ReadyOptions } from './types.ts';

/** What the store keeps of a collection. */
export interface Kept {
  readonly generation: number;
  /** The version that built all of its indexes. */
  readonly version: number;
  /** The kinds of the indexes by their names. */
  readonly indexes: Readonly<Record<string, string>>;
  /** Indexes that lack entries of documents behind `after`. */
  readonly building: readonly string[];
  readonly after?: Key | undefined;
  /** Documents gone through, and how many there were. */
  readonly done: number;
  readonly total: number;
}

type Tx = Transaction<Key, unknown>;

/** Documents gone through in one transaction. */
const PAGE = 250;
/** Others that build take turns, so one may lose several times in a row. */
const RETRIES = 1000;
const NEW: Kept = { generation: 0, version: 0, indexes: {}, building: [], done: 0, total: 0 };

/** The indexes of one collection, as one client of the store has them. */
export class Readiness {
  readonly layout: Layout;
  readonly #db: Store<Key, unknown>;
  #generation = 0;
  #pending: Promise<void> | undefined;
  readonly #listeners = new Set<NonNullable<ReadyOptions['onProgress']>>();

  constructor(db: Store<Key, unknown>, layout: Layout) {
    this.#db = db;
    this.layout = layout;
  }

  /** The generation that is ready; 0 before. */
  get generation(): number {
    return this.#generation;
  }

  /** Runs what needs the indexes: at once where they are ready, so that calls of one turn stay in their order. */
  run<T>(run: () => Promise<T>): Promise<T> {
    return this.#generation > 0 ? run() : this.ready().then(run);
  }

  /** Resolves when the indexes are as they are defined; what failed is tried again by the next call. */
  async ready({ onProgress }: ReadyOptions = {}): Promise<void> {
    if (this.#generation > 0) return;
    if (onProgress !== undefined) this.#listeners.add(onProgress);
    this.#pending ??= this.#prepare().finally(() => {
      this.#pending = undefined;
    });
    try {
      await this.#pending;
    } finally {
      if (onProgress !== undefined) this.#listeners.delete(onProgress);
    }
  }

  async #prepare(): Promise<void> {
    const { definition } = this.layout;
    let kept = (await this.#db.get(definition)) as Kept | undefined;
    if (kept === undefined || !this.#isDefined(kept)) {
      // Not counted in the transaction, which every write of a document would then conflict with.
      const total = await this.#db.count({ prefix: this.layout.documents });
      kept = await this.#in((tx) => this.#begin(tx, total));
    }
    while (kept.building.length > 0) {
      const { generation } = kept;
      kept = await this.#in((tx) => this.#buildPage(tx, generation));
      for (const listener of this.#listeners) listener({ done: kept.done, total: Math.max(kept.total, kept.done) });
    }
    this.#generation = kept.generation;
  }

  #in(run: (tx: Tx) => Promise<Kept>): Promise<Kept> {
    return this.#db.transaction(run, { retries: RETRIES });
  }

  /** Whether the store has this definition, built or being built. */
  #isDefined({ version, indexes, building }: Kept): boolean {
    const { layout } = this;
    const names = Object.keys(indexes);
    const isSame = names.length === layout.indexes.size && names.every((name) => indexes[name] === this.#kind(name));
    return isSame && (version === layout.version || (building.length > 0 && version < layout.version));
  }

  #kind(name: string): string | undefined {
    return this.layout.indexes.get(name)?.kind;
  }

  /** Begins the next generation, unless somebody else has. */
  async #begin(tx: Tx, total: number): Promise<Kept> {
    const { layout } = this;
    const stored = (await tx.get(layout.definition)) as Kept | undefined;
    const kept = stored ?? (await this.#undefined(tx));
    if (kept.version > layout.version) {
      throw new VarveError(
        'VARVE_VERSION',
        `The collection '${layout.name}' has version ${kept.version}, and this code defines version ${layout.version}. Reload to get the newer code.`,
      );
    }
    if (stored !== undefined && this.#isDefined(stored)) return stored;
    const isSame = (name: string): boolean => kept.indexes[name] === this.#kind(name) && !kept.building.includes(name);
    for (const name of Object.keys(kept.indexes)) {
      if (!isSame(name)) tx.deleteRange({ prefix: [...layout.entries, name] });
    }
    const missing = [...layout.indexes.keys()].filter((name) => !isSame(name));
    const isEmpty = total === 0 && (await tx.count({ prefix: layout.documents })) === 0;
    const building = isEmpty ? [] : missing;
    const generation = kept.generation + 1;
    const version = building.length === 0 ? layout.version : kept.version;
    const indexes = Object.fromEntries([...layout.indexes].map(([name, { kind }]) => [name, kind]));
    if (kept.generation > 0) tx.set(layout.retired(kept.generation), true);
    const next: Kept = { generation, version, indexes, building, done: 0, total };
    tx.set(layout.definition, next);
    return next;
  }

  /** What to begin with where nothing says how the indexes are: with none of their entries, and behind every generation that there was. */
  async #undefined(tx: Tx): Promise<Kept> {
    const { name, entries } = this.layout;
    const [first] = await firstKey(tx, { prefix: [name] });
    if (first === undefined) return NEW;
    tx.deleteRange({ prefix: entries });
    const [, , over = 0] = await firstKey(tx, { prefix: [name, 'old'], reverse: true });
    return { ...NEW, generation: (over as number) + 1 };
  }

  /** Builds the missing entries of the next documents. */
  async #buildPage(tx: Tx, generation: number): Promise<Kept> {
    const { layout } = this;
    const kept = (await tx.get(layout.definition)) as Kept | undefined;
    if (kept === undefined || kept.generation !== generation) throw outdated(layout.name);
    if (kept.building.length === 0) return kept;
    const missing = kept.building.map((name) => layout.index(name));
    const from = kept.after === undefined ? {} : { gt: kept.after };
    let after: Key | undefined;
    let { done } = kept;
    for await (const [place, document] of tx.entries({ prefix: layout.documents, ...from, limit: PAGE })) {
      await this.#addEntries(tx, (place as readonly Key[])[2] as Key, document as Document, missing);
      after = place;
      done++;
    }
    const next: Kept =
      after === undefined ? { ...kept, version: layout.version, building: [], after, done } : { ...kept, after, done };
    tx.set(layout.definition, next);
    return next;
  }

  async #addEntries(tx: Tx, key: Key, document: Document, missing: readonly DefinedIndex[]): Promise<void> {
    for (const entry of this.layout.entriesOf(document, key, missing).values()) {
      if (entry.index.isUnique) {
        const other = (await tx.get(entry.key)) as Key | undefined;
        if (other !== undefined && textOf(other) !== textOf(key)) throw notUnique(entry.key, other, key);
      }
      tx.set(entry.key, entry.value);
    }
  }
}

/** The first key of a range, in its parts; none where there is none. */
async function firstKey(tx: Tx, range: ScanOptions): Promise<readonly Key[]> {
  for await (const key of tx.keys({ ...range, limit: 1 })) return key as readonly Key[];
  return [];
}
