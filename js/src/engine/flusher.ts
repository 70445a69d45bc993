/**
 * Makes relaxed writes durable soon, and seals and shrinks when nothing is written.
 *
 *     write ---- <= 100 ms ----> flush
 *     write ---- 250 ms without another ----> seal the log, delete files that nobody needs
 *     write ----- 3 s without another ------> return spare room to the browser, and merge what was overwritten
 *                                             merged ----- 250 ms ----> free its room, too
 *
 * Invariant: an unflushed byte waits for at most `FLUSH_MS` and one flush. A seal is written only after a time without
 * writes, because it costs a flush of its own.
 */

import type { EngineStore } from '../wasm/store.ts';

const FLUSH_MS = 80;
const IDLE_MS = 250;
const SHRINK_MS = 2750;

/** Flushes and seals the log of one store. */
export class Flusher {
  readonly #store: EngineStore;
  readonly #onIdle: () => void;
  #flushTimer: ReturnType<typeof setTimeout> | undefined;
  #idleTimer: ReturnType<typeof setTimeout> | undefined;
  #shrinkTimer: ReturnType<typeof setTimeout> | undefined;
  /** Writes since the last seal, when last looked at. */
  #writes = 0;
  /** The store had its 3 s without a write. */
  #isIdle = false;
  #stopped = false;

  /** `onIdle` runs the jobs that are due while nobody writes. */
  constructor(store: EngineStore, onIdle: () => void) {
    this.#store = store;
    this.#onIdle = onIdle;
  }

  /** Must be called after each turn that may have written. */
  note(): void {
    if (this.#stopped) return;
    if (this.#flushTimer === undefined && this.#store.isUnsynced()) {
      this.#flushTimer = setTimeout(() => this.#flush(), FLUSH_MS);
    }
    if (this.#store.writesSinceSeal() > 0) {
      this.#isIdle = false;
      this.#endShrink();
      this.idle();
    }
  }

  /** Seals once nothing is written any more, and shrinks. A job that ends does not begin the time without writes anew. */
  idle(): void {
    if (this.#stopped || this.#idleTimer !== undefined) return;
    this.#writes = this.#store.writesSinceSeal();
    this.#idleTimer = setTimeout(() => this.#seal(), IDLE_MS);
  }

  /** Flushes and seals now: the page is about to go away. */
  now(): void {
    if (this.#stopped) return;
    // The time without writes goes on. It once ended here, and a store whose page was hidden just after a write never became idle.
    clearTimeout(this.#flushTimer);
    this.#flushTimer = undefined;
    this.#attempt(() => this.#store.seal());
  }

  /** Ends all timers. */
  shutDown(): void {
    this.#stopped = true;
    this.#clear();
    this.#endShrink();
  }

  #flush(): void {
    this.#flushTimer = undefined;
    this.#attempt(() => this.#store.sync());
  }

  #seal(): void {
    this.#idleTimer = undefined;
    if (this.#store.writesSinceSeal() !== this.#writes) {
      this.idle();
      return;
    }
    this.now();
    this.#attempt(() => this.#store.release());
    // An error in these calls may have stopped this flusher.
    if (!this.#stopped) this.#shrinkTimer ??= setTimeout(() => this.#shrink(), this.#isIdle ? 0 : SHRINK_MS);
  }

  #shrink(): void {
    this.#shrinkTimer = undefined;
    if (this.#store.writesSinceSeal() > 0) return;
    this.#isIdle = true;
    this.#attempt(() => this.#store.shrink(true));
    if (!this.#stopped) this.#onIdle();
  }

  /** A failure closes the engine for writes, and the next writer gets the error. No caller waits for it now. */
  #attempt(call: () => void): void {
    try {
      call();
    } catch {
      this.#clear();
    }
  }

  #clear(): void {
    clearTimeout(this.#flushTimer);
    clearTimeout(this.#idleTimer);
    this.#flushTimer = undefined;
    this.#idleTimer = undefined;
  }

  #endShrink(): void {
    clearTimeout(this.#shrinkTimer);
    this.#shrinkTimer = undefined;
  }
}
