/**
 * The head of a store: one key that records who has the store until when, and which rows of its journal count.
 *
 *     claim    the head has no holder, or one whose lease ran out  ->  set it, checking that it is as it was read
 *     write    set and delete anything, checking that the head is as I wrote it last; it is written too when that is due
 *     append   the same for one row of the journal that counts by being there, which is checked not to be
 *     renew    write nothing but the head, before the lease runs out
 *
 * Every operation checks the head's versionstamp, which changes whenever somebody writes the head. After another holder claimed the
 * store, everything that a former holder still sends fails as a whole. So two holders never change a store at once, even if their
 * clocks differ: a wrong clock only makes a claim too early.
 *
 * It makes no claim too late. A lease also runs out when the head has not changed for as long as the lease lasts, measured by an opener
 * that watches it. A holder that runs writes the head every two thirds of its lease at the latest. If it is later, it is fenced.
 *
 * Invariant: operations run one at a time, in the order of the calls. An operation that failed without a response is sent again,
 * once the head has shown that it does not contain it.
 */

import { VarveError } from '../../errors.ts';
import { untilAborted } from '../../runtime/until-aborted.ts';
import { delay, unref } from '../../runtime/wait.ts';
import type { LockOptions } from '../adapter.ts';
import { SlotError } from '../device.ts';
import type { Change } from './pack.ts';
import { type Kv, type KvAtomic, type KvEntry, type KvKey, STRONG } from './platform.ts';

const FORMAT = 1;
/** How often an operation is sent at most. */
const ATTEMPTS_MAX = 3;
const ATTEMPT_PAUSE_MS = 100;
/** Longest pause of a waiting claim before it checks again whether the store is free. */
const LOOK_MS_MAX = 500;

/** The stored value. */
interface HeadValue {
  readonly format: number;
  /** The first row of the journal that counts. */
  readonly first: number;
  /** The last row that was known when the head was written; rows that were appended since come after it. */
  readonly last: number;
  /** The store is being deleted: nothing in it counts. */
  readonly isErased: boolean;
  /** Room of the reserve was given, and has not been set aside again yet. */
  readonly gaveReserve: boolean;
  /** The number of this write. Each one that a holder sent has its own, whether a response came or not. */
  readonly writes: number;
  readonly holder: HolderValue | null;
}

/** The holder of a store. */
interface HolderValue {
  readonly id: string;
  /** The time until which the store may not be taken away, in milliseconds since 1970 by the clock of the holder. */
  readonly until: number;
  /** Milliseconds from when the holder wrote this to `until`. */
  readonly leaseMs: number;
}

/** The fields of the head that its holder changes. */
type HeadChange = Partial<Pick<HeadValue, 'first' | 'last' | 'isErased' | 'gaveReserve'>>;

const NEW: HeadValue = {
  format: FORMAT,
  first: 1,
  last: 0,
  isErased: false,
  gaveReserve: false,
  writes: 0,
  holder: null,
};

/** How a head is claimed. */
export interface ClaimOptions extends LockOptions {
  readonly store: string;
  /** Milliseconds for which a holder keeps the store without renewing. */
  readonly leaseMs: number;
  /** Makes a store where there is none. */
  readonly create: boolean;
}

/** The head of a store that this isolate has. */
export class Head {
  readonly key: KvKey;
  readonly #kv: Kv;
  readonly #id = crypto.randomUUID();
  readonly #leaseMs: number;
  #value: HeadValue;
  #versionstamp: string | null;
  /** The number of the last write that was sent. */
  #writes: number;
  /** When the head was written last, in the time of `performance.now()`. */
  #writtenAt = Number.NEGATIVE_INFINITY;
  #turn: Promise<unknown> = Promise.resolve();
  #timer: ReturnType<typeof setInterval> | undefined;
  #isReleased = false;

  private constructor(kv: Kv, key: KvKey, found: KvEntry, leaseMs: number) {
    this.#kv = kv;
    this.key = key;
    this.#leaseMs = leaseMs;
    this.#value = (found.value as HeadValue | null) ?? NEW;
    this.#versionstamp = found.versionstamp;
    this.#writes = this.#value.writes;
  }

