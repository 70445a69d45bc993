// Writes and reads as fast as the visitor wants, in a store made for it.
// Invariant: keys are `['k', number]`, even numbers only, so that odd ones are never there: reading those shows the value of the
// filters. There are at most `KEYS` of them, which limits the store to some 80 MB. Its progress is written with each batch.

import type { Key, Store } from 'varve';

/** The content of the generator's store. */
export type Sample = { readonly at: number; readonly text: string } | number;
export type SampleStore = Store<Key, Sample>;

/** Keys of the store, at most. A power of two. */
export const KEYS = 2 ** 18;
/** Odd, so that multiplying by it visits every number below `KEYS` once. */
const SCATTER = 0x9e37_79b1;
const TEXT_LENGTH = 240;
const TICK_MS = 60;
/** Entries of one batch, at most. */
const BATCH = 500;
/** The part of the looked-up keys that were never written. */
const ABSENT = 0.1;
const NEXT: Key = ['next'];

/** The settings of the visitor. */
export interface Wishes {
  /** Writes per second; infinite: as fast as possible. */
  readonly writes: number;
  /** Reads per second. */
  readonly reads: number;
  /** How many of a hundred writes go to existing keys. */
  readonly overwrites: number;
  /** How many of a hundred writes are deletes. */
  readonly deletes: number;
  /** New keys come in rising order, instead of scattered. */
  readonly inOrder: boolean;
}

export interface GeneratorEvents {
  onError(error: unknown): void;
}

export class Generator {
  readonly #store: SampleStore;
  readonly #events: GeneratorEvents;
  readonly #noise: string;
  #next = 0;
  #running: AbortController | undefined;
  wishes: Wishes;
  /** Entries acknowledged, since the page was opened. */
  written = 0;

  constructor(store: SampleStore, wishes: Wishes, events: GeneratorEvents) {
    this.#store = store;
    this.wishes = wishes;
    this.#events = events;
    this.#noise = noise();
  }

  get isRunning(): boolean {
    return this.#running !== undefined;
  }

  async start(): Promise<void> {
    if (this.#running !== undefined) return;
    const running = new AbortController();
    this.#running = running;
    try {
      this.#next = Number((await this.#store.get(NEXT)) ?? 0);
      await Promise.all([this.#write(running.signal), this.#read(running.signal)]);
    } catch (error) {
      running.abort();
      if (this.#running === running) this.#running = undefined;
      this.#events.onError(error);
    }
  }

  stop(): void {
    this.#running?.abort();
    this.#running = undefined;
  }

  /** Begins again with an empty store. */
  restart(): void {
    this.#next = 0;
  }

  async #write(signal: AbortSignal): Promise<void> {
    let owed = 0;
    let atMs = performance.now();
    while (!signal.aborted) {
      const { writes: rate } = this.wishes;
      const nowMs = performance.now();
      owed = Math.min(BATCH * 4, owed + (rate * (nowMs - atMs)) / 1000);
      atMs = nowMs;
      const count = rate === Number.POSITIVE_INFINITY ? BATCH : Math.min(BATCH, Math.floor(owed));
      if (count > 0) {
        await this.#writeBatch(count);
        owed = rate === Number.POSITIVE_INFINITY ? 0 : owed - count;
      }
      if (owed < BATCH && rate !== Number.POSITIVE_INFINITY) await pause(TICK_MS);
    }
  }

  /** Writes so many entries: one batch, acknowledged as a whole. */
  async #writeBatch(count: number): Promise<void> {
    const { overwrites, deletes } = this.wishes;
    const batch = this.#store.batch();
    for (let i = 0; i < count; i += 1) {
      const dice = 100 * Math.random();
      if (this.#next > 0 && dice < deletes) batch.delete(this.#known());
      else if (this.#next > 0 && (dice < deletes + overwrites || this.#next >= KEYS))
        batch.set(this.#known(), this.#value(i));
      else batch.set(this.#key(this.#next++), this.#value(i));
    }
    await batch.set(NEXT, this.#next).commit();
    this.written += count;
  }

  async #read(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const { reads: rate } = this.wishes;
      const count = Math.min(1000, Math.ceil((rate * TICK_MS) / 1000));
      if (count > 0 && this.#next > 0) {
        // One in ten is not there: a look into a table is useless then, unless its filter prevents it.
        const keys = Array.from({ length: count }, () => (Math.random() < ABSENT ? this.#absent() : this.#known()));
        await this.#store.getMany(keys);
      }
      await pause(count > 0 ? Math.max(TICK_MS, (1000 * count) / Math.max(1, rate)) : TICK_MS);
    }
  }

  /** A key that was written, unless it was deleted since. */
  #known(): Key {
    return this.#key(Math.floor(Math.random() * this.#next));
  }

  /** A key that was never written, between those that were. */
  #absent(): Key {
    return ['k', 2 * Math.floor(Math.random() * KEYS) + 1];
  }

  #key(number: number): Key {
    return ['k', 2 * (this.wishes.inOrder ? number % KEYS : Math.imul(number, SCATTER) & (KEYS - 1))];
  }

  #value(i: number): Sample {
    const from = Math.floor(Math.random() * (this.#noise.length - TEXT_LENGTH));
    return { at: this.#next + i, text: this.#noise.slice(from, from + TEXT_LENGTH) };
  }
}

/** Text that does not compress, so that the store grows by the bytes written. */
function noise(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(48 * 1024));
  let text = '';
  for (const byte of bytes) text += String.fromCharCode(33 + (byte % 94));
  return text;
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
