/**
 * Single calls: to a session that answers at once; to one that answers with promises, each awaited before the next, or a
 * wave of them together.
 *
 * Invariant: a loop has nothing in it but the calls and the look-up of their arguments. A get from a session that answers at once
 * also touches the first byte of the value, so that a value that was not delivered could not go unnoticed. A wave is what its
 * session makes of it (`wave`); its calls are laid out before the clock starts.
 */

import type { AsyncSession, PointCall, SyncSession } from '../engine.ts';
import { at, compareKeys, type Key } from '../generator.ts';
import type { Stage } from '../stage.ts';
import { ABSENT, argumentOf, DELETE, GET, isGet, isScan, type PointTrace } from '../trace.ts';
import { type LastEntry, rangeOf, type Task, TaskBase } from './task.ts';

export class Points extends TaskBase implements Task {
  readonly calls: number;
  readonly isRead: PointTrace['isRead'];
  readonly #planned: readonly PointCall[];
  #picked = -1;
  #value: Uint8Array | undefined;
  #hits = 0;
  #touched = 0;
  readonly #ranges: LastEntry[] = [];
  #places: Uint32Array | undefined;

  constructor(
    private readonly stage: Pick<Stage, 'engine' | 'session' | 'dataset' | 'state'>,
    private readonly trace: PointTrace,
    private readonly waves: boolean,
  ) {
    super(stage.dataset, stage.state, stage.engine.echo);
    this.calls = trace.numbers.length;
    this.isRead = trace.isRead;
    this.#planned = waves ? Array.from(trace.numbers, (_, call) => this.#plannedOf(call)) : [];
  }

  run(from: number, to: number): void | Promise<void> {
    const { session } = this.stage;
    this.#picked = from + this.random.below(to - from);
    if (session.kind === 'sync') this.#atOnce(session, from, to);
    else return this.waves ? this.#together(session, from, to) : this.#oneByOne(session, from, to);
  }

  finish(): void {
    const { session } = this.stage;
    if (session.kind === 'sync') session.commit();
    if (this.#touched < 0) this.tally.wrong++;
  }

  check(from: number, to: number): void {
    const { numbers, values } = this.trace;
    const { tally } = this;
    const { keyBytes, valueBytes } = this.dataset;
    let [reads, writes, sets] = [0, 0, 0];
    for (let i = from; i < to; i++) {
      const number = numbers[i] as number;
      const value = values[i] as number;
      if (isScan(value)) {
        this.#checkRange(number, argumentOf(value));
        continue;
      }
      if (isGet(value)) {
        reads++;
        if (i === this.#picked) this.#checkPicked(number);
      }
      if (value === GET) continue;
      writes++;
      this.state[number] = value === DELETE ? ABSENT : argumentOf(value);
      if (value !== DELETE) sets++;
    }
    tally.ops += to - from;
    tally.reads += reads;
    tally.hits += this.#hits;
    tally.bytes += (reads + writes) * keyBytes + (this.#hits + sets) * valueBytes;
    this.#hits = 0;
    this.#picked = -1;
    this.#value = undefined;
  }

  #atOnce(session: SyncSession, from: number, to: number): void {
    const { keys, numbers, values } = this.trace;
    const { pool } = this.dataset;
    const picked = this.#picked;
    let hits = 0;
    let touched = 0;
    for (let i = from; i < to; i++) {
      const key = keys[numbers[i] as number] as Key;
      const value = values[i] as number;
      if (isGet(value)) {
        const found = session.get(key);
        if (found !== undefined) {
          hits++;
          touched += found[0] as number;
        }
        if (i === picked) this.#value = found;
        if (value === GET) continue;
      }
      if (value === DELETE) session.delete(key);
      else if (isScan(value)) this.#ranges.push(rangeOf(session, key, argumentOf(value)) as LastEntry);
      else session.set(key, pool[argumentOf(value)] as Uint8Array);
    }
    this.#hits = hits;
    this.#touched += touched;
  }

  async #oneByOne(session: AsyncSession, from: number, to: number): Promise<void> {
    const { keys, numbers, values } = this.trace;
    const { pool } = this.dataset;
    for (let i = from; i < to; i++) {
      const key = keys[numbers[i] as number] as Key;
      const value = values[i] as number;
      if (isGet(value)) {
        const found = await session.get(key);
        if (found !== undefined) this.#hits++;
        if (i === this.#picked) this.#value = found;
        if (value === GET) continue;
      }
      if (value === DELETE) await session.delete(key);
      else if (isScan(value)) this.#ranges.push(await rangeOf(session, key, argumentOf(value)));
      else await session.set(key, pool[argumentOf(value)] as Uint8Array);
    }
  }

  async #together(session: AsyncSession, from: number, to: number): Promise<void> {
    const found = await session.wave(this.#planned.slice(from, to));
    for (const value of found) if (value !== undefined) this.#hits++;
    this.#value = found[this.#picked - from];
  }

  #plannedOf(call: number): PointCall {
    const { keys, numbers, values } = this.trace;
    const value = at(values, call);
    const written = value === DELETE ? null : value === GET ? undefined : at(this.dataset.pool, value);
    return { key: at(keys, at(numbers, call)), value: written };
  }

  #checkPicked(number: number): void {
    if (!this.trace.absent) this.expect(number, this.#value);
    else if (this.#value !== undefined) this.tally.wrong++;
  }

  /** A range begins at its key and delivers what is there behind it, up to its size. */
  #checkRange(number: number, size: number): void {
    const { keys, sorted } = this.dataset;
    this.#places ??= placesOf(sorted);
    const found = this.#ranges.shift() as LastEntry;
    let count = 0;
    let last = number;
    for (let place = at(this.#places, number); place < sorted.length && count < size; place++) {
      if (this.state[at(sorted, place)] === ABSENT) continue;
      count++;
      last = at(sorted, place);
    }
    this.tally.reads += count;
    this.tally.hits += found.count;
    this.tally.bytes += found.count * this.entryBytes;
    if (found.count !== count || compareKeys(found.key, at(keys, last)) !== 0) this.tally.wrong++;
    else this.expect(last, found.value);
  }
}

function placesOf(sorted: Uint32Array): Uint32Array {
  const places = new Uint32Array(sorted.length);
  sorted.forEach((number, place) => {
    places[number] = place;
  });
  return places;
}