  /**
   * Claims a store; undefined where there is none and `create` is false.
   * @throws `VARVE_LOCKED` when somebody has it for longer than `lockTimeout`, the signal's `reason` when it aborts, `VARVE_VERSION`.
   */
  static async claim(kv: Kv, key: KvKey, options: ClaimOptions): Promise<Head | undefined> {
    const { lockTimeout, signal, store, leaseMs, create } = options;
    const deadline = performance.now() + lockTimeout;
    let seen: { versionstamp: string | null; at: number } | undefined;
    for (let pause = 10; ; pause = Math.min(LOOK_MS_MAX, pause * 2)) {
      signal?.throwIfAborted();
      const askedAt = performance.now();
      const found = await asked(() => kv.get(key, STRONG));
      if (seen?.versionstamp !== found.versionstamp) {
        seen = { versionstamp: found.versionstamp, at: performance.now() };
      }
      const value = found.value as HeadValue | null;
      if (value === null && !create) return undefined;
      if (value !== null && value.format !== FORMAT) {
        throw new VarveError('VARVE_VERSION', 'A newer version of varve wrote this store.');
      }
      const holder = value?.holder;
      const lease = holder?.leaseMs ?? leaseMs;
      if (!holder || holder.until < Date.now() || askedAt - seen.at > lease) {
        const head = new Head(kv, key, found, leaseMs);
        if (await head.#take()) return head;
      }
      const left = deadline - performance.now();
      if (left <= 0) throw locked(store, Math.min(lease, (holder?.until ?? 0) - Date.now()));
      await untilAborted(delay(Math.min(pause, left)), signal).catch(() => undefined);
    }
  }

  get first(): number {
    return this.#value.first;
  }

  get last(): number {
    return this.#value.last;
  }

  get isErased(): boolean {
    return this.#value.isErased;
  }

  get gaveReserve(): boolean {
    return this.#value.gaveReserve;
  }

  /** Makes changes, and with them one of the head: all or nothing, and nothing once another holder has the store. */
  write(changes: readonly Change[], change?: HeadChange): Promise<void> {
    return this.#inTurn(() => this.#send(changes, change));
  }

  /** Makes changes; one is the next row of the journal. All or nothing, once, and nothing once another holder has the store. */
  append(changes: readonly Change[], row: KvKey): Promise<void> {
    return this.#inTurn(async () => {
      const last = this.last + 1;
      await this.#send(changes, this.#isDue() ? { last } : undefined, row);
      this.advance(last);
    });
  }

  /** Records that rows were appended. */
  advance(last: number): void {
    this.#value = { ...this.#value, last };
  }

  /** Whether a head that was read belongs to this holder. */
  isMine(found: KvEntry | undefined): boolean {
    return (found?.value as HeadValue | null | undefined)?.holder?.id === this.#id;
  }

  /** Releases the store for the next holder. */
  async release(): Promise<void> {
    await this.#end(() => ({ ...this.#value, writes: ++this.#writes, holder: null }));
  }

  /** Deletes the head: from then on there is no such store. */
  async remove(): Promise<void> {
    await this.#end(() => undefined);
  }

  #inTurn<T>(call: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(call);
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  async #take(): Promise<boolean> {
    try {
      await this.#send([], {});
    } catch (error) {
      if (error instanceof SlotError && error.kind === 'closed') return false;
      throw error;
    }
    this.#timer = setInterval(() => void this.#renew(), this.#leaseMs / 3);
    unref(this.#timer);
    return true;
  }

  async #renew(): Promise<void> {
    // The next write gets the error of what fails here.
    if (this.#isDue()) await this.write([], {}).catch(() => undefined);
  }

  /**
   * Whether a third of the lease is over by either clock. The one of the machine may be set back; the other one may stand still while
   * the machine sleeps.
   */
  #isDue(): boolean {
    const until = this.#value.holder?.until ?? 0;
    const third = this.#leaseMs / 3;
    return performance.now() - this.#writtenAt >= third || until - Date.now() < 2 * third;
  }

  async #send(changes: readonly Change[], change: HeadChange | undefined, row?: KvKey): Promise<void> {
    if (this.#isReleased) throw new SlotError('closed', 'The store was closed.');
    const now = performance.now();
    const isDue = change !== undefined || this.#isDue();
    const next = isDue ? { ...this.#value, ...change, ...this.#held() } : undefined;
    for (let attempt = 1; ; attempt++) {
      try {
        const result = await this.#operation(changes, next, row).commit();
        if (result.ok) {
          if (next !== undefined) this.#wrote(next, result.versionstamp, now);
          return;
        }
      } catch (error) {
        const known = kvError(error);
        if (attempt === ATTEMPTS_MAX || known.kind === 'full') throw known;
        await delay(ATTEMPT_PAUSE_MS * attempt);
      }
      // It may have succeeded although no response came.
      if (await this.#isDone(next, row, now)) return;
      if (attempt === ATTEMPTS_MAX) throw taken();
    }
  }

  /** Whether an operation of unknown outcome succeeded; throws when another holder has the store. */
  async #isDone(next: HeadValue | undefined, row: KvKey | undefined, sentAt: number): Promise<boolean> {
    const keys = row === undefined ? [this.key] : [this.key, row];
    const [now, appended] = await asked(() => this.#kv.getMany(keys, STRONG));
    const value = now?.value as HeadValue | null;
    if (this.isMine(now) && value?.writes === next?.writes) {
      this.#wrote(value as HeadValue, now?.versionstamp ?? null, sentAt);
      return true;
    }
    // An earlier write of this holder, such as a renewal, may have succeeded without a response.
    if (this.isMine(now)) this.#versionstamp = now?.versionstamp ?? null;
    if (now?.versionstamp !== this.#versionstamp) throw taken();
    return typeof appended?.versionstamp === 'string';
  }

  #operation(changes: readonly Change[], next: HeadValue | undefined, row: KvKey | undefined): KvAtomic {
    const operation = this.#kv.atomic().check({ key: this.key, versionstamp: this.#versionstamp });
    if (row !== undefined) operation.check({ key: row, versionstamp: null });
    if (next !== undefined) operation.set(this.key, next);
    for (const { key, bytes } of changes) {
      if (bytes === undefined) operation.delete(key);
      else operation.set(key, bytes);
    }
    return operation;
  }

  #held(): Pick<HeadValue, 'holder' | 'writes'> {
    const holder = { id: this.#id, until: Date.now() + this.#leaseMs, leaseMs: this.#leaseMs };
    return { writes: ++this.#writes, holder };
  }

  #wrote(value: HeadValue, versionstamp: string | null, sentAt: number): void {
    this.#value = value;
    this.#versionstamp = versionstamp;
    this.#writtenAt = sentAt;
  }

  /** Writes the head for the last time, or deletes it. A failure does not matter: the lease runs out. */
  async #end(last: () => HeadValue | undefined): Promise<void> {
    clearInterval(this.#timer);
    await this.#inTurn(async () => {
      if (this.#isReleased) return;
      this.#isReleased = true;
      const value = last();
      const end = (): ReturnType<KvAtomic['commit']> => {
        const changes = value === undefined ? [{ key: this.key }] : [];
        return this.#operation(changes, value, undefined).commit();
      };
      await asked(end).catch(() => undefined);
    });
  }
}

/** Whether the entry under the key of a head is a store. */
export function isStore({ value }: KvEntry): boolean {
  return value !== null && !(value as HeadValue).isErased;
}

/** Sends Deno KV a request that changes nothing, more than once if necessary. */
export async function asked<T>(ask: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await ask();
    } catch (error) {
      if (attempt === ATTEMPTS_MAX) throw kvError(error);
      await delay(ATTEMPT_PAUSE_MS * attempt);
    }
  }
}

/** The error when another holder has the store now. */
export function taken(): SlotError {
  return new SlotError('closed', 'Another process or isolate has taken the store over, because its lease had run out.');
}

function kvError(error: unknown): SlotError {
  if (error instanceof SlotError) return error;
  const message = error instanceof Error ? error.message : String(error);
  return new SlotError(/disk is full/i.test(message) ? 'full' : 'io', `Deno KV: ${message}`, { cause: error });
}

function locked(store: string, leftMs: number): VarveError {
  return new VarveError(
    'VARVE_LOCKED',
    `Another process or isolate has the store "${store}" open. Close it there, or wait longer: if it ended, the store is free in ${Math.max(0, leftMs)} ms.`,
  );
}
