/**
 * The changes that the iterators of `changes()` and `watch()` return.
 *
 * Invariant: changes come in order, each once, also when `next()` is called again before the promise of the last call is resolved. It keeps
 * one page at most, and requests the next page when that one was consumed. It ends when the loop is left, on an error, and when the signal
 * aborts.
 */

import type { PageWanted, RawChange } from '../protocol/change-page.ts';
import { type Feed, type Moved, Reader } from './feed.ts';
import type { Change } from './types.ts';

/** The source and the start of an iterator. */
interface Following<K, V> {
  readonly feed: Feed;
  readonly wanted: PageWanted;
  /** The sequence after which it begins. */
  readonly since: number | Promise<number>;
  readonly signal: AbortSignal | undefined;
  /** Converts a change from its raw form. */
  readonly change: (raw: RawChange) => Change<K, V>;
}

/** Returns changes one by one, until it is ended. */
export class ChangeSource<K, V> {
  readonly #following: Following<K, V>;
  #position: number | undefined;
  #changes: readonly RawChange[] = [];
  #at = 0;
  #isOver = false;
  #error: unknown;
  /** Ends the step that waits. */
  #interrupt: (() => void) | undefined;
  readonly #reader = new Reader();
  #last: Promise<unknown> = Promise.resolve();
  #unwatch: (() => void) | undefined;

  constructor(following: Following<K, V>) {
    this.#following = following;
    const { signal } = following;
    if (signal === undefined) return;
    const abort = (): void => {
      this.#error ??= signal.reason;
      this.#wake();
    };
    signal.addEventListener('abort', abort, { once: true });
    this.#unwatch = () => signal.removeEventListener('abort', abort);
    if (signal.aborted) abort();
  }

  next(): Promise<IteratorResult<Change<K, V>, undefined>> {
    const step = this.#last.then(() => this.#step());
    this.#last = step.catch(() => undefined);
    return step;
  }

  async #step(): Promise<IteratorResult<Change<K, V>, undefined>> {
    try {
      for (;;) {
        if (this.#isOver) return { done: true, value: undefined };
        if (this.#error !== undefined) throw this.#error;
        const raw = this.#changes[this.#at];
        if (raw !== undefined) {
          this.#at++;
          return { done: false, value: this.#following.change(raw) };
        }
        this.#position ??= await this.#unlessEnded(Promise.resolve(this.#following.since));
        const since = this.#position;
        if (since === undefined) continue;
        const moved = await this.#unlessEnded(this.#move(since));
        if (moved === undefined) continue;
        this.#position = moved.position;
        this.#changes = moved.page.changes;
        this.#at = 0;
        if (!moved.isGap) continue;
        this.#changes = [];
        return { done: false, value: { type: 'gap', since, sequence: moved.position } };
      }
    } catch (error) {
      this.end();
      throw error;
    }
  }

  #move(since: number): Promise<Moved | undefined> {
    const { feed, wanted } = this.#following;
    return feed.next(wanted, since, this.#reader);
  }

  /** The awaited value, or undefined as soon as the iterator is left or its signal aborts. */
  #unlessEnded<T>(work: Promise<T>): Promise<T | undefined> {
    return new Promise((resolve, reject) => {
      this.#interrupt = () => resolve(undefined);
      work.then(resolve, reject);
    });
  }

  /** Ends it: a step that waits is done. */
  end(): void {
    this.#isOver = true;
    this.#changes = [];
    this.#unwatch?.();
    this.#wake();
  }

  #wake(): void {
    this.#reader.end();
    this.#interrupt?.();
  }
}
