/**
 * Checks whether the indexes in the store match the definition, and builds them if they do not.
 *
 * The store keeps a generation, the kinds of all indexes, and the list of those that are still being built. It also keeps, among its
 * derived keys (transaction/derived.ts), that the entries of this generation follow from the documents. Code with a different definition
 * begins the next generation in one transaction. The transaction notes that the former one is over, deletes former indexes, and lists
 * the missing ones. An import or an upgrade of documents writes the same note, so the next client begins a generation of the same
 * definition with all indexes missing. Then the documents are read page by page. Each page is a transaction that also records the
 * progress. Tabs that do this at the same time take turns, and if a tab ends, the next one does the rest.
 *
 * Invariant: a writer of a generation that is over is refused, because each of its batches depends on the absence of that note. No
 * client of the new generation writes before it is built. So a page that is built stays correct.
 */

import { newer } from '../codec/newer.ts';
import { VarveError } from '../errors.ts';
import { checkOptions, type Known } from '../options.ts';
import { untilAborted } from '../runtime/until-aborted.ts';
import type { Transaction } from '../store/transaction.ts';
import type { View } from '../store/view.ts';
import type { Key } from '../types.ts';
import type { DefinedIndex, Document, Layout } from './definition.ts';
import { isOfDocuments, notUnique, outdated } from './errors.ts';
import { textOf } from './key.ts';
import type { ReadyOptions } from './types.ts';

/** The state of a collection in the store. */
export interface Kept {
  /** 1. Code that knows only lower ones refuses the collection. */
  readonly format: number;
  readonly generation: number;
  /** The version that built all of its indexes. */
  readonly version: number;
  /** The kinds of the indexes by their names. */
  readonly indexes: Readonly<Record<string, string>>;
  /** Indexes that do not have the entries of documents after `after` yet. */
  readonly building: readonly string[];
  readonly after?: Key | undefined;
  /** Documents read so far, and how many there were at the start. */
  readonly done: number;
  readonly total: number;
}

/** Options of `ready`, `reindex` and `check`. */
export const READY: Known<ReadyOptions> = { onProgress: 1, signal: 1 };

type Tx = Transaction<Key, unknown>;

/** Documents read in one transaction. */
const PAGE = 250;
/** Clients that build at the same time take turns, so one may lose several times in a row. */
const RETRIES = 1000;
/** The format of `Kept`, and of what it describes. */
const FORMAT = 1;
const NEW: Kept = { format: FORMAT, generation: 0, version: 0, indexes: {}, building: [], done: 0, total: 0 };

/** The state of the indexes of one collection, in one client of the store. */
export class Readiness {
  readonly layout: Layout;
  readonly #db: View<Key, unknown>;
  #generation = 0;
  #pending: Promise<void> | undefined;
  /** Whether this client has begun its definition. If so, a different definition comes from other code. */
  #hasBegun = false;
  /** Callers that wait until the indexes are ready. */
  readonly #waiting = new Set<ReadyOptions>();

  constructor(db: View<Key, unknown>, layout: Layout) {
    this.#db = db;
    this.layout = layout;
  }

  /** The last generation that was ready; 0 before the first. */
  get generation(): number {
    return this.#generation;
  }

  /** Runs a call that needs the indexes. If they are ready it runs immediately, so calls of one turn stay in their order. */
  run<T>(run: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    return this.#generation > 0 ? run() : this.#wait({ signal }).then(run);
  }

