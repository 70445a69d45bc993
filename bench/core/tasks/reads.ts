/**
 * Many gets as one call: a wave where the session has one (one frame of Varve's, one transaction of IndexedDB's), a loop
 * inside one turn where it answers at once, during which nobody else can write.
 */

import type { PointCall, Session } from '../engine.ts';
import { at, type Dataset } from '../generator.ts';
import type { BatchTrace, State } from '../trace.ts';
import { type Task, TaskBase } from './task.ts';

export class Reads extends TaskBase implements Task {
  readonly calls: number;
  readonly #session: Session;
  readonly #traces: readonly BatchTrace[];
  readonly #planned: readonly (readonly PointCall[])[];
  #found: (readonly (Uint8Array | undefined)[])[] = [];

  constructor(session: Session, dataset: Dataset, state: State, traces: readonly BatchTrace[]) {
    super(dataset, state);
    this.#session = session;
    this.#traces = traces;
    this.#planned = traces.map(({ numbers }) =>
      Array.from(numbers, (number) => ({ key: at(dataset.keys, number), value: undefined })),
    );
    this.calls = traces.length;
  }

  run(from: number, to: number): void | Promise<void> {
    const session = this.#session;
    if (session.kind === 'async') return this.#await(from, to);
    for (let i = from; i < to; i++) {
      this.#found.push((this.#planned[i] as readonly PointCall[]).map(({ key }) => session.get(key)));
    }
  }

  finish(): void {
    // Nothing was written.
  }

  check(from: number, to: number): void {
    for (let i = from; i < to; i++) {
      const { numbers } = at(this.#traces, i);
      const found = at(this.#found, i - from);
      const hits = found.reduce((count, value) => count + Number(value !== undefined), 0);
      const picked = this.random.below(numbers.length);
      this.expect(at(numbers, picked), found[picked]);
      this.tally.ops += numbers.length;
      this.tally.reads += numbers.length;
      this.tally.hits += hits;
      this.tally.bytes += hits * this.entryBytes;
    }
    this.#found = [];
  }

  async #await(from: number, to: number): Promise<void> {
    const session = this.#session;
    if (session.kind === 'sync') return;
    for (let i = from; i < to; i++) this.#found.push(await session.wave(this.#planned[i] as readonly PointCall[]));
  }
}
