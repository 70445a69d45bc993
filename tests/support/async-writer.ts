// Writes a history through `varve`, many groups pending at a time, and reads the remains of a history.

import type { Store } from 'varve';
import { type Found, fill, type Group, groupOf, type Plan, type Report, stampOf, storedBy } from './history.ts';
import { Reading } from './reading.ts';

/** Groups that are pending before the writer waits for the oldest. */
const PENDING_MAX = 32;

/** Reads all of a store, forwards, backwards and by key. */
export async function read(db: Store<number, unknown>): Promise<Found> {
  const { sequence } = await db.stats();
  const reading = new Reading();
  for await (const [key, value] of db.entries()) reading.forwards(key, value);
  for await (const key of db.keys({ reverse: true })) reading.backwards(key);
  await Promise.all(reading.entries.map(async ([key, stamp]) => reading.byKey(key, stamp, await db.getEntry(key))));
  return reading.found(db.recovery.state, sequence);
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
  fill(batch, group, round, sequence);
  await batch.commit({ durability });
}

/**
 * Writes a history until this many sets are done, many groups pending at a time; returns how many groups are acknowledged, and
 * reports it meanwhile.
 */
export async function write(db: Store<number, unknown>, plan: Plan, setsMax: number, report: Report): Promise<number> {
  const pending: Promise<void>[] = [];
  let { sequence } = plan;
  let sets = 0;
  let acknowledged = 0;
  for (let index = 0; sets < setsMax; index++) {
    const group = groupOf(plan, index);
    const writing = send(db, group, plan.round, sequence + 1).then(() => {
      sets += group.ops.filter((op) => op.kind === 'set').length;
      if (group.durability === 'memory') return;
      acknowledged = index + 1;
      report(acknowledged, sets);
    });
    // The code that waits for it gets the error.
    writing.catch(() => undefined);
    sequence += group.ops.length;
    pending.push(writing);
    if (group.wait) await Promise.all(pending.splice(0));
    else if (pending.length >= PENDING_MAX) await pending.shift();
  }
  await Promise.all(pending);
  return acknowledged;
}
