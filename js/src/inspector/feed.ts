/**
 * The changes of a store, whichever tab made them, gathered for a short time so that a thousand of them are one call.
 * Invariant: no change is missed, also not while there is no leader. `onChanges` is called again only when its last call is done. Of more
 * changes than `CHANGES_MAX` the newest are kept.
 */

import type { Change, ChangesOptions } from '../changes/types.ts';
import { delay } from '../runtime/wait.ts';
import type { Key } from '../types.ts';
import { codeOf, isPassing } from './errors.ts';
import type { AnyStore } from './store.ts';

const GATHER_MS = 250;
/** How long to wait for a leader that does not answer, before asking again. */
const AGAIN_MS = 1000;
const CHANGES_MAX = 200;

export type AnyChange = Change<Key, unknown>;

interface FeedEvents {
  /** @param count how many there were, those that were not kept included */
  onChanges(changes: readonly AnyChange[], count: number): void | Promise<void>;
  onError(error: unknown): void;
}

export class Feed {
  readonly #events: FeedEvents;
  #running: AbortController | undefined;

  constructor(events: FeedEvents) {
    this.#events = events;
  }

  /** Reports changes from now on; resolves as soon as none is missed. */
  async follow(store: AnyStore, options: ChangesOptions<Key> = {}): Promise<void> {
    this.stop();
    const running = new AbortController();
    this.#running = running;
    const { signal } = running;
    // A store that does not answer now is followed from when it does.
    const since = await store.stats().then(
      ({ sequence }) => sequence,
      () => undefined,
    );
    this.#read(store, { ...options, since, signal }, signal);
  }

  stop(): void {
    this.#running?.abort();
    this.#running = undefined;
  }

  async #read(store: AnyStore, options: ChangesOptions<Key>, signal: AbortSignal): Promise<void> {
    let changes: AnyChange[] = [];
    let count = 0;
    let isReporting = false;
    const report = async (): Promise<void> => {
      isReporting = true;
      try {
        while (count > 0 && !signal.aborted) {
          await delay(GATHER_MS);
          const [gathered, all] = [changes, count];
          [changes, count] = [[], 0];
          if (!signal.aborted) await this.#events.onChanges(gathered, all);
        }
      } catch (error) {
        this.#events.onError(error);
      } finally {
        isReporting = false;
      }
    };
    while (!signal.aborted) {
      try {
        for await (const change of store.changes(options)) {
          options.since = change.sequence;
          count += 1;
          changes.push(change);
          if (changes.length > CHANGES_MAX) changes.shift();
          if (!isReporting) report();
        }
      } catch (error) {
        if (signal.aborted || codeOf(error) === 'VARVE_CLOSED') return;
        if (!isPassing(error)) return this.#events.onError(error);
        await delay(AGAIN_MS);
      }
    }
  }
}
