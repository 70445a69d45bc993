// Steps on a store whose storage is full, in whichever realm the store is open (a page, a worker, Node), by either API.
// Invariant: a step reports what was acknowledged and what was refused; its caller keeps the account.

import type { CheckOptions, Store } from 'varve';
import type { SyncStore } from 'varve/synchronous';

/** Bytes of a value; none of them compresses. */
export const VALUE_BYTES = 100 * 1024;
/** Sets that are under way at once. */
const TOGETHER = 8;
/** The pause before a refused set is tried again. */
const PAUSE_MS = 100;
/** How long a step continues after the last accepted value, once it has as many values as it must. */
const QUIET_MS = 2000;

/** The store of the steps: an immediate answer is also awaited, which ends its turn. */
export type FullStore = Store<number, Uint8Array> | SyncStore<number, Uint8Array>;

/** How many values are to be set, how many at most, and how long that may take. */
export interface Again {
  readonly wanted: number;
  readonly most: number;
  readonly ms: number;
}

/** The outcome of writes: the keys that were acknowledged, and each different other answer once. */
export interface StepResult {
  readonly keys: number[];
  readonly refusals: string[];
}

/** The outcome of a read: the keys, and the keys whose values are wrong. */
export interface Found {
  readonly keys: number[];
  readonly wrong: number[];
}

/** The value of a key: noise. */
function noiseOf(key: number): Uint8Array {
  const words = new Uint32Array(VALUE_BYTES / 4);
  let state = (key + 1) * 0x9e37_79b1;
  for (let i = 0; i < words.length; i++) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    words[i] = state;
  }
  return new Uint8Array(words.buffer);
}

function isNoise(value: Uint8Array | undefined, key: number): boolean {
  const expected = noiseOf(key);
  return value?.length === expected.length && value.every((byte, i) => byte === expected[i]);
}

/** Calls a function for each key, several at once, as long as `goesOn`. */
async function each(
  keys: Iterable<number>,
  call: (key: number) => unknown,
  goesOn: (result: StepResult) => boolean,
): Promise<StepResult> {
  const result: StepResult = { keys: [], refusals: [] };
  const rest = keys[Symbol.iterator]();
  const worker = async (): Promise<void> => {
    while (goesOn(result)) {
      const next = rest.next();
      if (next.done) return;
      try {
        await call(next.value);
        result.keys.push(next.value);
        // A synchronous store's jobs run between turns.
        if (result.keys.length % TOGETHER === 0) await new Promise((resolve) => setTimeout(resolve));
      } catch (error) {
        const { code, message } = error as { code?: string; message: string };
        if (!result.refusals.includes(`${code}: ${message}`)) result.refusals.push(`${code}: ${message}`);
      }
    }
  };
  await Promise.all(Array.from({ length: TOGETHER }, worker));
  result.keys.sort((a, b) => a - b);
  return result;
}

function* from(first: number): Generator<number> {
  for (let key = first; ; key++) yield key;
}

export const steps = {
  /** Sets values from a key on until one is refused. */
  fill: (db: FullStore, first: number): Promise<StepResult> =>
    each(
      from(first),
      (key) => db.set(key, noiseOf(key)),
      ({ refusals }) => refusals.length === 0,
    ),

  /** Deletes keys. */
  remove: (db: FullStore, keys: readonly number[]): Promise<StepResult> =>
    each(
      keys,
      (key) => db.delete(key),
      () => true,
    ),

  /**
   * Sets values from a key on until this many were accepted; refusals do not end the step. It waits up to `ms` for `wanted` values.
   * Beyond those it continues only while values are accepted.
   */
  async again(db: FullStore, first: number, { wanted, most, ms }: Again): Promise<StepResult> {
    const keys: number[] = [];
    const refusals = new Set<string>();
    const until = performance.now() + ms;
    let quietFrom = until;
    for (let key = first; keys.length < most; ) {
      const now = performance.now();
      if (now > (keys.length < wanted ? until : quietFrom + QUIET_MS)) break;
      const result = await steps.one(db, key);
      keys.push(...result.keys);
      if (result.keys.length > 0) {
        key++;
        quietFrom = performance.now();
      } else await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
      for (const refusal of result.refusals) refusals.add(refusal);
    }
    return { keys, refusals: [...refusals] };
  },

  /** Sets one value. */
  one: (db: FullStore, key: number): Promise<StepResult> =>
    each(
      [key],
      () => db.set(key, noiseOf(key)),
      () => true,
    ),

  /** Merges everything, if there is room. */
  compact: (db: FullStore): Promise<StepResult> =>
    each(
      [0],
      () => db.compact(),
      () => true,
    ),

  /** Reads everything. */
  async read(db: FullStore): Promise<Found> {
    const found: Found = { keys: [], wrong: [] };
    for await (const [key, value] of db.entries()) {
      found.keys.push(key);
      if (!isNoise(value, key)) found.wrong.push(key);
    }
    return found;
  },

  /** Reads single keys; returns the keys whose values are wrong or missing. */
  async get(db: FullStore, keys: readonly number[]): Promise<number[]> {
    const wrong: number[] = [];
    for (const key of keys) {
      if (!isNoise(await db.get(key), key)) wrong.push(key);
    }
    return wrong;
  },

  /** Verifies the store; returns its problems. */
  async check(db: FullStore, options: CheckOptions = {}): Promise<string[]> {
    return (await db.check(options)).problems.map((problem) => JSON.stringify(problem));
  },
};
