// Writes a history through `varve`, many groups in flight at a time, and reads what is left of one.

import type { Store } from 'varve';
import {
  type Found,
  type Group,
  groupOf,
  type Plan,
  sequenceOf,
  stampIn,
  stampOf,
  storedBy,
  type Tell,
} from './history.ts';

/** Groups in flight before the writer waits for the oldest. */
const IN_FLIGHT_MAX = 32;

/** Reads all of a store, forwards, backwards and by key. */
export async function read(db: Store<number, unknown>): Promise<Found> {
  const { sequence } = await db.stats();
  const entries: [number, number][] = [];
  const faults: string[] = [];
  for await (const [key, value] of db.entries()) {
    const stamp = stampIn(value);
    if (stamp === undefined) faults.push(`key ${key} has a value that nobody wrote`);
    entries.push([key, stamp ?? -1]);
  }
  let at = entries.length;
  for await (const key of db.keys({ reverse: true })) {
    if (entries[--at]?.[0] !== key) faults.push(`key ${key} comes ${at}th from the end`);
  }
  if (at !== 0) faults.push(`${at} keys do not come backwards`);
  await Promise.all(
    entries.map(async ([key, stamp]) => {
      const entry = await db.getEntry(key);
      if (stampIn(entry?.value) !== stamp) faults.push(`key ${key} is read and scanned differently`);
      if (entry?.sequence !== sequenceOf(stamp)) faults.push(`key ${key} has sequence ${entry?.sequence} of ${stamp}`);
    }),
  );
  return { state: db.recovery.state, sequence, entries, faults };
}

/** Sends a group; `sequence` is that of its first operation. */
async function send(db: Store<number, unknown>, group: Group, round: number, sequence: number): Promise<void> {
  const { durability } = group;
  const [op] = group.ops;
  if (group.ops.length === 1 && op !== undefined) {
    if (op.kind === 'set') await db.set(op.key, storedBy(stampOf(round, sequence)), { durability });
    else if (op.kind === 'delete') await db.delete(op.key, { durability });
    else await db.deleteRange({ gte: op.from, lt: op.to }, { durability });
    return;
  }
  const batch = db.batch();
  group.ops.forEach((one, i) => {
    if (one.kind === 'set') batch.set(one.key, storedBy(stampOf(round, sequence + i)));
    else if (one.kind === 'delete') batch.delete(one.key);
    else batch.deleteRange({ gte: one.from, lt: one.to });
  });
  await batch.commit({ durability });
}

/**
 * Writes a history until so many sets are done, many groups in flight at a time; answers how many groups are acknowledged,
 * and tells it while it goes on.
 */
export async function write(db: Store<number, unknown>, plan: Plan, setsMax: number, tell: Tell): Promise<number> {
  const flying: Promise<void>[] = [];
  let { sequence } = plan;
  let sets = 0;
  let acknowledged = 0;
  for (let index = 0; sets < setsMax; index++) {
    const group = groupOf(plan, index);
    const flight = send(db, group, plan.round, sequence + 1).then(() => {
      sets += group.ops.filter((op) => op.kind === 'set').length;
      if (group.durability === 'memory') return;
      acknowledged = index + 1;
      tell(acknowledged, sets);
    });
    // Whoever waits for it hears of a failure.
    flight.catch(() => undefined);
    sequence += group.ops.length;
    flying.push(flight);
    if (group.wait) await Promise.all(flying.splice(0));
    else if (flying.length >= IN_FLIGHT_MAX) await flying.shift();
  }
  await Promise.all(flying);
  return acknowledged;
}
