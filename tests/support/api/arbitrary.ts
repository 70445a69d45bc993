// Random histories, which fast-check makes smaller when one fails.

import fc from 'fast-check';
import {
  type ConditionSpec,
  FREQUENT_KEYS,
  type History,
  type Note,
  type NoteCall,
  type OpenSpec,
  RACING_KEYS,
  type Racing,
  type RangeSpec,
  type ScanSpec,
  type Single,
  SLOTS,
  type Step,
  type WriteSpec,
} from './history.ts';
import { KEYS, PREFIXES } from './keys.ts';
import type { ValueSpec } from './values.ts';

/** The features that the place of a history lacks. */
export interface Limits {
  /** Stores of `varve/synchronous`: no collections, no followers. */
  readonly isSync: boolean;
  /** Stores have several clients, whose workers can be ended. */
  readonly hasTabs?: boolean;
  /** All clients can be ended as if by a crash. */
  readonly isKilled?: boolean;
  /** Stores are folders into which others may put files. */
  readonly hasFolders?: boolean;
  /** The maximum number of steps. */
  readonly steps: number;
}

const MIB = 2 ** 20;
const never = <T>(): fc.Arbitrary<T[]> => fc.constant([]);

/** A few keys are more frequent than others, so that calls collide. */
const KEY = fc.oneof(
  { weight: 3, arbitrary: fc.nat(FREQUENT_KEYS - 1) },
  { weight: 1, arbitrary: fc.nat(KEYS.length - 1) },
);
const SLOT = fc.nat(SLOTS - 1);
/** Two exports are enough for going back and forth between them. */
const EXPORT_SLOT = fc.nat(1);
const VALUE: fc.Arbitrary<ValueSpec> = fc.record({
  kind: fc.constantFrom('text', 'bytes', 'object', 'number', 'blob'),
  length: fc.oneof(
    { weight: 6, arbitrary: fc.nat(40) },
    { weight: 2, arbitrary: fc.nat(5000) },
    { weight: 1, arbitrary: fc.nat(150_000) },
  ),
});
const RANGE: fc.Arbitrary<RangeSpec> = fc.record(
  {
    prefix: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.nat(PREFIXES.length - 1) }),
    from: fc.tuple(fc.constantFrom('gt' as const, 'gte' as const), KEY),
    to: fc.tuple(fc.constantFrom('lt' as const, 'lte' as const), KEY),
  },
  { requiredKeys: ['prefix'] },
);
const SCAN: fc.Arbitrary<ScanSpec> = fc.record(
  { brings: fc.constantFrom('keys', 'values', 'entries'), range: RANGE, reverse: fc.boolean(), limit: fc.nat(20) },
  { requiredKeys: ['brings', 'range', 'reverse'] },
);
const ON = fc.constantFrom<ConditionSpec>('current', 'absent', 'stale', 'current');
const WRITE: fc.Arbitrary<WriteSpec> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record(
      { op: fc.constant('set' as const), key: KEY, value: VALUE, life: fc.nat(2), on: ON },
      { requiredKeys: ['op', 'key', 'value'] },
    ),
  },
  {
    weight: 2,
    arbitrary: fc.record(
      { op: fc.constant('delete' as const), key: KEY, on: ON, asks: fc.boolean() },
      { requiredKeys: ['op', 'key'] },
    ),
  },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('deleteRange' as const), range: RANGE }) },
);

