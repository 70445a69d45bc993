/**
 * Batches: many entries in one call, applied together. Awaited one by one, or up to a wave of them under way.
 */

import type { BatchEntries, Session } from '../engine.ts';
import { at, type Dataset } from '../generator.ts';
import type { BatchTrace, State } from '../trace.ts';
import { entriesOf, type Task, TaskBase } from './task.ts';

export class Batches extends TaskBase implements Task {
  readonly calls: number;
  readonly #session: Session;
  readonly #traces: readonly BatchTrace[];
  readonly #entries: readonly BatchEntries[];
  readonly #waves: boolean;

  constructor(session: Session, dataset: Dataset, state: State, traces: readonly BatchTrace[], waves: boolean) {
    super(dataset, state);
    this.#session = session;
    this.#traces = traces;
    this.#entries = traces.map((trace) => entriesOf(dataset, trace));
    this.#waves = waves;
    this.calls = traces.length;
  }

  run(from: number, to: number): void | Promise<void> {
    const session = this.#session;
    if (session.kind === 'async') return this.#await(from, to);
    for (let i = from; i < to; i++) {
      session.batch(this.#entries[i] as BatchEntries);
      session.commit();
    }
  }

  finish(): void {
    // Every batch was committed.
  }

  check(from: number, to: number): void {
    for (let i = from; i < to; i++) {
      const { numbers, values } = at(this.#traces, i);
      numbers.forEach((number, entry) => {
        this.state[number] = at(values, entry);
      });
      this.tally.ops += numbers.length;
      this.tally.bytes += numbers.length * this.entryBytes;
    }
  }

  async #await(from: number, to: number): Promise<void> {
    const session = this.#session;
    if (session.kind === 'sync') return;
    if (this.#waves) await Promise.all(this.#entries.slice(from, to).map((entries) => session.batch(entries)));
    else for (let i = from; i < to; i++) await session.batch(this.#entries[i] as BatchEntries);
  }
}
