/**
 * Single calls: to a session that answers at once; to one that answers with promises, each awaited before the next, or a
 * wave of them together.
 *
 * Invariant: to a session that answers at once there is one loop per kind of call, with nothing in it but the call and
 * the look-up of its arguments. A get also touches the first byte of the value, so that a value that was not delivered could
 * not go unnoticed. A wave is what its session makes of it (`wave`); its calls are laid out before the clock starts.
 */

import type { AsyncSession, PointCall, SyncSession } from '../engine.ts';
import { at, type Dataset } from '../generator.ts';
import { ABSENT, DELETE, GET, type PointTrace, type State } from '../trace.ts';
import { type Task, TaskBase } from './task.ts';

/** The checks of both kinds. */
abstract class Points extends TaskBase implements Task {
  readonly calls: number;
  /** The call whose value is checked, and the value. */
  protected picked = -1;
  protected value: Uint8Array | undefined;
  protected hits = 0;
  /** Of an echo the length alone is checked. */
  protected echo = false;

  constructor(
    dataset: Dataset,
    state: State,
    protected readonly trace: PointTrace,
  ) {
    super(dataset, state);
    this.calls = trace.numbers.length;
  }

  abstract run(from: number, to: number): void | Promise<void>;
  abstract finish(): void;

  check(from: number, to: number): void {
    const { numbers, values } = this.trace;
    const { tally, hits } = this;
    const { keyBytes, valueBytes } = this.dataset;
    let reads = 0;
    let sets = 0;
    for (let i = from; i < to; i++) {
      const number = numbers[i] as number;
      const value = values[i] as number;
      if (value === GET) {
        reads++;
        if (i === this.picked) this.#checkPicked(number);
      } else {
        this.state[number] = value === DELETE ? ABSENT : value;
        if (value !== DELETE) sets++;
      }
    }
    tally.ops += to - from;
    tally.reads += reads;
    tally.hits += hits;
    tally.bytes += (to - from) * keyBytes + (hits + sets) * valueBytes;
    this.hits = 0;
    this.picked = -1;
    this.value = undefined;
  }

  #checkPicked(number: number): void {
    if (this.echo) this.tally.wrong += this.value?.length === this.dataset.valueBytes ? 0 : 1;
    else if (!this.trace.absent) this.expect(number, this.value);
    else if (this.value !== undefined) this.tally.wrong++;
  }
}

export class SyncPoints extends Points {
  #touched = 0;

  constructor(
    private readonly session: SyncSession,
    dataset: Dataset,
    state: State,
    trace: PointTrace,
  ) {
    super(dataset, state, trace);
  }

  run(from: number, to: number): void {
    const { only } = this.trace;
    if (only === 'set') this.#sets(from, to);
    else if (only === 'get') this.#gets(from, to);
    else if (only === 'delete') this.#deletes(from, to);
    else this.#mixed(from, to);
  }

  finish(): void {
    this.session.commit();
    if (this.#touched < 0) this.tally.wrong++;
  }

  #sets(from: number, to: number): void {
    const session = this.session;
    const { keys, numbers, values } = this.trace;
    const { pool } = this.dataset;
    for (let i = from; i < to; i++) {
      session.set(keys[numbers[i] as number] as string, pool[values[i] as number] as Uint8Array);
    }
  }

  #gets(from: number, to: number): void {
    const session = this.session;
    const { keys, numbers } = this.trace;
    const picked = from + this.random.below(to - from);
    let hits = 0;
    let touched = 0;
    for (let i = from; i < to; i++) {
      const value = session.get(keys[numbers[i] as number] as string);
      if (value !== undefined) {
        hits++;
        touched += value[0] as number;
      }
      if (i === picked) this.value = value;
    }
    this.picked = picked;
    this.hits += hits;
    this.#touched += touched;
  }

  #deletes(from: number, to: number): void {
    const session = this.session;
    const { keys, numbers } = this.trace;
    for (let i = from; i < to; i++) session.delete(keys[numbers[i] as number] as string);
  }

  #mixed(from: number, to: number): void {
    const session = this.session;
    const { keys, numbers, values } = this.trace;
    const { pool } = this.dataset;
    this.picked = from + this.random.below(to - from);
    for (let i = from; i < to; i++) {
      const key = keys[numbers[i] as number] as string;
      const set = values[i] as number;
      if (set >= 0) {
        session.set(key, pool[set] as Uint8Array);
        continue;
      }
      const value = session.get(key);
      if (value !== undefined) {
        this.hits++;
        this.#touched += value[0] as number;
      }
      if (i === this.picked) this.value = value;
    }
  }
}

export class AsyncPoints extends Points {
  readonly #planned: readonly PointCall[];

  constructor(
    private readonly session: AsyncSession,
    dataset: Dataset,
    state: State,
    trace: PointTrace,
    private readonly how: { waves: boolean; echo: boolean },
  ) {
    super(dataset, state, trace);
    this.echo = how.echo;
    this.#planned = Array.from(trace.numbers, (number, i) => {
      const value = at(trace.values, i);
      const written = value === DELETE ? null : value === GET ? undefined : at(dataset.pool, value);
      return { key: at(trace.keys, number), value: written };
    });
  }

  async run(from: number, to: number): Promise<void> {
    const picked = from + this.random.below(to - from);
    this.picked = picked;
    const session = this.session;
    if (this.how.waves) {
      const values = await session.wave(this.#planned.slice(from, to));
      for (const value of values) if (value !== undefined) this.hits++;
      this.value = values[picked - from];
      return;
    }
    for (let i = from; i < to; i++) {
      const { key, value } = this.#planned[i] as PointCall;
      if (value === undefined) {
        const delivered = await session.get(key);
        if (delivered !== undefined) this.hits++;
        if (i === picked) this.value = delivered;
      } else if (value === null) await session.delete(key);
      else await session.set(key, value);
    }
  }

  finish(): void {
    // Every call was awaited.
  }
}
