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

/** A key and its value; undefined: it must be absent. */
type Due<V = Uint8Array> = readonly (readonly [Key, V])[];

/** Compares the store with its state; answers with what is wrong, or undefined. */
export function verifyStore(
  engine: Engine,
  session: Session,
  dataset: Dataset,
  state: State,
): Promise<string | undefined> {
  const heldBy = (number: number): Uint8Array => at(dataset.pool, at(state, number));
  const due = Array.from(liveInOrder(dataset, state), (number) => [at(dataset.keys, number), heldBy(number)] as const);
  const asked = dataset.keys.map((key, number) => {
    return [key, state[number] === ABSENT ? undefined : heldBy(number)] as const;
  });
  return verifyEntries(engine, session, due, asked);
}

/** The same with the entries that are due, in the order of keys. */
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
  let place = 0;
  let wrong: string | undefined;
  for (let count = PAGE; count === PAGE && wrong === undefined; ) {
    const from = last;
    count = 0;
    await session.range(from, PAGE, {
      take: (key, value) => {
        count++;
        if (wrong !== undefined || (from !== undefined && compareKeys(key, from) === 0)) return;
        last = key;
        const entry = due[place++];
        if (entry === undefined || compareKeys(entry[0], key) !== 0) {
          wrong = `The key ${String(key)} came where ${entry === undefined ? 'none' : String(entry[0])} was due.`;
        } else if (!sameBytes(value, entry[1])) wrong = otherBytes(key);
      },
    });
  }
  if (wrong !== undefined || place >= due.length) return wrong;
  return `The key ${String(at(due, place)[0])} is missing from the ranges.`;
}

function otherBytes(key: Key): string {
  return `The key ${String(key)} has other bytes than were written.`;
}
