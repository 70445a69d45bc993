// Calls that must be refused and change nothing: values that are too long, and unknown options.

import type { Key, Store } from 'varve';
import type { SyncStore } from 'varve/synchronous';
import type { Refused } from './history.ts';
import { KEYS } from './keys.ts';

type AnyStore = Store<Key, unknown> | SyncStore<Key, unknown>;

/**
 * The first length that is too large, and a length that an engine cannot even copy. Nothing writes to such an array, so it takes no
 * memory.
 */
const TOO_LONG = [2 ** 27, 800 * 2 ** 20] as const;
const arrays = new Map<number, Uint8Array>();

function tooLong(bytes: number): Uint8Array {
  const value = arrays.get(bytes) ?? new Uint8Array(bytes);
  arrays.set(bytes, value);
  return value;
}

/** Sets a value that is too long; each function does it in another way. */
const SETTING: readonly ((db: AnyStore, key: Key, value: unknown) => unknown)[] = [
  (db, key, value) => db.set(key, value),
  (db, key, value) => db.batch().set(key, 'short').set(key, value).commit(),
  (db, key, value) =>
    db.setMany([
      [key, 'short'],
      [key, value],
    ]),
  (db, key, value) => db.update(key, () => value),
  (db, key, value) => db.transaction((tx) => void tx.set(key, value)),
];

/** An option that no call of a store knows; the compiler alone would refuse it. */
const strange = (options: object = {}): never => ({ ...options, ttl: 5, durabilty: 'strict' }) as never;

/** Calls with an option that they do not have: of both kinds of stores, and of asynchronous stores only. */
const OF_BOTH: readonly ((db: AnyStore, key: Key) => unknown)[] = [
  (db, key) => db.set(key, 'misspelt', strange()),
  (db, key) => db.delete(key, strange()),
  (db, key) => db.deleteRange({ gte: key }, strange()),
  (db, key) => db.setMany([[key, 'misspelt']], strange()),
  (db, key) => db.update(key, () => 'misspelt', strange()),
  (db, key) => db.batch().set(key, 'misspelt', strange()).commit(),
  (db, key) => db.batch().delete(key).commit(strange()),
  (db, key) => db.count(strange({ gte: key })),
  (db, key) => db.entries(strange({ gte: key })).next(),
];
const OF_LATER: readonly ((db: Store<Key, unknown>, key: Key) => unknown)[] = [
  (db, key) => db.transaction((tx) => void tx.delete(key), strange()),
  (db, key) => db.watch(key, strange()).next(),
  (db, key) => db.changes(strange({ gte: key })).next(),
  (db, key) => db.live(strange({ gte: key })),
  (db, key) => db.live(key, strange({ initial: 1 })),
  (db) => db.flush(strange()),
  (db) => db.check(strange()),
];

/** More than all calls of a round send, and less than a value that is too long takes. */
const SENT_MAX = 64 * 2 ** 20;

/** Makes a call; resolves with the code of its refusal, or with the bytes of it that were sent to the engine all the same. */
export async function callRefused(db: AnyStore, call: Refused, sent: () => number | undefined): Promise<string> {
  const before = sent() ?? 0;
  const answer = await refusalFrom(db, call);
  const bytes = (sent() ?? 0) - before;
  return bytes > SENT_MAX ? `${answer}, once ${bytes} bytes were sent` : answer;
}

async function refusalFrom(db: AnyStore, call: Refused): Promise<string> {
  try {
    await made(db, call);
    return 'taken';
  } catch (error) {
    return String((error as { code?: unknown })?.code ?? error);
  }
}

/** The code with which it must be refused. */
export function refusalOf({ op }: Refused): string {
  return op === 'tooLong' ? 'VARVE_INVALID_VALUE' : 'VARVE_INVALID_ARGUMENT';
}

function made(db: AnyStore, call: Refused): unknown {
  const key = structuredClone(KEYS[call.key] as Key);
  if (call.op === 'tooLong') {
    const bytes = TOO_LONG[call.isHuge ? 1 : 0];
    return SETTING[call.way % SETTING.length]?.(db, key, tooLong(bytes));
  }
  if (!('changes' in db)) return OF_BOTH[call.way % OF_BOTH.length]?.(db, key);
  const calls = [...OF_BOTH, ...OF_LATER];
  return calls[call.way % calls.length]?.(db, key);
}
