/**
 * Objects of the bench: the same sets through Varve, through the platform's key-value calls, and as rows of a plain table.
 *
 * Invariant: every way gets the same keys and values in the same turns, and each method's time is taken by its caller, because
 * the clock of an object stands still while it computes.
 */

import { DurableObject } from 'cloudflare:workers';
import { VarveObject } from 'varve/cloudflare';

/** So many sets, `perTurn` of them in a turn, in one batch call or one by one. */
export interface Load {
  readonly count: number;
  readonly perTurn: number;
  readonly isBatch: boolean;
  readonly valueBytes: number;
}

/** The methods of each object. */
export interface Way {
  load(load: Load): Promise<void>;
  /** Rows that were written since the object was constructed. */
  rows(): Promise<number>;
  isIdle(): Promise<boolean>;
  /** Gets so many of the keys of a load. Returns how many were found. */
  read(count: number, gets: number): Promise<number>;
  /** The size of the database. */
  bytes(): Promise<number>;
}

/** `ctx.storage` as far as plain objects use it. */
interface PlainStorage {
  put(key: string, value: Uint8Array): Promise<void>;
  put(entries: Record<string, Uint8Array>): Promise<void>;
  readonly kv: { get(key: string): unknown };
}

type Pair = readonly [string, Uint8Array];

/** Keys in no order, each once; values that do not compress. */
function pairsOf({ count, valueBytes }: Load, from: number, to: number): Pair[] {
  const pairs: Pair[] = [];
  for (let i = from; i < to; i++) {
    const value = new Uint8Array(valueBytes);
    let state = i * 2654435761 + 1;
    for (let at = 0; at < valueBytes; at++) {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      value[at] = state >>> 24;
    }
    pairs.push([keyOf((i * 7919) % count), value]);
  }
  return pairs;
}

function keyOf(number: number): string {
  return `key-${String(number).padStart(12, '0')}`;
}

async function inTurns(load: Load, write: (pairs: Pair[]) => unknown): Promise<void> {
  for (let from = 0; from < load.count; from += load.perTurn) {
    await write(pairsOf(load, from, Math.min(load.count, from + load.perTurn)));
    await new Promise((resolve) => setTimeout(resolve, 0));
  }
}

/** Calls with `gets` keys, 1000 in a turn. */
async function readKeys(count: number, gets: number, get: (key: string) => unknown): Promise<number> {
  let found = 0;
  for (let i = 0; i < gets; i++) {
    if (get(keyOf((i * 6007) % count)) !== undefined) found++;
    if (i % 1000 === 999) await new Promise((resolve) => setTimeout(resolve, 0));
  }
  return found;
}

export class StoreObject extends VarveObject<object> implements Way {
  load(load: Load): Promise<void> {
    return inTurns(load, (pairs) => {
      if (load.isBatch) this.store.setMany(pairs);
      else for (const [key, value] of pairs) this.store.set(key, value);
    });
  }

  async rows(): Promise<number> {
    return this.rowsWritten();
  }

  async isIdle(): Promise<boolean> {
    const { memtable, levels } = this.store.stats();
    return (
      (await this.ctx.storage.getAlarm()) === null && memtable.frozen === 0 && levels.every((level) => level.score < 1)
    );
  }

  read(count: number, gets: number): Promise<number> {
    return readKeys(count, gets, (key) => this.store.get(key));
  }

  async scan(): Promise<number> {
    let entries = 0;
    for (const _ of this.store.values()) entries++;
    return entries;
  }

  async bytes(): Promise<number> {
    return this.ctx.storage.sql.databaseSize;
  }
}

abstract class Plain extends DurableObject<object> {
  protected written = 0;

  async rows(): Promise<number> {
    return this.written;
  }

  async isIdle(): Promise<boolean> {
    return true;
  }

  async bytes(): Promise<number> {
    return this.ctx.storage.sql.databaseSize;
  }
}

/** Rows of a plain table. */
export class TableObject extends Plain implements Way {
  load(load: Load): Promise<void> {
    const { sql } = this.ctx.storage;
    sql.exec('CREATE TABLE IF NOT EXISTS plain (key TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID');
    return inTurns(load, (pairs) => {
      for (const [key, value] of pairs)
        this.written += sql.exec('INSERT OR REPLACE INTO plain VALUES (?, ?)', key, value).rowsWritten;
    });
  }

  read(count: number, gets: number): Promise<number> {
    const { sql } = this.ctx.storage;
    const rowsOf = (key: string) => sql.exec('SELECT value FROM plain WHERE key = ?', key).toArray();
    return readKeys(count, gets, (key) => rowsOf(key)[0]?.['value']);
  }
}

/** The platform's key-value calls. */
export class KeyValueObject extends Plain implements Way {
  readonly #storage = this.ctx.storage as unknown as PlainStorage;

  async load(load: Load): Promise<void> {
    await inTurns(load, async (pairs) => {
      if (load.isBatch) await this.#storage.put(Object.fromEntries(pairs));
      else await Promise.all(pairs.map(([key, value]) => this.#storage.put(key, value)));
    });
    // The platform bills a row for each key that is put (its price list; the calls do not report it).
    this.written += load.count;
  }

  read(count: number, gets: number): Promise<number> {
    return readKeys(count, gets, (key) => this.#storage.kv.get(key));
  }
}
