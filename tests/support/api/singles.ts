// Single operations: how each is called. The model decides its answer.

import type { Batch, Key, KeyCodec, KeyRange, Snapshot, Store, View } from 'varve';
import type { SyncSnapshot, SyncStore, SyncView } from 'varve/synchronous';
import { type RangeSpec, type ScanSpec, type Single, TICK_MS, type WriteSpec } from './history.ts';
import { KEYS, PREFIXES } from './keys.ts';
import { itemText, numbered, rangeOf, writtenText } from './model.ts';
import { callRefused } from './refused.ts';
import { spoil, textOf, valueFrom } from './values.ts';

export type AnyStore = Store<Key, unknown> | SyncStore<Key, unknown>;
export type AnySnapshot = Snapshot<Key, unknown> | SyncSnapshot<Key, unknown>;
/** An iterator of either kind of store. */
export type AnyIterator = AsyncIterator<unknown> | Iterator<unknown>;

/** The data that calls need besides the store. */
export interface Context {
  /** The sequences that keys had when the round began. */
  readonly sequences: ReadonlyMap<number, number | null>;
  /** When the history began, in milliseconds. */
  readonly start: number;
  /** The location of the module that checks, unless it lies beside the package. */
  readonly tools: URL | undefined;
  /** How many bytes were sent to the engine so far; undefined where nothing counts them. */
  readonly sent: () => number | undefined;
}

/** Sequences this high are never reached. */
const NEVER = 2 ** 52;

/** A store, or a view of the part below `['k']` that has the same keys. */
interface Part {
  readonly db: View<Key, unknown> | SyncView<Key, unknown>;
  range(spec: RangeSpec): KeyRange;
}

const BELOW: KeyCodec<Key> = {
  name: 'below k',
  encode: (key) => (key as readonly Key[]).slice(1),
  decode: (own) => ['k', ...(Array.isArray(own) ? own : [own])],
};

/** The store or the view, in turn, for calls with this tag. */
function partOf(db: AnyStore, tag: number): Part {
  if (tag % 2 === 0) return { db, range: rangeOf };
  const range = (spec: RangeSpec): KeyRange => ({ ...rangeOf(spec), prefix: PREFIXES[spec.prefix]?.slice(1) });
  return { db: db.at(['k'], { keys: BELOW }), range };
}

/** Makes a call; resolves with its answer. The call is made in its turn, as far as it runs synchronously. */
export async function callSingle(
  store: AnyStore,
  single: Single,
  tag: number,
  { sequences, start, tools, sent }: Context,
): Promise<string> {
  const part = partOf(store, tag);
  const { db } = part;
  switch (single.op) {
    case 'write':
      return written(() => write(part, single, tag, sequences));
    case 'batch': {
      const batch = db.batch();
      for (const [i, one] of single.writes.entries()) add(batch, part, one, tag + i, sequences);
      return written(() => batch.commit());
    }
    case 'setMany': {
      const entries = Array.from({ length: single.count }, (_, i) => {
        return [keyOf(numbered(single.from + i)), valueFrom(single.value, tag + i, 'changes' in db)] as const;
      });
      return written(() => spoilt(db.setMany(entries), ...entries.flat()));
    }
    case 'get':
    case 'has': {
      const key = keyOf(single.key);
      return textOf(await spoilt(db[single.op](key), key));
    }
    case 'getEntry': {
      const key = keyOf(single.key);
      const entry = await spoilt(db.getEntry(key), key);
      if (entry === undefined) return 'undefined';
      const { expiresAt } = entry;
      const dies = expiresAt === undefined ? undefined : Math.floor((expiresAt.getTime() - start) / TICK_MS);
      return `${textOf(entry.value)} until ${dies}`;
    }
    case 'getMany':
    case 'hasMany': {
      const keys = single.keys.map(keyOf);
      return (await spoilt(db[single.op](keys), ...keys, keys)).map(textOf).join('; ');
    }
    case 'scan':
      return (await taken(openIn(part, single.scan), single.scan, Number.POSITIVE_INFINITY)).join('; ');
    case 'count':
      return String(await db.count(part.range(single.range)));
    case 'check': {
      const { problems } = await store.check({ tools });
      return JSON.stringify(problems);
    }
    case 'tooLong':
    case 'misspelt':
      return callRefused(store, single, sent);
    case 'flush':
    case 'compact':
    case 'stats':
      await store[single.op]();
      return 'done';
    default:
      throw new Error(`${single.op} is no call of the store alone.`);
  }
}

