// One synchronous turn that writes as long as it may, and its remains after it was killed. Batches of a thousand small values at keys in
// no order alternate with batches of large values at keys in order. Keys repeat after a number of megabytes. The turn reads while it
// writes.

import type { SyncStore } from 'varve/synchronous';
import { counted } from './counting.ts';
import { randomFrom } from './random.ts';

/** The writes of a turn. Its bytes are those of values: a batch has 100,000. */
export interface TurnPlan {
  readonly seed: number;
  /** The budget of the store. */
  readonly memoryBytes: number;
  /** How much is written when it is killed. */
  readonly megabytes: number;
  /** After this many, earlier keys are overwritten. */
  readonly keysMegabytes: number;
}

/** The acknowledged writes so far, and the space that the store takes. */
export interface TurnReport {
  readonly batches: number;
  readonly wasmBytes: number;
  readonly diskBytes: number;
  readonly tables: number;
}

/** The remains of a turn, read from the store's first key to its last. */
export interface TurnFound {
  readonly openMs: number;
  readonly state: string;
  /** This many batches, whole, and nothing else, unless there are faults. */
  readonly batches: number;
  readonly entries: number;
  readonly faults: readonly string[];
}

export type TurnStore = SyncStore<number, Uint8Array>;

export const BATCHES_PER_MEGABYTE = 10;
const BATCH_BYTES = 1_000_000 / BATCHES_PER_MEGABYTE;
/** Once in this many batches, one is strict, and the turn reports its progress. */
const STRICT_EVERY = 20;
/** Keys that are read after each batch. */
const READS = 5;
/** The sizes of values, first the size in even batches. */
const SIZES = [100, 4000] as const;
/** The source of the values: noise, which does not compress. */
const NOISE_BYTES = 1 << 20;
/** The maximum number of faults that are reported. */
const FAULTS_MAX = 10;
/** An odd number and its inverse modulo 2^32: keys in no order, each of which determines its number. */
const SPREAD = 0x9e37_79b1;
const GATHER = 0x0e8b_2f51;

/** The content that a plan stores. */
class Values {
  readonly #noise = new Uint8Array(NOISE_BYTES);
  /** How many keys each of the two sizes has. */
  readonly spaces: readonly number[];

  constructor({ seed, keysMegabytes }: TurnPlan) {
    const random = randomFrom(seed);
    for (let at = 0; at < NOISE_BYTES; at++) this.#noise[at] = random(256);
    this.spaces = SIZES.map((size) => (keysMegabytes * BATCHES_PER_MEGABYTE * BATCH_BYTES) / 2 / size);
  }

  /** The value of this number: it begins with the number. */
  value(kind: number, number: number): Uint8Array {
    const start = (number * 61) % (NOISE_BYTES - 4096);
    const value = this.#noise.slice(start, start + (SIZES[kind] ?? 0));
    new DataView(value.buffer).setUint32(0, number);
    return value;
  }

  /** The number of a value, if it is one of these. */
  numberOf(kind: number, value: Uint8Array): number | undefined {
    const number = new DataView(value.buffer, value.byteOffset).getUint32(0);
    const start = (number * 61) % (NOISE_BYTES - 4096);
    if (value.length !== SIZES[kind]) return undefined;
    for (let at = 4; at < value.length; at++) if (value[at] !== this.#noise[start + at]) return undefined;
    return number;
  }
}

/** Small values have keys from 0 on, large ones below. */
function keyOf(kind: number, place: number): number {
  return kind === 0 ? Math.imul(place, SPREAD) >>> 0 : place - 2 ** 40;
}

function placeOf(key: number): [kind: number, place: number] {
  return key >= 0 ? [0, Math.imul(key, GATHER) >>> 0] : [1, key + 2 ** 40];
}

/** The number of the value at a place after this many writes; undefined where there is none. */
function latest(place: number, count: number, space: number): number | undefined {
  return place < count ? place + Math.floor((count - 1 - place) / space) * space : undefined;
}

/** Writes batches in this turn until it is killed. */
export function writeInOneTurn(db: TurnStore, plan: TurnPlan, report: (report: TurnReport) => void): never {
  const values = new Values(plan);
  const random = randomFrom(plan.seed, 1);
  for (let index = 0; ; index++) {
    const kind = index % 2;
    const [count, space] = [BATCH_BYTES / (SIZES[kind] ?? 1), values.spaces[kind] ?? 1];
    const batch = db.batch();
    const end = (Math.floor(index / 2) + 1) * count;
    for (let number = end - count; number < end; number++) {
      batch.set(keyOf(kind, number % space), values.value(kind, number));
    }
    const isStrict = index % STRICT_EVERY === STRICT_EVERY - 1;
    batch.commit({ durability: isStrict ? 'strict' : 'relaxed' });
    for (let read = 0; read < READS; read++) {
      const place = random(Math.min(end, space));
      const value = db.get(keyOf(kind, place));
      if (value === undefined || values.numberOf(kind, value) !== latest(place, end, space)) {
        throw new Error(`In batch ${index}, ${kind}: ${place} read otherwise than it was written.`);
      }
    }
    if (isStrict) report(reportOf(db, index + 1));
  }
}

function reportOf(db: TurnStore, batches: number): TurnReport {
  const {
    disk: { bytes: diskBytes },
    levels,
  } = db.stats();
  const tables = levels.reduce((sum, level) => sum + level.tables, 0);
  return { batches, wasmBytes: counted()['wasmBytes'] ?? 0, diskBytes, tables };
}

/** Reads the whole store. */
export function readTurn(db: TurnStore, plan: TurnPlan): Omit<TurnFound, 'openMs'> {
  const values = new Values(plan);
  const faults: string[] = [];
  // Numbers from 1 on, so that 0 means none.
  const found = values.spaces.map((space) => new Uint32Array(space));
  let entries = 0;
  for (const [key, value] of db.entries()) {
    const [kind, place] = placeOf(key);
    const space = values.spaces[kind] ?? 0;
    const number = values.numberOf(kind, value);
    entries++;
    const numbers = found[kind] as Uint32Array;
    if (number !== undefined && place < space && number % space === place) numbers[place] = number + 1;
    else if (faults.length < FAULTS_MAX) faults.push(`${key} has a value that it never had`);
  }
  const [small = 0, large = 0] = found.map((numbers, kind) => {
    const count = numbers.reduce((most, number) => Math.max(most, number), 0);
    const space = numbers.length;
    numbers.forEach((number, place) => {
      const expected = latest(place, count, space) ?? -1;
      if (number - 1 === expected || faults.length === FAULTS_MAX) return;
      faults.push(`${kind}: ${place} is of ${number - 1}, not of ${expected}`);
    });
    const batches = count / (BATCH_BYTES / (SIZES[kind] ?? 1));
    if (!Number.isInteger(batches)) faults.push(`${kind}: a part of a batch, ${count} values`);
    return batches;
  });
  if (small !== large && small !== large + 1) faults.push(`${small} small batches and ${large} large ones`);
  return { state: db.recovery.state, batches: small + large, entries, faults };
}
