// Looks at a store again and again, while the page is visible.
// Invariant: one look at a time. A look that has to wait for a new leader is no error.

import { type StoreStats, VarveError } from 'varve';
import { isPassing } from '../following.ts';

const LOOK_MS = 150;
const AGAIN_MS = 1000;

/** Any store with figures. */
export interface Watched {
  stats(): Promise<StoreStats>;
}

export interface WatchEvents {
  onLook(stats: StoreStats): void;
  onError(error: unknown): void;
}

export class Watch {
  readonly #events: WatchEvents;
  #store: Watched | undefined;
  #isHeld = false;
  #isLooking = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(events: WatchEvents) {
    this.#events = events;
    document.addEventListener('visibilitychange', () => this.#look());
  }

  /** Looks at this store from now on. */
  follow(store: Watched): void {
    this.#store = store;
    this.#look();
  }

  /** Stops looking, or continues. */
  hold(isHeld: boolean): void {
    this.#isHeld = isHeld;
    this.#look();
  }

  async #look(): Promise<void> {
    clearTimeout(this.#timer);
    const store = this.#store;
    if (this.#isLooking || this.#isHeld || store === undefined || document.visibilityState === 'hidden') return;
    this.#isLooking = true;
    let waitMs = LOOK_MS;
    try {
      const stats = await store.stats();
      if (store === this.#store && !this.#isHeld) this.#events.onLook(stats);
    } catch (error) {
      const isClosed = error instanceof VarveError && error.code === 'VARVE_CLOSED';
      if (!isPassing(error) && !isClosed) this.#events.onError(error);
      waitMs = AGAIN_MS;
    }
    this.#isLooking = false;
    this.#timer = setTimeout(() => this.#look(), waitMs);
  }
}
