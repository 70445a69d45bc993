/**
 * Pages of changes, and waiting for the next one.
 *
 *     round        the time between two answers of `after`: what is read in it has seen at least the state it began with
 *     reader       notes the round, reads its page; with nothing in it, waits until that round is over, and reads again
 *
 * Invariants:
 * - A reader waits for the end of the round in which it began to read, and `after` asks for the end of that same round. So a write
 *   that is not in its page ends its wait, whatever other readers have seen or requested meanwhile.
 * - One request waits in the engine for each store, however many readers wait here. A reader is only a position: a reader that
 *   requests nothing costs nothing, and writers never wait for a reader.
 * - Readers that request the same page at the same time share one request. If more than `DIFFERENT_MAX` different pages are
 *   requested, the other readers first share a page of all keys, and only readers whose range it touches make another request.
 */

import type { Client } from '../client/client.ts';
import { compareBytes } from '../codec/range.ts';
import {
  ChangeKind,
  type Page,
  type PageWanted,
  pageOperation,
  pageWanted,
  type RawChange,
} from '../protocol/change-page.ts';
import type { StoreState } from '../protocol/messages.ts';

/** The result for a reader when its position has moved. */
export interface Moved {
  readonly page: Page;
  /** Its position now. */
  readonly position: number;
  /** Whether the changes in between are unknown. */
  readonly isGap: boolean;
}

/** A reader that follows changes, one step at a time. */
export class Reader {
  isOver = false;
  /** Ends its wait. */
  onEnd: () => void = () => undefined;

  end(): void {
    this.isOver = true;
    this.onEnd();
  }
}

interface Waiter {
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** The time in which one state was the last one reported. */
interface Round {
  readonly state: StoreState | undefined;
  readonly waiters: Set<Waiter>;
  /** Requested pages, by the names of the requests. All were requested in this round. */
  readonly pages: Map<string, { readonly since: number; readonly page: Promise<Page | undefined> }>;
}

/** At most this many different pages are requested at the same time; the engine reads each separately. */
const DIFFERENT_MAX = 8;
const ALL_KEYS = pageWanted(new Uint8Array(0), new Uint8Array(0), true);

/** The changes of one store. */
export class Feed {
  readonly #client: Pick<Client, 'submit' | 'ask' | 'aborts'>;
  #round = roundOf(undefined);
  #isAsking = false;

  constructor(client: Pick<Client, 'submit' | 'ask' | 'aborts'>) {
    this.#client = client;
  }

  /** The next changes after `since`, once there are any, or a gap; undefined once the reader has ended. */
  async next(wanted: PageWanted, since: number, reader: Reader): Promise<Moved | undefined> {
    for (let position = since; !reader.isOver; ) {
      const round = this.#round;
      if (position !== round.state?.sequence) {
        const page = await this.#look(round, wanted, position);
        if (page === undefined) continue;
        const isGap = isCut(page, position);
        if (isGap) return { page, position: page.floor > position ? page.floor : page.through, isGap };
        if (page.changes.length > 0) return { page, position: page.through, isGap };
        const isEnd = page.through === position;
        position = page.through;
        if (!isEnd) continue;
      }
      await this.#ended(round, reader);
    }
    return undefined;
  }

  /** A page for one reader. */
  async #look(round: Round, wanted: PageWanted, since: number): Promise<Page | undefined> {
    const { pages } = round;
    if (pages.size < DIFFERENT_MAX || pages.has(wanted.name)) return this.#page(round, wanted, since);
    const all = await this.#page(round, ALL_KEYS, since);
    const isOfInterest = all !== undefined && !isCut(all, since) && all.changes.some((one) => touches(one, wanted));
    return isOfInterest ? this.#page(round, wanted, since) : all && { ...all, changes: [] };
  }

  /** A page; undefined if the calls of that time were given up, because the leader does not answer or its engine failed. */
  #page({ pages }: Round, { name, ...wanted }: PageWanted, since: number): Promise<Page | undefined> {
    const asked = pages.get(name);
    if (asked?.since === since) return asked.page;
    const { aborts } = this.#client;
    const page = this.#client
      .submit(pageOperation, undefined, { ...wanted, since }, 0)
      .catch((error: unknown) => {
        if (this.#client.aborts === aborts) throw error;
        return undefined;
      })
      .finally(() => pages.get(name)?.page === page && pages.delete(name));
    pages.set(name, { since, page });
    return page;
  }

  /** Resolves when the round is over, or the reader has ended. */
  #ended(round: Round, reader: Reader): Promise<void> {
    if (round !== this.#round || reader.isOver) return Promise.resolve();
    if (!this.#isAsking) void this.#ask();
    return new Promise((resolve, reject) => {
      const waiter = { resolve, reject };
      round.waiters.add(waiter);
      reader.onEnd = () => {
        round.waiters.delete(waiter);
        resolve();
      };
    });
  }

  /** Asks the engine to report when the store is no longer in the state of this round. */
  async #ask(): Promise<void> {
    const { state, waiters } = this.#round;
    this.#isAsking = true;
    try {
      const next = await this.#client.ask({ type: 'call', method: 'after', args: [state] });
      this.#round = roundOf(next as StoreState);
      for (const { resolve } of waiters) resolve();
    } catch (error) {
      for (const { reject } of waiters) reject(error);
    } finally {
      waiters.clear();
      this.#isAsking = false;
    }
  }
}

function roundOf(state: StoreState | undefined): Round {
  return { state, waiters: new Set(), pages: new Map() };
}

/** Whether the history after `since` is unknown. */
function isCut({ floor, through }: Page, since: number): boolean {
  return floor > since || through < since;
}

function touches({ kind, key, value }: RawChange, { start, end }: PageWanted): boolean {
  const isBefore = (one: Uint8Array, other: Uint8Array): boolean => compareBytes(one, other) < 0;
  if (end.length > 0 && !isBefore(key, end)) return false;
  return kind === ChangeKind.deleteRange ? isBefore(start, value) : !isBefore(key, start);
}
