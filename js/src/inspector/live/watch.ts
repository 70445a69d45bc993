/**
 * Looks at a store again and again, while the page is visible.
 * Invariant: one look at a time. A look that has to wait for a new leader is no error.
 */

import type { StoreStats } from '../../types.ts';
import { codeOf, isPassing } from '../errors.ts';

/** How long to wait for a leader that does not answer, before asking again. */
const AGAIN_MS = 1000;

/** Any store with figures. */
interface Watched {
  stats(): Promise<StoreStats>;
}

interface WatchEvents {
  onLook(stats: StoreStats): void;
  onError(error: unknown): void;
}

export class Watch {
  readonly #events: WatchEvents;
  #store: Watched | undefined;
  #everyMs = AGAIN_MS;
  #isLooking = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #running = new AbortController();

  constructor(events: WatchEvents) {
    this.#events = events;
  }

  /** Looks at this store from now on, with this time between two looks. */
  follow(store: Watched, everyMs: number): void {
    this.stop();
    this.#store = store;
    this.#everyMs = everyMs;
    this.#running = new AbortController();
    document.addEventListener('visibilitychange', () => this.#look(), { signal: this.#running.signal });
    this.#look();
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#store = undefined;
    this.#running.abort();
  }

  async #look(): Promise<void> {
    clearTimeout(this.#timer);
    const store = this.#store;
    if (this.#isLooking || store === undefined || document.visibilityState === 'hidden') return;
    this.#isLooking = true;
    let waitMs = this.#everyMs;
    try {
      const stats = await store.stats();
      if (store === this.#store) this.#events.onLook(stats);
    } catch (error) {
      if (!isPassing(error) && codeOf(error) !== 'VARVE_CLOSED') this.#events.onError(error);
      waitMs = AGAIN_MS;
    }
    this.#isLooking = false;
    // Another store is looked at at once.
    this.#timer = setTimeout(() => this.#look(), store === this.#store ? waitMs : 0);
  }
}
