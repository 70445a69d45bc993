// Who follows a store: copies kept by its changes, and live queries. Once writes cease they must come to what is there.

import type { Change, ChangeIterator, Key, KeyRange, Live, Store } from 'varve';
import type { RangeSpec, ScanSpec } from './history.ts';
import { isIn, MARKER } from './keys.ts';
import { itemText, KEY_TEXTS, keysIn, type Moment, rangeOf } from './model.ts';
import { textOf } from './values.ts';

type Db = Store<Key, unknown>;

/** Somebody who follows. */
export interface Follower {
  /** Why it has not come to what is there, if it has not. */
  fault(present: Moment): string | undefined;
  /** Goes on with a store that was opened again. */
  reopened(db: Db): Promise<void>;
  stop(): void;
}

/** Entries of a range, kept by changes. */
export class Copy implements Follower {
  readonly #spec: RangeSpec;
  readonly #range: KeyRange;
  readonly #keysOnly: boolean;
  readonly #entries = new Map<string, { readonly key: Key; readonly text: string }>();
  #db: Db;
  #since = 0;
  /** All is being read anew. */
  #isReading = false;
  #changes: ChangeIterator<Key, unknown> | undefined;
  #fault: string | undefined;

  private constructor(db: Db, spec: RangeSpec, keysOnly: boolean) {
    this.#db = db;
    this.#spec = spec;
    this.#range = rangeOf(spec);
    this.#keysOnly = keysOnly;
  }

  /** From the first change that is known, or from the call on. */
  static async of(db: Db, spec: RangeSpec, { keysOnly, fromStart }: { keysOnly: boolean; fromStart: boolean }) {
    const copy = new Copy(db, spec, keysOnly);
    if (fromStart) {
      copy.#follow(db.changes({ ...copy.#range, keysOnly, since: 0 }));
      return copy;
    }
    // Calls of one turn are of one moment.
    const changes = db.changes({ ...copy.#range, keysOnly });
    await copy.#readAll();
    copy.#follow(changes);
    return copy;
  }

  fault(present: Moment): string | undefined {
    if (this.#fault !== undefined) return this.#fault;
    for (const key of keysIn(this.#spec)) {
      const expected = present.live(key)?.text;
      const found = this.#entries.get(KEY_TEXTS[key] as string)?.text;
      // That an entry expires is no change.
      if (expected === undefined ? found === undefined || present.isOver(key) : this.#isSame(found, expected)) continue;
      return `a copy kept by changes has ${found} of ${KEY_TEXTS[key]}, not ${expected}, at ${this.#since}`;
    }
    return undefined;
  }

  async reopened(db: Db): Promise<void> {
    this.#db = db;
    const changes = db.changes({ ...this.#range, keysOnly: this.#keysOnly, since: this.#since });
    // The closing came in between.
    if (this.#isReading) await this.#readAll();
    this.#follow(changes);
  }

  stop(): void {
    const changes = this.#changes;
    this.#changes = undefined;
    void changes?.return?.();
  }

  #isSame(found: string | undefined, expected: string): boolean {
    return found !== undefined && (this.#keysOnly || found === expected);
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
    const entries = this.#db.entries(this.#range);
    this.#isReading = true;
    this.#entries.clear();
    for await (const [key, value] of entries) this.#entries.set(textOf(key), { key, text: textOf(value) });
    this.#isReading = false;
  }
}

/** A live query, subscribed to. */
export class Watched implements Follower {
  readonly #scan: ScanSpec;
  readonly #as: 'range' | 'count' | 'function';
  #stop: () => void = () => undefined;
  #text = 'nothing yet';
  #fault: string | undefined;

  constructor(db: Db, scan: ScanSpec, as: 'range' | 'count' | 'function') {
    // That an entry expires is told with the next change: the marker is one.
    this.#scan = isIn(MARKER, rangeOf(scan.range)) ? scan : { ...scan, range: { prefix: 0 } };
    this.#as = as;
    this.#subscribe(db);
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

  stop(): void {
    this.#stop();
  }

  #subscribe(db: Db): void {
    this.#text = 'nothing yet';
    const failed = (error: unknown): void => {
      if ((error as { code?: unknown })?.code !== 'VARVE_CLOSED') this.#fault = `a live ${this.#as} failed: ${error}`;
    };
    this.#stop = this.#live(db).subscribe((value) => {
      if (value !== undefined) this.#text = this.#shown(value);
    }, failed);
  }

  #live(db: Db): Live<unknown> {
    const { brings, range, reverse, limit } = this.#scan;
    const whole = rangeOf(range);
    switch (this.#as) {
      case 'function':
        return db.live((view) => view.count(whole), whole);
      case 'count':
        return db.live({ ...whole, as: 'count' });
      case 'range':
        return db.live({ ...whole, reverse, limit, as: brings } as { as: 'keys' });
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
