// Followers of a store: copies kept up to date by its changes, and live queries. Once writes stop, they must reach the content of the
// store.

import type { Change, ChangeIterator, Key, KeyRange, Live, Store } from 'varve';
import type { CopySpec, LiveSpec, RangeSpec, ScanSpec } from './history.ts';
import { isIn, MARKER } from './keys.ts';
import { itemText, KEY_TEXTS, keysIn, type Moment, rangeOf } from './model.ts';
import { textOf } from './values.ts';

type Db = Store<Key, unknown>;

/** A follower. */
export interface Follower {
  /** The error that ended it, or a permanent fault. */
  readonly failure: string | undefined;
  /** Why it has not reached the content of the store, if it has not. */
  fault(present: Moment): string | undefined;
  /** Continues with a store that was opened again. */
  reopened(db: Db): Promise<void>;
  stop(): void;
}

/** Entries of a range, kept up to date by changes. */
export class Copy implements Follower {
  readonly #spec: RangeSpec;
  readonly #range: KeyRange;
  readonly #how: CopySpec;
  readonly #entries = new Map<string, { readonly key: Key; readonly text: string }>();
  #db: Db;
  #since = 0;
  /** All is being read anew. */
  #isReading = false;
  #changes: ChangeIterator<Key, unknown> | undefined;
  #fault: string | undefined;

  private constructor(db: Db, spec: RangeSpec, how: CopySpec) {
    this.#db = db;
    this.#spec = spec;
    this.#range = rangeOf(spec);
    this.#how = how;
  }

  /** From the first known change on, or from the call on. */
  static async of(db: Db, spec: RangeSpec, how: CopySpec): Promise<Copy> {
    const copy = new Copy(db, spec, how);
    if (how.by === 'changes' && how.fromStart) copy.#follow(copy.#changesSince(0));
    else await copy.#begin();
    return copy;
  }

  get failure(): string | undefined {
    return this.#fault;
  }

