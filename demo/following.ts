// Changes in the store, whichever tab made them.
// Invariant: nothing that was committed is left out: changes that are unknown, because history was cut, are reported as `isAnew`.
// Changes are gathered for a short time, so that a thousand of them are one.

import type { Change, Key, KeyRange } from 'varve';
import { isPassing } from '../js/src/inspector/errors.ts';
import type { City } from './city.ts';
import type { CityStore, Progress, Stored } from './gazetteer.ts';

/** How long to wait for a leader that does not answer, before asking again. */
const AGAIN_MS = 1000;
/** How long changes are gathered. */
const GATHER_MS = 150;
/** Records and counts lie between these, side by side. */
const CITIES: KeyRange = { gte: ['city'], lt: ['country'] };
const META: KeyRange = { prefix: ['meta'] };

/** A record as it is now; undefined when it was deleted. */
export interface CityChange {
  readonly city: City | undefined;
  readonly sequence: number;
}

/** Changes gathered in a short time. */
export interface Changes {
  readonly cities: ReadonlyMap<number, CityChange>;
  readonly counts: ReadonlyMap<string, number>;
  readonly progress: Progress | undefined;
  /** Much was deleted at once, or changes are unknown: everything must be read anew. */
  readonly isAnew: boolean;
}

export interface FollowingEvents {
  onChanges(changes: Changes): void;
  onError(error: unknown): void;
}

export class Following {
  readonly #store: CityStore;
  readonly #events: FollowingEvents;
  #cities = new Map<number, CityChange>();
  #counts = new Map<string, number>();
  #progress: Progress | undefined;
  #isAnew = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #running: AbortController | undefined;

  constructor(store: CityStore, events: FollowingEvents) {
    this.#store = store;
    this.#events = events;
  }

  /** Follows commits from now on. */
  start(): void {
    if (this.#running !== undefined) return;
    const running = new AbortController();
    this.#running = running;
    for (const range of [CITIES, META]) this.#follow(range, running.signal);
  }

  /** Stops following, and drops the gathered changes. */
  stop(): void {
    this.#running?.abort();
    this.#running = undefined;
    this.#reset();
  }

  async #follow(range: KeyRange, signal: AbortSignal): Promise<void> {
    try {
      for await (const change of this.#store.watch(range, { signal })) {
        this.#take(change);
        this.#reportSoon();
      }
    } catch (error) {
      if (signal.aborted) return;
      if (!isPassing(error)) return this.#events.onError(error);
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
      if (signal.aborted) return;
      this.#follow(range, signal);
      // Changes made meanwhile are unknown.
      this.#isAnew = true;
      this.#reportSoon();
    }
  }

  #take(change: Change<Key, Stored>): void {
    if (change.type === 'gap' || change.type === 'deleteRange') {
      this.#isAnew = true;
      return;
    }
    const [kind, which] = change.key as readonly [string, number | string];
    const value = change.type === 'set' ? change.value : undefined;
    if (kind === 'city') this.#cities.set(Number(which), { city: value as City, sequence: change.sequence });
    else if (kind === 'count') this.#counts.set(String(which), Number(value ?? 0));
    else if (kind === 'meta' && value !== undefined) this.#progress = value as Progress;
  }

  #reportSoon(): void {
    this.#timer ??= setTimeout(() => this.#report(), GATHER_MS);
  }

  #report(): void {
    const changes = {
      cities: this.#cities,
      counts: this.#counts,
      progress: this.#progress,
      isAnew: this.#isAnew,
    };
    this.#reset();
    this.#events.onChanges(changes);
  }

  #reset(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#cities = new Map();
    this.#counts = new Map();
    this.#progress = undefined;
    this.#isAnew = false;
  }
}
