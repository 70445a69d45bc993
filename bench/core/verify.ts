/**
 * The pass over the whole store after a measurement: every key that must be there, its bytes, and no key besides.
 *
 * Engines with ranges are walked from the first entry to the last; those that answer at once are asked for every key
 * as well. Nothing here is timed.
 */

import type { Engine, Session, Sink } from './engine.ts';
import { at, compareKeys, type Dataset, type Key, sameBytes } from './generator.ts';
import { ABSENT, type State } from './trace.ts';

const PAGE = 1000;

/** Walks the store; answers with what is wrong, or undefined. */
export async function verifyStore(
  engine: Engine,
  session: Session,
  dataset: Dataset,
  state: State,
): Promise<string | undefined> {
  if (engine.echo) return undefined;
  const ordered = engine.abilities.includes('range');
  // Engines without ranges read their file again, so that what is checked is what it holds.
  await session.settle('anywhere', 0);
  const walked = ordered ? await verifyByRanges(session, dataset, state) : undefined;
  return walked ?? (session.kind === 'sync' || !ordered ? verifyByGets(session, dataset, state) : undefined);
}

async function verifyByGets(session: Session, dataset: Dataset, state: State): Promise<string | undefined> {
  for (let number = 0; number < state.length; number++) {
    const key = at(dataset.keys, number);
    const answer = session.get(key);
    const value = answer instanceof Promise ? await answer : answer;
    const wrong = difference(key, value, number, dataset, state);
    if (wrong !== undefined) return wrong;
  }
  return undefined;
}

async function verifyByRanges(session: Session, dataset: Dataset, state: State): Promise<string | undefined> {
  const walker = new Walker(dataset, state);
  for (let from: Key | undefined; ; from = walker.last) {
    const before = walker.count;
    walker.again = from;
    await session.range(from, PAGE, walker);
    if (walker.wrong !== undefined || walker.count - before < PAGE - 1) break;
  }
  return walker.wrong ?? walker.missing();
}

/** Compares what ranges deliver with the state, in key order. A page begins with the last entry of the one before. */
class Walker implements Sink {
  readonly #dataset: Dataset;
  readonly #state: State;
  #place = 0;
  count = 0;
  last: Key | undefined;
  again: Key | undefined;
  wrong: string | undefined;

  constructor(dataset: Dataset, state: State) {
    this.#dataset = dataset;
    this.#state = state;
  }

  take(key: Key, value: Uint8Array): void {
    if (this.wrong !== undefined) return;
    if (this.again !== undefined && compareKeys(key, this.again) === 0) return;
    this.count++;
    this.last = key;
    const number = this.#next();
    if (number === undefined || compareKeys(at(this.#dataset.keys, number), key) !== 0) {
      this.wrong = `The key ${String(key)} came where ${number === undefined ? 'none' : String(this.#dataset.keys[number])} was due.`;
      return;
    }
    this.wrong = difference(key, value, number, this.#dataset, this.#state);
  }

  /** The key that the walk should have met and did not. */
  missing(): string | undefined {
    const number = this.#next();
    return number === undefined
      ? undefined
      : `The key ${String(this.#dataset.keys[number])} is missing from the ranges.`;
  }

  #next(): number | undefined {
    const { sorted } = this.#dataset;
    while (this.#place < sorted.length && this.#state[at(sorted, this.#place)] === ABSENT) this.#place++;
    return sorted[this.#place++];
  }
}

function difference(
  key: Key,
  value: Uint8Array | undefined,
  number: number,
  dataset: Dataset,
  state: State,
): string | undefined {
  const held = at(state, number);
  if (held === ABSENT) return value === undefined ? undefined : `The key ${String(key)} should be absent.`;
  if (value === undefined) return `The key ${String(key)} is missing.`;
  return sameBytes(value, at(dataset.pool, held))
    ? undefined
    : `The key ${String(key)} has other bytes than were written.`;
}
