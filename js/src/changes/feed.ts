/**
 * Pages of changes, and waiting for the next one.
 *
 * Invariant: one request waits in the engine for each store, whoever waits here. A reader is a position: who does not ask
 * costs nothing, and writers never wait for anybody.
 */

import type { Client } from '../worker/client.ts';
import { type Page, type PageRequest, page_operation } from './page.ts';

/** What a reader knows when its position has moved. */
export interface Moved {
  readonly page: Page;
  /** Where it is now. */
  readonly position: number;
  /** Whether what happened in between is not known. */
  readonly isGap: boolean;
}

interface Waiter {
  readonly since: number;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** The changes of one store. */
export class Feed {
  readonly #client: Client;
  /** The sequence of the last acknowledged write, as far as it was told here. */
  #known = -1;
  #waiters = new Set<Waiter>();
  #isAsking = false;

  constructor(client: Client) {
    this.#client = client;
  }

  /**
   * The next changes behind `request.since`, once there are any, or a gap. `stopped` tells a reader that went away; it gets
   * undefined.
   */
  async next(request: PageRequest, stopped: () => boolean): Promise<Moved | undefined> {
    for (let { since } = request; !stopped(); ) {
      if (since === this.#known) await this.#after(since);
      if (stopped()) break;
      const page = await this.#page({ ...request, since });
      if (page === undefined) continue;
      const isGap = page.floor > since || page.through < since;
      if (isGap) return { page, position: page.floor > since ? page.floor : page.through, isGap };
      if (page.changes.length > 0) return { page, position: page.through, isGap };
      if (page.through === since) await this.#after(since);
      since = page.through;
    }
    return undefined;
  }

  /** A page; undefined while the leader does not answer: it goes on when that does. */
  async #page(request: PageRequest): Promise<Page | undefined> {
    try {
      return await this.#client.submit(page_operation, undefined, request, 0);
    } catch (error) {
      if (!isStall(error)) throw error;
      return undefined;
    }
  }

  /** Resolves when the last acknowledged write has another sequence than `since`. */
  #after(since: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiters.add({ since, resolve, reject });
      if (!this.#isAsking) void this.#ask(since);
    });
  }

  async #ask(since: number): Promise<void> {
    this.#isAsking = true;
    try {
      this.#known = (await this.#client.ask({ type: 'call', method: 'after', args: [since] })) as number;
      this.#isAsking = false;
      for (const waiter of [...this.#waiters]) {
        if (waiter.since === this.#known) continue;
        this.#waiters.delete(waiter);
        waiter.resolve();
      }
      if (this.#waiters.size > 0) void this.#ask(this.#known);
    } catch (error) {
      this.#isAsking = false;
      if (isStall(error)) {
        void this.#ask(since);
        return;
      }
      for (const waiter of this.#waiters) waiter.reject(error);
      this.#waiters.clear();
    }
  }
}

/** Whether a leader does not answer, which is no reason to stop following it. */
function isStall(error: unknown): boolean {
  return (error as { code?: unknown })?.code === 'VARVE_LEADER_STALLED';
}