/** A key of the caller's own. */
const keyOf = (key: number): Key => structuredClone(KEYS[key] as Key);

async function written(call: () => unknown): Promise<string> {
  try {
    const receipt = (await call()) as { existed?: boolean } | undefined;
    return writtenText(receipt?.existed);
  } catch (error) {
    const code = (error as { code?: unknown })?.code;
    if (code === 'VARVE_CONFLICT' || code === 'VARVE_RETRY') return code;
    throw error;
  }
}

function write(
  { db, range }: Part,
  { write: one, durability }: Single & { op: 'write' },
  tag: number,
  sequences: Context['sequences'],
): unknown {
  const level = durability === undefined ? {} : { durability };
  if (one.op === 'deleteRange') return db.deleteRange(range(one.range), level);
  if (one.op === 'delete')
    return db.delete(keyOf(one.key), { ...condition(one, sequences), ...level, existed: one.asks });
  return db.set(keyOf(one.key), valueFrom(one.value, tag, 'changes' in db), {
    ...condition(one, sequences),
    ...lifetime(one),
    ...level,
  });
}

function add(
  batch: Batch<Key, unknown, unknown>,
  { db, range }: Part,
  one: WriteSpec,
  tag: number,
  sequences: Context['sequences'],
): void {
  if (one.op === 'deleteRange') return void batch.deleteRange(range(one.range));
  const key = keyOf(one.key);
  if (one.op === 'delete') return spoilt(void batch.delete(key, condition(one, sequences)), key);
  const value = valueFrom(one.value, tag, 'changes' in db);
  spoilt(void batch.set(key, value, { ...condition(one, sequences), ...lifetime(one) }), key, value);
}

/** The result of a call, after its arguments have been changed. */
function spoilt<T>(result: T, ...given: readonly unknown[]): T {
  spoil(...given);
  return result;
}

function condition({ on, key }: Exclude<WriteSpec, { op: 'deleteRange' }>, sequences: Context['sequences']) {
  if (on === undefined) return {};
  const ifSequence = on === 'absent' ? null : on === 'stale' ? NEVER : (sequences.get(key) ?? null);
  return { ifSequence };
}

function lifetime({ life }: WriteSpec & { op: 'set' }) {
  return life === undefined ? {} : { expiresIn: (life + 0.5) * TICK_MS };
}

/** Keys whose sequences a round needs. */
export function conditionedKeys(singles: readonly Single[]): number[] {
  const writes = singles.flatMap((single) => {
    if (single.op === 'write') return [single.write];
    return single.op === 'batch' ? single.writes : [];
  });
  return writes.flatMap((one) => (one.op !== 'deleteRange' && one.on === 'current' ? [one.key] : []));
}

/** Opens a scan of a store or a snapshot. */
export function open(view: AnyStore | AnySnapshot, scan: ScanSpec): AnyIterator {
  return openIn({ db: view, range: rangeOf }, scan);
}

function openIn(
  { db, range: rangeIn }: Pick<Part, 'range'> & { readonly db: Part['db'] | AnySnapshot },
  { brings, range, reverse, limit }: ScanSpec,
): AnyIterator {
  return db[brings]({ ...rangeIn(range), reverse, ...(limit === undefined ? {} : { limit }) });
}

/** The next items of a scan as texts, `end` behind the last. */
export async function taken(iterator: AnyIterator, { brings }: ScanSpec, count: number): Promise<string[]> {
  const texts: string[] = [];
  while (texts.length < count) {
    const { done, value } = await iterator.next();
    if (done) {
      if (Number.isFinite(count)) texts.push('end');
      break;
    }
    const [key, entry] = brings === 'entries' ? (value as [Key, unknown]) : [value, value];
    texts.push(itemText(brings, textOf(key), textOf(entry)));
  }
  return texts;
}
