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
  #is_held = false;
  #is_looking = false;
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
  hold(is_held: boolean): void {
    this.#is_held = is_held;
    this.#look();
  }

  async #look(): Promise<void> {
    clearTimeout(this.#timer);
    const store = this.#store;
    if (this.#is_looking || this.#is_held || store === undefined || document.visibilityState === 'hidden') return;
    this.#is_looking = true;
    let wait_ms = LOOK_MS;
    try {
      const stats = await store.stats();
      if (store === this.#store && !this.#is_held) this.#events.onLook(stats);
    } catch (error) {
      const is_closed = error instanceof VarveError && error.code === 'VARVE_CLOSED';
      if (!isPassing(error) && !is_closed) this.#events.onError(error);
      wait_ms = AGAIN_MS;
    }
    this.#is_looking = false;
    this.#timer = setTimeout(() => this.#look(), wait_ms);
  }
}
