// Writes a history through `varve/synchronous`, some groups a turn, and reads the remains of a history.

import type { SyncStore, WriteOptions } from 'varve/synchronous';
import { nextTurn } from '../../js/src/runtime/turn.ts';
import { type Found, fill, type Group, groupOf, type Plan, type Report, stampOf, storedBy } from './history.ts';
import { randomFrom } from './random.ts';
import { Reading } from './reading.ts';

/** Reads all of a store, forwards, backwards and by key. */
export function read(db: SyncStore<number, unknown>): Found {
  const { sequence } = db.stats();
  const reading = new Reading();
  for (const [key, value] of db.entries()) reading.forwards(key, value);
  for (const key of db.keys({ reverse: true })) reading.backwards(key);
  for (const [key, stamp] of reading.entries) reading.byKey(key, stamp, db.getEntry(key));
  return reading.found(db.recovery.state, sequence);
}

/** Applies a group; `sequence` is that of its first operation. The end of the turn gives the level relaxed. */
function apply(db: SyncStore<number, unknown>, group: Group, round: number, sequence: number): void {
  const options: WriteOptions = group.durability === 'relaxed' ? {} : { durability: group.durability };
  const [op] = group.ops;
  if (group.ops.length === 1 && op !== undefined) {
    if (op.kind === 'set') db.set(op.key, storedBy(stampOf(round, sequence)), options);
    else if (op.kind === 'delete') db.delete(op.key, options);
    else db.deleteRange({ gte: op.from, lt: op.to }, options);
    return;
  }
  const batch = db.batch();
  fill(batch, group, round, sequence);
  batch.commit(options);
}

/**
 * Writes a history until this many sets are done, some groups a turn; returns how many groups are acknowledged, and reports it
 * meanwhile.
 */
export async function write(
  db: SyncStore<number, unknown>,
  plan: Plan,
  setsMax: number,
  report: Report,
): Promise<number> {
  const random = randomFrom(plan.seed, plan.round, -1);
  let { sequence } = plan;
  let sets = 0;
  let index = 0;
  while (sets < setsMax) {
    for (const end = index + 1 + random(12); index < end; index++) {
      const group = groupOf(plan, index);
      apply(db, group, plan.round, sequence + 1);
      sequence += group.ops.length;
      sets += group.ops.filter((op) => op.kind === 'set').length;
      if (group.durability === 'strict') report(index + 1, sets);
    }
    if (random(3) === 0) db.commit();
    else await nextTurn();
    report(index, sets);
  }
  return index;
}