const durability = fc.constantFrom('memory' as const, 'relaxed' as const, 'strict' as const);
/** Calls that are under way as a whole once they are called. */
const WHOLE: fc.Arbitrary<Single> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record(
      { op: fc.constant('write' as const), write: WRITE, durability },
      { requiredKeys: ['op', 'write'] },
    ),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      op: fc.constant('batch' as const),
      writes: fc.array(WRITE, { minLength: 1, maxLength: 6 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      op: fc.constant('setMany' as const),
      from: fc.nat(199),
      count: fc.integer({ min: 1, max: 200 }),
      value: fc.record({ kind: fc.constantFrom('bytes' as const, 'text' as const), length: fc.nat(4000) }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ op: fc.constantFrom('get' as const, 'has' as const, 'getEntry' as const), key: KEY }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      op: fc.constantFrom('getMany' as const, 'hasMany' as const),
      keys: fc.array(KEY, { maxLength: 20 }),
    }),
  },
);
/** As `WHOLE`, of levels that survive the end of a worker. */
const LOGGED: fc.Arbitrary<Single> = WHOLE.map((single) => {
  if (single.op !== 'write' || single.durability !== 'memory') return single;
  return { op: single.op, write: single.write };
});
const REFUSED: fc.Arbitrary<Single> = fc.oneof(
  {
    weight: 1,
    arbitrary: fc.record({
      op: fc.constant('tooLong' as const),
      key: KEY,
      way: fc.nat(99),
      isHuge: fc.boolean(),
    }),
  },
  { weight: 3, arbitrary: fc.record({ op: fc.constant('misspelt' as const), key: KEY, way: fc.nat(99) }) },
);
const SINGLE: fc.Arbitrary<Single> = fc.oneof(
  { weight: 10, arbitrary: WHOLE },
  { weight: 1, arbitrary: REFUSED },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('scan' as const), scan: SCAN }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('count' as const), range: RANGE }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('openScan' as const), slot: SLOT, scan: SCAN }) },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('advance' as const), slot: SLOT, count: fc.nat(30) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      op: fc.constantFrom('closeScan' as const, 'snapshot' as const, 'closeSnapshot' as const),
      slot: SLOT,
    }),
  },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('readSnapshot' as const), slot: SLOT, scan: SCAN, key: KEY }) },
  {
    weight: 1,
    arbitrary: fc.record({
      op: fc.constantFrom('flush' as const, 'compact' as const, 'check' as const, 'stats' as const),
    }),
  },
);

const RACING_KEY = fc.nat(RACING_KEYS - 1);
const WAITS = fc.nat(3);
const THROWS = fc.oneof({ weight: 5, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.constant(true) });
const SOME_KEYS = fc.uniqueArray(RACING_KEY, { maxLength: RACING_KEYS });
const RACING: fc.Arbitrary<Racing> = fc.oneof(
  {
    weight: 2,
    arbitrary: fc.record(
      { op: fc.constant('set' as const), key: RACING_KEY, life: fc.nat(2) },
      { requiredKeys: ['op', 'key'] },
    ),
  },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('delete' as const), key: RACING_KEY }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('deleteAll' as const) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      op: fc.constant('update' as const),
      key: RACING_KEY,
      waits: WAITS,
      throws: THROWS,
      lifetime: fc.constantFrom('kept' as const, 'kept' as const, 'dropped' as const, 1),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      op: fc.constant('transaction' as const),
      reads: SOME_KEYS,
      appends: SOME_KEYS,
      counts: fc.boolean(),
      waits: WAITS,
      throws: THROWS,
      handle: fc.constantFrom(undefined, undefined, 'open' as const, 'exclusive' as const),
    }),
  },
);

const NOTE: fc.Arbitrary<Note> = fc.record(
  {
    id: fc.nat(4),
    title: fc.constantFrom('Silt', 'silt', 'Clay', 'Loam', 'Marl', 'Sand'),
    tags: fc.array(fc.constantFrom('x', 'y', 'z'), { maxLength: 3 }),
    folder: fc.constantFrom('f', 'g'),
    edited: fc.nat(5),
  },
  { requiredKeys: ['id', 'title', 'tags', 'edited'], noNullPrototype: true },
);
const NOTE_CALL: fc.Arbitrary<NoteCall> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ op: fc.constantFrom('insert' as const, 'put' as const), note: NOTE }) },
  {
    weight: 1,
    arbitrary: fc.record({ op: fc.constant('insertMany' as const), notes: fc.array(NOTE, { maxLength: 3 }) }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      op: fc.constant('update' as const),
      id: fc.nat(4),
      patch: NOTE.map(({ id: _, ...patch }) => patch),
      byFunction: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('delete' as const), id: fc.nat(4) }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constantFrom('clear' as const, 'reindex' as const, 'check' as const) }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('countBy' as const) }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('page' as const), after: NOTE }) },
);

const OPEN: fc.Arbitrary<OpenSpec> = fc.record({
  memoryBytes: fc.constantFrom(MIB, MIB, 2 * MIB, 8 * MIB, 64 * MIB),
  durability: fc.constantFrom('relaxed' as const, 'relaxed' as const, 'strict' as const),
  cache: fc.boolean(),
});

const FLOOD = fc.oneof(
  fc.record({
    type: fc.constant('flood' as const),
    loops: fc.constant(undefined),
    writes: fc.integer({ min: 1000, max: 6000 }),
    bytes: fc.constant(1024),
  }),
  fc.record({
    type: fc.constant('flood' as const),
    loops: fc.constant(16),
    writes: fc.integer({ min: 32, max: 160 }),
    bytes: fc.constant(65_536),
  }),
);

/** The time at which a worker ends: before anything was sent, while the call is under way, while it is answered. */
const TURNS = fc.nat(6);

