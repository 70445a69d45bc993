/**
 * Transactions: each gets a few entries and sets all of them, or nothing. Awaited one by one, or a wave of them under way.
 *
 * Invariant: the keys of a round do not come twice before all were used, so transactions that are under way together do not
 * touch the same ones, and none has to be made again for a conflict.
 */

import type { BatchEntries, Session } from '../engine.ts';
import { at, type Dataset } from '../generator.ts';
import type { BatchTrace, State } from '../trace.ts';
import { entriesOf, type Task, TaskBase } from './task.ts';

type Values = readonly (Uint8Array | undefined)[];

export class Transactions extends TaskBase implements Task {
  readonly calls: number;
  readonly #session: Session;
  readonly #traces: readonly BatchTrace[];
  readonly #entries: readonly BatchEntries[];
  readonly #waves: boolean;
  #found: Values[] = [];

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
    if (session.transact === undefined) throw new Error('The session has no transactions.');
    if (session.kind === 'async') return this.#await(from, to);
    for (let i = from; i < to; i++) this.#found[i - from] = session.transact(this.#entries[i] as BatchEntries);
  }

  finish(): void {
    // Every transaction was committed.
  }

  check(from: number, to: number): void {
    for (let i = from; i < to; i++) {
      const { numbers, values } = at(this.#traces, i);
      const found = at(this.#found, i - from);
      numbers.forEach((number, entry) => {
        this.expect(number, found[entry]);
        this.state[number] = at(values, entry);
        this.tally.hits += Number(found[entry] !== undefined);
      });
      this.tally.ops++;
      this.tally.reads += numbers.length;
      this.tally.bytes += 2 * numbers.length * this.entryBytes;
    }
    this.#found = [];
  }

  async #await(from: number, to: number): Promise<void> {
    const session = this.#session;
    if (session.kind === 'sync' || session.transact === undefined) return;
    const calls = this.#entries.slice(from, to);
    if (this.#waves) {
      this.#found = await Promise.all(calls.map((entries) => session.transact?.(entries) ?? []));
      return;
    }
    for (const entries of calls) this.#found.push(await session.transact(entries));
  }
}
