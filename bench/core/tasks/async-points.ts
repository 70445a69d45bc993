/**
 * Single calls to a session that answers with promises: each awaited before the next, or a wave of them together.
 *
 * Invariant: a wave is what its session makes of it (`wave`): one frame for Varve, one transaction for IndexedDB, one
 * message for the floor. Its calls are laid out before the clock starts.
 */

import type { AsyncSession, PointCall } from '../engine.ts';
import { at, type Dataset } from '../generator.ts';
import { ABSENT, DELETE, GET, type PointTrace, type State } from '../trace.ts';
import { type Task, TaskBase } from './task.ts';

export class AsyncPoints extends TaskBase implements Task {
  readonly calls: number;
  readonly #session: AsyncSession;
  readonly #trace: PointTrace;
  readonly #waves: boolean;
  readonly #echo: boolean;
  readonly #planned: readonly PointCall[];
  #picked = -1;
  #value: Uint8Array | undefined;
  #hits = 0;

  constructor(
    session: AsyncSession,
    dataset: Dataset,
    state: State,
    trace: PointTrace,
    how: { waves: boolean; echo: boolean },
  ) {
    super(dataset, state);
    this.#session = session;
    this.#trace = trace;
    this.#waves = how.waves;
    this.#echo = how.echo;
    this.calls = trace.numbers.length;
    this.#planned = Array.from(trace.numbers, (number, i) => {
      const value = at(trace.values, i);
      const written = value === DELETE ? null : value === GET ? undefined : at(dataset.pool, value);
      return { key: at(trace.keys, number), value: written };
    });
  }

  async run(from: number, to: number): Promise<void> {
    const picked = from + this.random.below(to - from);
    this.#picked = picked;
    if (this.#waves) {
      const values = await this.#session.wave(this.#planned.slice(from, to));
      for (const value of values) if (value !== undefined) this.#hits++;
      this.#value = values[picked - from];
      return;
    }
    const session = this.#session;
    for (let i = from; i < to; i++) {
      const { key, value } = this.#planned[i] as PointCall;
      if (value === undefined) {
        const delivered = await session.get(key);
        if (delivered !== undefined) this.#hits++;
        if (i === picked) this.#value = delivered;
      } else if (value === null) await session.delete(key);
      else await session.set(key, value);
    }
  }

  finish(): void {
    // Every call was awaited.
  }

  check(from: number, to: number): void {
    const { absent, numbers, values } = this.#trace;
    const { tally } = this;
    let reads = 0;
    let writes = 0;
    for (let i = from; i < to; i++) {
      const number = at(numbers, i);
      const value = at(values, i);
      if (value === GET) {
        reads++;
        if (i === this.#picked) this.#checkPicked(number, absent);
      } else if (value === DELETE) this.state[number] = ABSENT;
      else {
        writes++;
        this.state[number] = value;
      }
    }
    tally.ops += to - from;
    tally.reads += reads;
    tally.hits += this.#hits;
    tally.bytes += (to - from) * this.dataset.keyBytes + (this.#hits + writes) * this.dataset.valueBytes;
    this.#hits = 0;
    this.#value = undefined;
  }

  #checkPicked(number: number, absent: boolean): void {
    const right = this.#value?.length === this.dataset.valueBytes;
    if (this.#echo) this.tally.wrong += right ? 0 : 1;
    else if (!absent) this.expect(number, this.#value);
    else if (this.#value !== undefined) this.tally.wrong++;
  }
}