  /** Resolves when the indexes match their definition. After a failure, the next call tries again. */
  async ready(options: ReadyOptions = {}): Promise<void> {
    checkOptions(options, READY);
    if (this.#generation === 0 || (await this.isOver(this.#generation, options.signal))) await this.#wait(options);
  }

  /** Builds all indexes anew. */
  async reindex(options: ReadyOptions): Promise<void> {
    checkOptions(options, READY);
    while (this.#pending !== undefined) await untilAborted(this.#pending.catch(ignore), options.signal);
    await this.#wait(options, true);
  }

  /** Whether a generation is over. */
  isOver(generation: number, signal?: AbortSignal): Promise<boolean> {
    return this.#db.has(this.layout.retired(generation), { signal });
  }

  /** Resolves when the indexes are ready again after a generation that was found to be over. */
  async renew(generation: number, signal?: AbortSignal): Promise<void> {
    if (this.#generation === generation) await this.#wait({ signal });
  }

  /** Waits for the running preparation, or starts a new one. A preparation ends when nobody waits for it any more. */
  async #wait(options: ReadyOptions, isAnew = false): Promise<void> {
    options.signal?.throwIfAborted();
    this.#waiting.add(options);
    if (this.#pending === undefined) {
      const pending = this.#prepare(isAnew).finally(() => {
        if (this.#pending === pending) this.#pending = undefined;
      });
      pending.catch(ignore);
      this.#pending = pending;
    }
    try {
      // A wait with a signal takes a step more. All waits have one, so the calls behind them go on in their order.
      await untilAborted(this.#pending, options.signal ?? new AbortController().signal);
    } finally {
      this.#waiting.delete(options);
    }
  }

  async #prepare(isAnew: boolean): Promise<void> {
    let kept = await this.#in((tx) => this.#begin(tx, isAnew));
    this.#hasBegun = true;
    while (kept.building.length > 0) {
      if (this.#waiting.size === 0) {
        this.#pending = undefined;
        return;
      }
      const { generation } = kept;
      try {
        kept = await this.#in((tx) => this.#buildPage(tx, generation));
      } catch (error) {
        // A user who repairs a document writes it without its entries, so the entries built until now would no longer be reliable.
        if (isOfDocuments(error)) await this.#in((tx) => this.#restart(tx, generation));
        throw error;
      }
      const progress = { done: kept.done, total: Math.max(kept.total, kept.done) };
      for (const { onProgress } of this.#waiting) onProgress?.(progress);
    }
    this.#generation = kept.generation;
  }

  #in(run: (tx: Tx) => Promise<Kept>): Promise<Kept> {
    return this.#db.transaction((tx) => run(tx.at(this.layout.own)), { retries: RETRIES });
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

  /** Returns the state in the store. Begins the next generation unless that state has this definition and is not over. */
  async #begin(tx: Tx, isAnew: boolean): Promise<Kept> {
    const { layout } = this;
    const stored = (await tx.get(layout.definition)) as Kept | undefined;
    if (stored !== undefined && stored.format > FORMAT) throw newer(`the collection '${layout.name}'`);
    if (stored !== undefined && stored.version > layout.version) {
      throw new VarveError(
        'VARVE_VERSION',
        `The collection '${layout.name}' has version ${stored.version}, and this code defines version ${layout.version}. Reload to get the newer code.`,
      );
    }
    if (stored === undefined) return this.#beginAfter(tx, NEW, false);
    const isDefined = this.#isDefined(stored);
    if (!isDefined && this.#hasBegun) throw outdated(layout.name);
    const { generation } = stored;
    // A repair may bring back a generation that is over. This is not read in the transaction: every write would then conflict with it.
    const [isImported, isOver] = await Promise.all([tx.has(layout.imported(generation)), this.isOver(generation)]);
    const isWhole = !isAnew && !isImported && !isOver;
    return isWhole && isDefined ? stored : this.#beginAfter(tx, stored, isWhole);
  }

  /** Begins the generation after `kept`, and keeps those of its indexes that are complete. */
  async #beginAfter(tx: Tx, kept: Kept, isWhole: boolean): Promise<Kept> {
    const { layout } = this;
    const isSame = (name: string): boolean =>
      isWhole && kept.indexes[name] === this.#kind(name) && !kept.building.includes(name);
    const gone = Object.keys(kept.indexes).filter((name) => !isSame(name));
    const ranges = isWhole ? gone.map((name) => [...layout.entries, name]) : [layout.entries];
    for (const prefix of ranges) if (await hasKeys(tx, prefix)) tx.deleteRange({ prefix });
    const missing = [...layout.indexes.keys()].filter((name) => !isSame(name));
    // Not counted in the transaction: every write of a document would then conflict with it.
    const total = await this.#db.count({ prefix: layout.documents });
    const isEmpty = total === 0 && (await tx.count({ prefix: layout.documents })) === 0;
    const building = isEmpty ? [] : missing;
    let generation = kept.generation + 1;
    // Needed after a repair that lost the stored state.
    while (await tx.has(layout.retired(generation))) generation++;
    const version = building.length === 0 ? layout.version : kept.version;
    const indexes = Object.fromEntries([...layout.indexes].map(([name, { kind }]) => [name, kind]));
    if (kept.generation > 0) tx.set(layout.retired(kept.generation), true);
    const marks = [layout.retired(generation), layout.imported(generation)];
    await tx.derivations.state(layout.documents, { marks, derived: [layout.entries] });
    const next: Kept = { format: FORMAT, generation, version, indexes, building, done: 0, total };
    tx.set(layout.definition, next);
    return next;
  }

  /** Builds the missing entries of the next documents. */
  async #buildPage(tx: Tx, generation: number): Promise<Kept> {
    const { layout } = this;
    const kept = (await tx.get(layout.definition)) as Kept | undefined;
    // Others have begun another generation, or an import or an upgrade wrote documents: begin again.
    if (kept?.generation !== generation || (await tx.has(layout.imported(generation)))) return this.#begin(tx, false);
    if (kept.building.length === 0) return kept;
    const missing = kept.building.map((name) => layout.index(name));
    const from = kept.after === undefined ? {} : { gt: kept.after };
    let after: Key | undefined;
    let { done } = kept;
    const documents = tx.at(this.#db).entries({ prefix: layout.documents, ...from, limit: PAGE });
    for await (const [place, document] of documents) {
      await this.#addEntries(tx, (place as readonly Key[])[2] as Key, document as Document, missing);
      after = place;
      done++;
    }
    const next: Kept =
      after === undefined ? { ...kept, version: layout.version, building: [], after, done } : { ...kept, after, done };
    tx.set(layout.definition, next);
    return next;
  }

  /** Makes a generation that is being built start again with the first document. */
  async #restart(tx: Tx, generation: number): Promise<Kept> {
    const { layout } = this;
    const kept = (await tx.get(layout.definition)) as Kept | undefined;
    if (kept?.generation !== generation) return NEW;
    for (const name of kept.building) tx.deleteRange({ prefix: [...layout.entries, name] });
    const next: Kept = { ...kept, after: undefined, done: 0 };
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

/** Whether a range has keys. */
async function hasKeys(tx: Tx, prefix: readonly Key[]): Promise<boolean> {
  for await (const _ of tx.keys({ prefix, limit: 1 })) return true;
  return false;
}

function ignore(): void {}