const step = <S extends Step>(weight: number, arbitrary: fc.Arbitrary<S>): fc.WeightedArbitrary<Step> => ({
  weight,
  arbitrary,
});

/** The features that some places have and others lack. */
function stepsOf({ isSync, hasTabs, isKilled, hasFolders }: Limits): fc.WeightedArbitrary<Step>[] {
  const tabs = [
    step(1, fc.record({ type: fc.constant('tab' as const), options: OPEN })),
    step(
      1,
      fc.record({
        type: fc.constant('lead' as const),
        singles: fc.array(LOGGED, { maxLength: 8 }),
        racing: fc.array(RACING, { maxLength: 4 }),
        notes: fc.array(NOTE_CALL, { maxLength: 3 }),
        turns: TURNS,
      }),
    ),
  ];
  const kills = [
    step(
      1,
      fc.record({
        type: fc.constant('kill' as const),
        singles: fc.array(WHOLE, { maxLength: 8 }),
        turns: TURNS,
        options: OPEN,
      }),
    ),
  ];
  const folders = [
    step(1, fc.record({ type: fc.constant('litter' as const) })),
    step(1, fc.record({ type: fc.constant('move' as const), options: OPEN })),
  ];
  const storm = fc.record({
    type: fc.constant('storm' as const),
    key: RACING_KEY,
    count: fc.integer({ min: 60, max: 100 }),
    by: fc.constantFrom('update' as const, 'transaction' as const, 'both' as const),
    waits: fc.nat(1),
  });
  const abandoned = fc.record({
    type: fc.constant('abandon' as const),
    count: fc.integer({ min: 1000, max: 2000 }),
    isSame: fc.boolean(),
  });
  return [
    ...(isSync ? [] : [step(1, storm), step(1, abandoned)]),
    ...(hasTabs ? tabs : []),
    ...(isKilled ? kills : []),
    ...(hasFolders ? folders : []),
  ];
}

function steps(limits: Limits): fc.Arbitrary<Step> {
  const { isSync } = limits;
  const round: fc.Arbitrary<Step> = fc.record({
    type: fc.constant('round' as const),
    singles: fc.array(SINGLE, { maxLength: 12 }),
    racing: fc.array(RACING, { maxLength: 4 }),
    notes: isSync ? never<NoteCall>() : fc.array(NOTE_CALL, { maxLength: 4 }),
    isSpread: fc.boolean(),
  });
  const common: fc.WeightedArbitrary<Step>[] = [
    { weight: 12, arbitrary: round },
    {
      weight: 1,
      arbitrary: fc.record({
        type: fc.constant('reopen' as const),
        singles: fc.array(WHOLE, { maxLength: 5 }),
        options: OPEN,
      }),
    },
    { weight: 1, arbitrary: fc.record({ type: fc.constant('tick' as const), ticks: fc.integer({ min: 1, max: 2 }) }) },
    { weight: 1, arbitrary: fc.record({ type: fc.constant('copy' as const) }) },
    {
      weight: 1,
      arbitrary: fc.record({ type: fc.constant('export' as const), slot: EXPORT_SLOT, isWhole: fc.boolean() }),
    },
    { weight: 1, arbitrary: fc.record({ type: fc.constant('merge' as const), slot: EXPORT_SLOT }) },
    step(1, FLOOD),
    ...stepsOf(limits),
  ];
  const following: fc.WeightedArbitrary<Step>[] = [
    {
      weight: 2,
      arbitrary: fc.record({
        type: fc.constant('follow' as const),
        range: RANGE,
        by: fc.constantFrom('changes' as const, 'changes' as const, 'watch' as const),
        keysOnly: fc.boolean(),
        fromStart: fc.boolean(),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        type: fc.constant('live' as const),
        scan: SCAN,
        as: fc.constantFrom('range' as const, 'count' as const, 'function' as const),
        hasInitial: fc.boolean(),
      }),
    },
    step(1, fc.record({ type: fc.constant('requery' as const), index: fc.nat(3), scan: SCAN })),
    { weight: 1, arbitrary: fc.record({ type: fc.constant('unfollow' as const), index: fc.nat(3) }) },
    { weight: 3, arbitrary: fc.record({ type: fc.constant('catchUp' as const) }) },
  ];
  return fc.oneof(...common, ...(isSync ? [] : following));
}

/** Histories for a place. */
export function histories(limits: Limits): fc.Arbitrary<History> {
  return fc.record({ options: OPEN, steps: fc.array(steps(limits), { maxLength: limits.steps, size: 'max' }) });
}
