/** Makes the task of one round out of a suite's work and the stage it runs on. */

import type { Access, PointCall } from '../engine.ts';
import { at, compareKeys, Random, salted } from '../generator.ts';
import type { Stage } from '../stage.ts';
import { batchTraces, countFromFirst, isOfPoints, pointTrace, scatteredTraces, type TraceChoice } from '../trace.ts';
import type { Work } from '../work.ts';
import { Points } from './points.ts';
import { Calls, entriesOf, rangeOf, type Task, TaskBase } from './task.ts';

interface RoundChoice {
  readonly access: Access;
  readonly calls: number;
  /** Varies what is drawn at random. */
  readonly round: number;
  readonly seed: number;
  /** The store has keys that are not loaded, for inserts. */
  readonly hasReserve: boolean;
}

/** The store of a round. */
type Stored = Pick<Stage, 'engine' | 'name' | 'options' | 'session' | 'dataset' | 'state'>;

/** The task of one round. */
export function makeTask(work: Work, stage: Stored, { access, calls, round, seed, hasReserve }: RoundChoice): Task {
  const waves = access === 'inflight';
  const isGrouped = stage.engine.grouped !== undefined;
  const there = hasReserve ? countFromFirst(stage.state) : undefined;
  const choice: TraceChoice = { calls, round, seed, there };
  switch (work.kind) {
    case 'points':
      return new Points(stage, pointTrace(stage.dataset, work, choice), waves || (isGrouped && isOfPoints(work.mix)));
    case 'batches':
      return batches(stage, work.size, choice, waves);
    case 'ranges':
      return ranges(stage, work.size, choice, waves);
    case 'scan':
      return ranges(stage, undefined, choice, false);
    case 'open':
      return opens(stage, calls);
    case 'reads':
      return reads(stage, work.size, choice);
    case 'transactions':
      return transactions(stage, work.size, choice, waves);
  }
}

/** Batches: many entries in one call, applied together. */
function batches({ session, dataset, state }: Stored, size: number, choice: TraceChoice, waves: boolean): Task {
  const base = new TaskBase(dataset, state);
  const traces = batchTraces(dataset, size, choice);
  const entries = traces.map((trace) => entriesOf(dataset, trace));
  return new Calls<unknown>(base.tally, {
    calls: traces.length,
    waves,
    run: (call) => {
      const written = session.batch(at(entries, call));
      if (session.kind === 'sync') session.commit();
      return written;
    },
    check: (call) => {
      const { numbers, values } = at(traces, call);
      numbers.forEach((number, i) => {
        state[number] = at(values, i);
      });
      base.tally.ops += numbers.length;
      base.tally.bytes += numbers.length * base.entryBytes;
    },
  });
}

/**
 * Ranges of `size` entries from random keys; without a size one range over everything, which counts entries.
 * Every entry is delivered and counted, and the last one is compared with what must stand at its place. Only in a store that
 * holds every key of the dataset, as the loaded fixtures do.
 */
function ranges(
  { session, dataset, state }: Stored,
  size: number | undefined,
  { calls, round, seed }: TraceChoice,
  waves: boolean,
): Task {
  const { keys, sorted } = dataset;
  const base = new TaskBase(dataset, state);
  const expected = Math.min(size ?? keys.length, keys.length);
  const random = new Random(salted(0x7a9e + round, seed));
  /** For each call: the place in key order of its first key. */
  const places = Uint32Array.from({ length: calls }, () => random.below(keys.length - expected + 1));
  return new Calls(base.tally, {
    calls,
    waves,
    run: (call) => {
      const first = size === undefined ? undefined : keys[sorted[places[call] as number] as number];
      return rangeOf(session, first, expected);
    },
    check: (call, found) => {
      const { tally } = base;
      const number = at(sorted, at(places, call) + expected - 1);
      if (found.count !== expected || compareKeys(found.key, at(keys, number)) !== 0) tally.wrong++;
      else base.expect(number, found.value);
      tally.ops += size === undefined ? found.count : 1;
      tally.reads += expected;
      tally.hits += found.count;
      tally.bytes += found.count * base.entryBytes;
    },
  });
}

/** Opening a store that was closed, and getting one entry of it. The worker is already running; closing is not timed. */
function opens({ engine, name, options, dataset, state }: Stored, calls: number): Task {
  const base = new TaskBase(dataset, state, engine.echo);
  const random = new Random(0x09e45);
  return new Calls(base.tally, {
    calls,
    waves: false,
    run: async () => {
      const number = random.below(dataset.keys.length);
      const session = await engine.open(name, options);
      return { session, number, value: await session.get(at(dataset.keys, number)) };
    },
    check: async (_, { session, number, value }) => {
      base.expect(number, value);
      base.tally.ops++;
      base.tally.reads++;
      if (value !== undefined) base.tally.hits++;
      base.tally.bytes += base.entryBytes;
      await session.close();
    },
  });
}

/**
 * Many gets as one call: a wave where the session has one (one frame of Varve's, one transaction of IndexedDB's), a loop
 * inside one turn where it answers at once, during which no other caller can write.
 */
function reads({ session, dataset, state }: Stored, size: number, choice: TraceChoice): Task {
  const base = new TaskBase(dataset, state);
  const random = new Random(0x4ead5);
  const traces = scatteredTraces(dataset, size, choice);
  const planned = traces.map(({ numbers }) =>
    Array.from(numbers, (number): PointCall => ({ key: at(dataset.keys, number), value: undefined })),
  );
  return new Calls<readonly (Uint8Array | undefined)[]>(base.tally, {
    calls: traces.length,
    waves: false,
    run: (call) => {
      const calls = at(planned, call);
      return session.kind === 'async' ? session.wave(calls) : calls.map(({ key }) => session.get(key));
    },
    check: (call, found) => {
      const { numbers } = at(traces, call);
      const hits = found.reduce((sum, value) => sum + Number(value !== undefined), 0);
      const picked = random.below(numbers.length);
      base.expect(at(numbers, picked), found[picked]);
      base.tally.ops += numbers.length;
      base.tally.reads += numbers.length;
      base.tally.hits += hits;
      base.tally.bytes += hits * base.entryBytes;
    },
  });
}

/**
 * Transactions that get a few entries and set all of them, or nothing. The keys of a round do not come twice before all were
 * used, so transactions that are under way together do not touch the same ones.
 */
function transactions({ session, dataset, state }: Stored, size: number, choice: TraceChoice, waves: boolean): Task {
  const base = new TaskBase(dataset, state);
  const traces = scatteredTraces(dataset, size, choice);
  const entries = traces.map((trace) => entriesOf(dataset, trace));
  return new Calls<readonly (Uint8Array | undefined)[]>(base.tally, {
    calls: traces.length,
    waves,
    run: (call) => session.transact?.(at(entries, call)) ?? [],
    check: (call, found) => {
      const { numbers, values } = at(traces, call);
      numbers.forEach((number, i) => {
        base.expect(number, found[i]);
        state[number] = at(values, i);
        base.tally.hits += Number(found[i] !== undefined);
      });
      base.tally.ops++;
      base.tally.reads += numbers.length;
      base.tally.bytes += 2 * numbers.length * base.entryBytes;
    },
  });
}
