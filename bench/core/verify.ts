/**
 * The pass over the whole store after a measurement: every key that must be there, its bytes, and no key besides.
 *
 * Engines with ranges are walked from the first entry to the last; those that answer at once are asked for every key
 * as well. Nothing here is timed.
 */

import type { Engine, Session } from './engine.ts';
import { at, compareKeys, type Dataset, type Key, sameBytes } from './generator.ts';
import { ABSENT, liveInOrder, type State } from './trace.ts';

const PAGE = 1000;

/** Keys and their values; undefined: the key must be absent. There may be millions, so they come one by one. */
type Due<V = Uint8Array> = Iterable<readonly [Key, V]>;

/** Compares the store with its state; answers with what is wrong, or undefined. */
export function verifyStore(engine: Engine, session: Session, dataset: Dataset, state: State) {
  const { keys, pool } = dataset;
  const heldBy = (number: number): Uint8Array => at(pool, at(state, number));
  function* due(): Generator<readonly [Key, Uint8Array]> {
    for (const number of liveInOrder(dataset, state)) yield [at(keys, number), heldBy(number)];
  }
  function* asked(): Generator<readonly [Key, Uint8Array | undefined]> {
    for (const [number, key] of keys.entries()) yield [key, state[number] === ABSENT ? undefined : heldBy(number)];
  }
  return verifyEntries(engine, session, due(), asked());
}

export async function verifyEntries(
  engine: Engine,
  session: Session,
  due: Due,
  asked: Due<Uint8Array | undefined> = due,
): Promise<string | undefined> {
  if (engine.echo) return undefined;
  const ordered = engine.abilities.includes('range');
  // Engines without ranges read their file again, so that what is checked is what it holds.
  await session.settle('anywhere', 0);
  const walked = ordered ? await verifyByRanges(session, due) : undefined;
  return walked ?? (session.kind === 'sync' || !ordered ? verifyByGets(session, asked) : undefined);
}

async function verifyByGets(session: Session, asked: Due<Uint8Array | undefined>): Promise<string | undefined> {
  for (const [key, wanted] of asked) {
    const answer = session.get(key);
    const value = answer instanceof Promise ? await answer : answer;
    if (wanted === undefined && value !== undefined) return `The key ${String(key)} should be absent.`;
    if (wanted !== undefined && value === undefined) return `The key ${String(key)} is missing.`;
    if (wanted !== undefined && value !== undefined && !sameBytes(value, wanted)) return otherBytes(key);
  }
  return undefined;
}

/** A page begins with the last entry of the one before, which is not looked at again. */
async function verifyByRanges(session: Session, due: Due): Promise<string | undefined> {
  let last: Key | undefined;
  const entries = due[Symbol.iterator]();
  let wrong: string | undefined;
  for (let count = PAGE; count === PAGE && wrong === undefined; ) {
    const from = last;
    count = 0;
    await session.range(from, PAGE, {
      take: (key, value) => {
        count++;
        if (wrong !== undefined || (from !== undefined && compareKeys(key, from) === 0)) return;
        last = key;
        const [wanted, held] = entries.next().value ?? [];
        if (wanted === undefined || compareKeys(wanted, key) !== 0) {
          wrong = `The key ${String(key)} came where ${String(wanted ?? 'none')} was due.`;
        } else if (!sameBytes(value, held as Uint8Array)) wrong = otherBytes(key);
      },
    });
  }
  const left = wrong === undefined ? entries.next() : { done: true as const };
  return left.done ? wrong : `The key ${String(left.value[0])} is missing from the ranges.`;
}

function otherBytes(key: Key): string {
  return `The key ${String(key)} has other bytes than were written.`;
}
