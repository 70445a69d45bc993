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
  const { keys } = dataset;
  const due = liveInOrder(dataset, state);
  let place = 0;
  let wrong: string | undefined;
  await walk(session, (key, value) => {
    const number = due[place++];
    const isDue = number !== undefined && compareKeys(at(keys, number), key) === 0;
    if (isDue) wrong = difference(key, value, number, dataset, state);
    else wrong = `The key ${String(key)} came where ${number === undefined ? 'none' : String(keys[number])} was due.`;
    return wrong === undefined;
  });
  if (wrong !== undefined || place >= due.length) return wrong;
  return `The key ${String(keys[at(due, place)])} is missing from the ranges.`;
}

/** Delivers every entry once, in the order of keys, until `take` answers false. A page begins with the last entry of the one before. */
export async function walk(session: Session, take: (key: Key, value: Uint8Array) => boolean): Promise<void> {
  let last: Key | undefined;
  for (let isLast = false; !isLast; ) {
    const from = last;
    let count = 0;
    await session.range(from, PAGE, {
      take: (key, value) => {
        count++;
        if (isLast || (from !== undefined && compareKeys(key, from) === 0)) return;
        last = key;
        isLast = !take(key, value);
      },
    });
    isLast ||= count < PAGE;
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
