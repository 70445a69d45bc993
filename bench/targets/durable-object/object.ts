/**
 * An object of the bench, and three ways to store pairs in it: Varve, the platform's key-value calls, and a plain table.
 *
 * Invariant: every way gets the same keys and values in the same turns, in an object of its own, and each method's time is taken
 * by its caller, because the clock of an object stands still while it computes.
 */

import { VarveObject } from 'varve/cloudflare';

/** So many sets, `perTurn` of them in a turn, in one batch call or one by one. */
export interface Load {
  readonly count: number;
  readonly perTurn: number;
  readonly isBatch: boolean;
  readonly valueBytes: number;
}

/** `ctx.storage` as far as plain pairs use it. */
interface PlainStorage {
  put(key: string, value: Uint8Array): Promise<void>;
  put(entries: Record<string, Uint8Array>): Promise<void>;
  readonly kv: { get(key: string): unknown };
}

type Pair = readonly [string, Uint8Array];

interface Way {
  set(pairs: readonly Pair[], isBatch: boolean): unknown;
  get(key: string): unknown;
  /** Rows that were written since the object was constructed. */
  rows(): number;
}

/** Keys in no order, each once; values that do not compress. */
function pairsOf({ count, valueBytes }: Load, from: number, to: number): Pair[] {
  return Array.from({ length: to - from }, (_, i): Pair => {
    let state = (from + i) * 2654435761 + 1;
    const value = Uint8Array.from({ length: valueBytes }, () => {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      return state >>> 24;
    });
    return [keyOf(((from + i) * 7919) % count), value];
  });
}

function keyOf(number: number): string {
  return `key-${String(number).padStart(12, '0')}`;
}

const turn = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 0));

export class BenchObject extends VarveObject<object> {
  #written = 0;
  /** By the names of their engines. */
  readonly #ways: Readonly<Record<string, Way>> = {
    varve: {
      set: (pairs, isBatch) => {
        if (isBatch) this.store.setMany(pairs);
        else for (const [key, value] of pairs) this.store.set(key, value);
      },
      get: (key) => this.store.get(key),
      rows: () => this.rowsWritten(),
    },
    'key-value': {
      set: (pairs, isBatch) => {
        const storage = this.ctx.storage as unknown as PlainStorage;
        // The platform bills a row for each key that is put (its price list; the calls do not report it).
        this.#written += pairs.length;
        return isBatch
          ? storage.put(Object.fromEntries(pairs))
          : Promise.all(pairs.map(([key, value]) => storage.put(key, value)));
      },
      get: (key) => (this.ctx.storage as unknown as PlainStorage).kv.get(key),
      rows: () => this.#written,
    },
    table: {
      set: (pairs) => {
        const { sql } = this.ctx.storage;
        sql.exec('CREATE TABLE IF NOT EXISTS plain (key TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID');
        for (const [key, value] of pairs)
          this.#written += sql.exec('INSERT OR REPLACE INTO plain VALUES (?, ?)', key, value).rowsWritten;
      },
      get: (key) => this.ctx.storage.sql.exec('SELECT value FROM plain WHERE key = ?', key).toArray()[0]?.['value'],
      rows: () => this.#written,
    },
  };

  async load(engine: string, load: Load): Promise<void> {
    for (let from = 0; from < load.count; from += load.perTurn) {
      await this.#way(engine).set(pairsOf(load, from, Math.min(load.count, from + load.perTurn)), load.isBatch);
      await turn();
    }
  }

  /** Gets so many of the keys of a load, 1000 in a turn. Returns how many were found. */
  async read(engine: string, count: number, gets: number): Promise<number> {
    const { get } = this.#way(engine);
    let found = 0;
    for (let i = 0; i < gets; i++) {
      if (get(keyOf((i * 6007) % count)) !== undefined) found++;
      if (i % 1000 === 999) await turn();
    }
    return found;
  }

  async rows(engine: string): Promise<number> {
    return this.#way(engine).rows();
  }

  /** Whether no flush or compaction is due. */
  async isIdle(): Promise<boolean> {
    const { memtable, levels } = this.store.stats();
    return (
      (await this.ctx.storage.getAlarm()) === null && memtable.frozen === 0 && levels.every((level) => level.score < 1)
    );
  }

  /** How many entries a scan of the store finds. */
  async scan(): Promise<number> {
    let entries = 0;
    for (const _ of this.store.values()) entries++;
    return entries;
  }

  /** The size of the database. */
  async bytes(): Promise<number> {
    return this.ctx.storage.sql.databaseSize;
  }

  #way(engine: string): Way {
    const way = this.#ways[engine];
    if (way === undefined) throw new Error(`There is no engine ${engine}.`);
    return way;
  }
}