  fault(present: Moment): string | undefined {
    if (this.#fault !== undefined) return this.#fault;
    for (const key of keysIn(this.#spec)) {
      const expected = present.live(key)?.text;
      const found = this.#entries.get(KEY_TEXTS[key] as string)?.text;
      // The expiry of an entry is not a change.
      if (expected === undefined ? found === undefined || present.isOver(key) : this.#isSame(found, expected)) continue;
      return `a copy kept by changes has ${found} of ${KEY_TEXTS[key]}, not ${expected}, at ${this.#since}`;
    }
    return undefined;
  }

  async reopened(db: Db): Promise<void> {
    this.#db = db;
    if (this.#how.by === 'watch') return this.#begin();
    const changes = this.#changesSince(this.#since);
    // The close interrupted the reading.
    if (this.#isReading) await this.#readAll();
    this.#follow(changes);
  }

  stop(): void {
    const changes = this.#changes;
    this.#changes = undefined;
    void changes?.return?.();
  }

  #isSame(found: string | undefined, expected: string): boolean {
    return found !== undefined && (this.#how.keysOnly || found === expected);
  }

  #changesSince(since: number | undefined): ChangeIterator<Key, unknown> {
    const { keysOnly } = this.#how;
    return this.#db.changes({ ...this.#range, keysOnly, ...(since === undefined ? {} : { since }) });
  }

  /** From the call on. */
  async #begin(): Promise<void> {
    const { by, keysOnly } = this.#how;
    // Calls of one turn read at one sequence.
    const changes = by === 'watch' ? this.#db.watch(this.#range, { keysOnly }) : this.#changesSince(undefined);
    await this.#readAll();
    this.#follow(changes);
  }

  #follow(changes: ChangeIterator<Key, unknown>): void {
    this.#changes = changes;
    this.#run(changes).catch((error) => {
      if (this.#changes === changes && error?.code !== 'VARVE_CLOSED') this.#fault = `changes failed: ${error}`;
    });
  }

  async #run(changes: ChangeIterator<Key, unknown>): Promise<void> {
    for await (const change of changes) {
      if (this.#changes !== changes) return;
      if (change.sequence <= this.#since) throw new Error(`${change.sequence} follows ${this.#since}`);
      this.#since = change.sequence;
      if (change.type === 'gap') await this.#readAll();
      else this.#apply(change);
    }
  }

  #apply(change: Exclude<Change<Key, unknown>, { type: 'gap' }>): void {
    if (change.type === 'deleteRange') {
      for (const [text, { key }] of this.#entries) if (isIn(key, change.range)) this.#entries.delete(text);
      return;
    }
    const { key } = change;
    if (!isIn(key, this.#range)) throw new Error(`${textOf(key)} is none that is followed`);
    if (change.type === 'delete') this.#entries.delete(textOf(key));
    else this.#entries.set(textOf(key), { key, text: textOf(change.value) });
  }

  async #readAll(): Promise<void> {
    // First: a store that is closing refuses to read (seed 549284428 in Chromium).
    this.#isReading = true;
    const entries = this.#db.entries(this.#range);
    this.#entries.clear();
    for await (const [key, value] of entries) this.#entries.set(textOf(key), { key, text: textOf(value) });
    this.#isReading = false;
  }
}

/** A live query, subscribed to. */
export class Watched implements Follower {
  readonly #as: LiveSpec['as'];
  readonly #initial: unknown;
  #scan: ScanSpec;
  #live!: Live<unknown, readonly unknown[]>;
  #stop: () => void = () => undefined;
  #text = 'nothing yet';
  #fault: string | undefined;

  constructor(db: Db, scan: ScanSpec, { as, hasInitial }: LiveSpec) {
    this.#scan = withMarker(scan);
    this.#as = as;
    this.#initial = hasInitial ? (as === 'range' ? [] : -1) : undefined;
    this.#subscribe(db);
  }

  get failure(): string | undefined {
    return this.#fault;
  }

  fault(present: Moment): string | undefined {
    if (this.#fault !== undefined) return this.#fault;
    const { range } = this.#scan;
    const expected = this.#as === 'range' ? present.scan(this.#scan).join('; ') : String(present.count(range));
    return this.#text === expected ? undefined : `a live ${this.#as} has ${this.#text}, not ${expected}`;
  }

  async reopened(db: Db): Promise<void> {
    this.#subscribe(db);
  }

  /** Replaces this query by another one; the last value stays until the other query has a value. */
  requery(scan: ScanSpec): void {
    const last = this.#live.value;
    this.#scan = withMarker({ ...scan, brings: this.#scan.brings });
    this.#live.update(...this.#query());
    if (this.#live.value !== last) this.#fault = `a live ${this.#as} lost its value to another query`;
  }

  stop(): void {
    this.#stop();
  }

  #subscribe(db: Db): void {
    this.#text = 'nothing yet';
    const [query, range] = this.#query();
    const options = {
      ...(range as object | undefined),
      ...(this.#initial === undefined ? {} : { initial: this.#initial }),
    };
    // The compiler knows each kind of query separately, but only the history decides which kind it is.
    const live = (db.live as (...all: unknown[]) => Live<unknown, readonly unknown[]>).call(db, query, options);
    this.#live = live;
    if (live.value !== this.#initial || live.getServerSnapshot() !== this.#initial) {
      this.#fault = `a live ${this.#as} begins with ${live.value}`;
    }
    const failed = (error: unknown): void => {
      if ((error as { code?: unknown })?.code !== 'VARVE_CLOSED') this.#fault = `a live ${this.#as} failed: ${error}`;
    };
    this.#stop = live.subscribe((value) => {
      if (live !== this.#live) return;
      if (value !== undefined) this.#text = this.#shown(value);
      else if (this.#initial !== undefined) this.#fault = `a live ${this.#as} with a first value has none`;
    }, failed);
  }

  /** The arguments of the query: a range, or a function and the range that it depends on. */
  #query(): readonly unknown[] {
    const { brings, range, reverse, limit } = this.#scan;
    const whole = rangeOf(range);
    switch (this.#as) {
      case 'function':
        return [(view: Pick<Db, 'count'>) => view.count(whole), whole];
      case 'count':
        return [{ ...whole, as: 'count' }];
      case 'range':
        return [{ ...whole, reverse, limit, as: brings }];
    }
  }

  #shown(value: unknown): string {
    if (this.#as !== 'range') return String(value);
    return (value as unknown[]).map((item) => this.#item(item)).join('; ');
  }

  #item(item: unknown): string {
    const { brings } = this.#scan;
    if (brings !== 'entries') return textOf(item);
    const [key, value] = item as [Key, unknown];
    return itemText(brings, textOf(key), textOf(value));
  }
}

/** The expiry of an entry is reported with the next change. The marker is a change, so a query must see it. */
function withMarker(scan: ScanSpec): ScanSpec {
  return isIn(MARKER, rangeOf(scan.range)) ? scan : { ...scan, range: { prefix: 0 } };
}
