/**
 * Opening a store that was closed, and getting one entry of it. The worker is already running; closing is not timed.
 */

import type { Engine, Session, SessionOptions } from '../engine.ts';
import { at, type Dataset } from '../generator.ts';
import type { State } from '../trace.ts';
import { type Task, TaskBase } from './task.ts';

export class Opens extends TaskBase implements Task {
  readonly calls: number;
  readonly #engine: Engine;
  readonly #name: string;
  readonly #options: SessionOptions;
  #opened: { session: Session; number: number; value: Uint8Array | undefined }[] = [];

  constructor(
    store: { engine: Engine; name: string; options: SessionOptions },
    dataset: Dataset,
    state: State,
    calls: number,
  ) {
    super(dataset, state);
    this.#engine = store.engine;
    this.#name = store.name;
    this.#options = store.options;
    this.calls = calls;
  }

  async run(from: number, to: number): Promise<void> {
    for (let i = from; i < to; i++) {
      const number = this.random.below(this.dataset.keys.length);
      const session = await this.#engine.open(this.#name, this.#options);
      const value = await session.get(at(this.dataset.keys, number));
      this.#opened.push({ session, number, value });
    }
  }

  finish(): void {
    // Nothing was written.
  }

  async check(): Promise<void> {
    for (const { session, number, value } of this.#opened) {
      this.expect(number, value);
      this.tally.ops++;
      this.tally.reads++;
      if (value !== undefined) this.tally.hits++;
      this.tally.bytes += this.entryBytes;
      await session.close();
    }
    this.#opened = [];
  }
}
