// Updates, transactions, sets and deletions of a few keys that are called together. Each value is the list of the calls that made it. So
// no order can explain a call that was lost, that was done twice, or that did not read at one sequence.

import type { Key, Store, Transaction } from 'varve';
import type { SyncStore, SyncTransaction } from 'varve/synchronous';
import { RACING_KEYS, type Racing, TICK_MS } from './history.ts';
import type { Apply } from './orders.ts';
import { textOf } from './values.ts';

type AnyStore = Store<Key, unknown> | SyncStore<Key, unknown>;
type AnyTransaction = Transaction<Key, unknown> | SyncTransaction<Key, unknown>;

interface List {
  readonly calls: readonly number[];
  /** The last tick in which it lives. */
  readonly dies: number | undefined;
}

/** The values of the keys, by number, and the present tick. */
export interface RacingState {
  readonly ticks: number;
  readonly lists: ReadonlyMap<number, List>;
}

/** A call with its own number. */
export interface TaggedCall {
  readonly call: Racing;
  readonly tag: number;
}

const keyOf = (key: number): Key => ['c', key];
const ALL = { prefix: ['c'] };

function live({ lists, ticks }: RacingState, key: number): List | undefined {
  const list = lists.get(key);
  return list?.dies !== undefined && list.dies < ticks ? undefined : list;
}

/** A text of the whole content. */
export function racingText(state: RacingState): string {
  const texts = Array.from({ length: RACING_KEYS }, (_, key) => {
    const list = live(state, key);
    return list === undefined ? '-' : `${textOf(list.calls)} until ${list.dies}`;
  });
  return texts.join('; ');
}

/** The content of the store; `start` is when the history began, in milliseconds. */
export async function racingFound(db: AnyStore, ticks: number, start: number): Promise<RacingState> {
  const lists = new Map<number, List>();
  for (let key = 0; key < RACING_KEYS; key++) {
    const entry = await db.getEntry(keyOf(key));
    if (entry === undefined) continue;
    const dies = entry.expiresAt === undefined ? undefined : Math.floor((entry.expiresAt.getTime() - start) / TICK_MS);
    lists.set(key, { calls: entry.value as number[], dies });
  }
  return { ticks, lists };
}

/** The effect of a call on the keys. */
export const applyRacing: Apply<RacingState, TaggedCall> = (state, { call, tag }) => {
  const { ticks } = state;
  const lists = new Map(state.lists);
  const done = (answer: string) => ({ state: { ticks, lists }, answer });
  switch (call.op) {
    case 'set':
      lists.set(call.key, { calls: [tag], dies: call.life === undefined ? undefined : ticks + call.life });
      return done('done');
    case 'delete':
      lists.delete(call.key);
      return done('done');
    case 'deleteAll':
      lists.clear();
      return done('done');
    case 'update': {
      if (call.throws) return done('threw');
      const old = live(state, call.key);
      const { lifetime } = call;
      const dies = lifetime === 'kept' ? old?.dies : lifetime === 'dropped' ? undefined : ticks + lifetime;
      lists.set(call.key, { calls: [...(old?.calls ?? []), tag], dies });
      return done(textOf(old?.calls));
    }
    case 'transaction': {
      if (call.throws) return done('threw');
      const count = Array.from({ length: RACING_KEYS }, (_, key) => live(state, key)).filter(Boolean).length;
      const seen = call.reads.map((key) => textOf(live(state, key)?.calls));
      for (const key of call.appends) {
        lists.set(key, { calls: [...(live({ ticks, lists }, key)?.calls ?? []), tag], dies: undefined });
      }
      return done([...seen, call.counts ? count : '-'].join('; '));
    }
  }
};

const THROWN = new Error('The function of the caller threw.');

/** Makes a call; resolves with its answer. The call is made in its turn, as far as it runs synchronously. */
export async function callRacing(db: AnyStore, { call, tag }: TaggedCall, turn: () => Promise<void>): Promise<string> {
  switch (call.op) {
    case 'set':
      await db.set(keyOf(call.key), [tag], call.life === undefined ? {} : { expiresIn: (call.life + 0.5) * TICK_MS });
      return 'done';
    case 'delete':
      await db.delete(keyOf(call.key));
      return 'done';
    case 'deleteAll':
      await db.deleteRange(ALL);
      return 'done';
    case 'update':
      return orThrew(() => update(db, call, tag, turn));
    case 'transaction':
      return orThrew(() => transaction(db, call, tag, turn));
  }
}

async function orThrew(run: () => Promise<string>): Promise<string> {
  try {
    return await run();
  } catch (error) {
    if (error === THROWN) return 'threw';
    throw error;
  }
}

async function update(
  db: AnyStore,
  { key, waits, throws, lifetime }: Racing & { op: 'update' },
  tag: number,
  turn: () => Promise<void>,
): Promise<string> {
  let seen = '';
  const change = (value: unknown): number[] => {
    if (throws) throw THROWN;
    seen = textOf(value);
    return [...((value ?? []) as number[]), tag];
  };
  const later = async (value: unknown): Promise<number[]> => {
    for (let i = 0; i < waits; i++) await turn();
    return change(value);
  };
  const options = lifetime === 'kept' ? {} : { expiresIn: lifetime === 'dropped' ? null : (lifetime + 0.5) * TICK_MS };
  if (isAsync(db)) await db.update(keyOf(key), waits > 0 ? later : change, options);
  else db.update(keyOf(key), change, options);
  return seen;
}

/** The work of a transaction; it yields the promises that it waits for, if any. */
function* body(
  tx: AnyTransaction,
  { reads, appends, counts, throws }: Racing & { op: 'transaction' },
  tag: number,
): Generator<unknown, string, unknown> {
  const answers: string[] = [];
  for (const key of reads) answers.push(textOf(yield tx.get(keyOf(key))));
  answers.push(counts ? String(yield tx.count(ALL)) : '-');
  for (const key of appends) {
    const list = ((yield tx.get(keyOf(key))) ?? []) as number[];
    tx.set(keyOf(key), [...list, tag]);
  }
  if (throws) throw THROWN;
  return answers.join('; ');
}

async function transaction(
  db: AnyStore,
  call: Racing & { op: 'transaction' },
  tag: number,
  turn: () => Promise<void>,
): Promise<string> {
  if (!isAsync(db)) {
    const run = (tx: SyncTransaction<Key, unknown>): string => {
      const steps = body(tx, call, tag);
      let step = steps.next();
      while (step.done !== true) step = steps.next(step.value);
      return step.value;
    };
    if (call.handle === undefined) return db.transaction(run);
    using tx = db.begin({ exclusive: call.handle === 'exclusive' });
    const answer = run(tx);
    tx.commit();
    return answer;
  }
  const run = async (tx: Transaction<Key, unknown>): Promise<string> => {
    const steps = body(tx, call, tag);
    for (let step = steps.next(); ; ) {
      if (step.done === true) return step.value;
      const value = await step.value;
      for (let i = 0; i < call.waits; i++) await turn();
      step = steps.next(value);
    }
  };
  if (call.handle === undefined) return db.transaction(run);
  for (;;) {
    await using tx = await db.begin({ exclusive: call.handle === 'exclusive' });
    try {
      const answer = await run(tx);
      await tx.commit();
      return answer;
    } catch (error) {
      // As `transaction()` does by itself.
      const { code } = error as { code?: unknown };
      if (code !== 'VARVE_CONFLICT' && code !== 'VARVE_RETRY') throw error;
    }
  }
}

function isAsync(db: AnyStore): db is Store<Key, unknown> {
  return 'changes' in db;
}
