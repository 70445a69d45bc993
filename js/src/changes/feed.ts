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
      const page = await this.#client.submit(page_operation, undefined, { ...request, since }, 0);
      const isGap = page.floor > since || page.through < since;
      if (isGap) return { page, position: page.floor > since ? page.floor : page.through, isGap };
      if (page.changes.length > 0) return { page, position: page.through, isGap };
      if (page.through === since) await this.#after(since);
      since = page.through;
    }
    return undefined;
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
      for (const waiter of this.#waiters) waiter.reject(error);
      this.#waiters.clear();
    }
  }
}
