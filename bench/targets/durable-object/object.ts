/**
 * Objects of the bench: the same sets through Varve, through the platform's key-value calls, and as rows of a plain table.
 *
 * Invariant: every way gets the same keys and values in the same turns, and each method's time is taken by its caller, because
 * the clock of an object stands still while it computes.
 */

import { DurableObject } from 'cloudflare:workers';
import { type ObjectNamespace, VarveObject } from 'varve/cloudflare';

interface Env {
  readonly STORES: ObjectNamespace;
  readonly PLAIN: ObjectNamespace;
}

/** So many sets, `perTurn` of them in a turn, in one batch call or one by one. */
export interface Load {
  readonly count: number;
  readonly perTurn: number;
  readonly isBatch: boolean;
  readonly valueBytes: number;
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

export class StoreObject extends VarveObject<Env> {
  /** Rows written by these sets, with what flushes and compactions wrote until none was due. */
  async load(load: Load): Promise<number> {
    const before = this.rowsWritten();
    await inTurns(load, (pairs) => {
      if (load.isBatch) this.store.setMany(pairs);
      else for (const [key, value] of pairs) this.store.set(key, value);
    });
    return this.rowsWritten() - before;
  }

  /** Rows that were written since the object was constructed. */
  async rows(): Promise<number> {
    return this.rowsWritten();
  }

  async isIdle(): Promise<boolean> {
    const { memtable, levels } = this.store.stats();
    return (
      (await this.ctx.storage.getAlarm()) === null && memtable.frozen === 0 && levels.every((level) => level.score < 1)
    );
  }

  async read(count: number, gets: number): Promise<number> {
    return readKeys(count, gets, (key) => this.store.get(key));
  }

  async scan(): Promise<number> {
    let bytes = 0;
    for (const value of this.store.values()) bytes += (value as Uint8Array).length;
    return bytes;
  }

  async bytes(): Promise<number> {
    return this.ctx.storage.sql.databaseSize;
  }

  async end(): Promise<void> {
    this.ctx.abort('the bench constructs it again');
  }
}

/** Sets as rows of a plain table, and through the platform's key-value calls. */
export class PlainObject extends DurableObject<Env> {
  async loadRows(load: Load): Promise<number> {
    const { sql } = this.ctx.storage;
    sql.exec('CREATE TABLE IF NOT EXISTS plain (key TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID');
    let rows = 0;
    await inTurns(load, (pairs) => {
      for (const [key, value] of pairs)
        rows += sql.exec('INSERT OR REPLACE INTO plain VALUES (?, ?)', key, value).rowsWritten;
    });
    return rows;
  }

  /** Rows that the platform bills for these sets: each key that is put is one (its price list; the calls do not report it). */
  async loadKeyValues(load: Load): Promise<number> {
    const storage = this.ctx.storage as unknown as PlainStorage;
    await inTurns(load, async (pairs) => {
      if (load.isBatch) await storage.put(Object.fromEntries(pairs));
      else await Promise.all(pairs.map(([key, value]) => storage.put(key, value)));
    });
    return load.count;
  }

  async readRows(count: number, gets: number): Promise<number> {
    const { sql } = this.ctx.storage;
    const rowsOf = (key: string) => sql.exec('SELECT value FROM plain WHERE key = ?', key).toArray();
    return readKeys(count, gets, (key) => rowsOf(key)[0]?.['value']);
  }

  async readKeyValues(count: number, gets: number): Promise<number> {
    const { kv } = this.ctx.storage as unknown as PlainStorage;
    return readKeys(count, gets, (key) => kv.get(key));
  }

  async bytes(): Promise<number> {
    return this.ctx.storage.sql.databaseSize;
  }
}

// biome-ignore lint/style/noDefaultExport: the form of a Worker.
export default {
  /** `/CLASS/OBJECT/METHOD` with the arguments as the body: calls the method and returns its result. */
  async fetch(request: Request, env: Env): Promise<Response> {
    const [, binding, object, method] = new URL(request.url).pathname.split('/') as [string, keyof Env, string, string];
    const namespace = env[binding];
    const stub = namespace.get(namespace.idFromName(object)) as Record<
      string,
      (...args: unknown[]) => Promise<unknown>
    >;
    try {
      return Response.json({ result: await stub[method]?.(...((await request.json()) as unknown[])) });
    } catch (error) {
      return Response.json({ error: String(error) });
    }
  },
};
