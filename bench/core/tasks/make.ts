/** Makes the task of one round out of a suite's work and the stage it runs on. */

import type { Access, PointCall, Session, Sink } from '../engine.ts';
import { at, compareKeys, type Key, Random, salted } from '../generator.ts';
import type { Stage } from '../stage.ts';
import {
  ABSENT,
  batchTraces,
  countFromFirst,
  GET,
  mixTrace,
  pointTrace,
  SCAN,
  scatteredTraces,
  type TraceChoice,
} from '../trace.ts';
import type { Work } from '../work.ts';
import { AsyncPoints, SyncPoints } from './points.ts';
import { Calls, entriesOf, isLater, type Task, TaskBase } from './task.ts';

interface RoundChoice {
  readonly access: Access;
  readonly calls: number;
  /** Varies what is drawn at random. */
  readonly round: number;
  readonly seed: number;
  /** The store has keys that are not loaded, for inserts. */
  readonly hasReserve: boolean;
}

/** The task of one round. */
export function makeTask(work: Work, stage: Stage, { access, calls, round, seed, hasReserve }: RoundChoice): Task {
  const { dataset, state, session, engine } = stage;
  const waves = access === 'inflight';
  const there = hasReserve ? countFromFirst(state) : undefined;
  const choice: TraceChoice = { calls, round, seed, there };
  switch (work.kind) {
    case 'points': {
      const trace = pointTrace(dataset, work, choice);
      if (session.kind === 'sync') return new SyncPoints(session, dataset, state, trace);
      const how = { waves: waves || engine.grouped !== undefined, echo: engine.echo === true };
      return new AsyncPoints(session, dataset, state, trace, how);
    }
    case 'batches':
      return batches(stage, work.size, choice, waves);
    case 'ranges':
      return ranges(stage, work.size, choice, waves);
    case 'scan':
      return ranges(stage, undefined, choice, false);
    case 'open':
      return opens(stage, calls);
    case 'mix':
      return mixes(stage, work, choice);
    case 'reads':
      return reads(stage, work.size, choice);
    case 'transactions':
      return transactions(stage, work.size, choice, waves);
  }
}

/** Batches: many entries in one call, applied together. */
function batches({ session, dataset, state }: Stage, size: number, choice: TraceChoice, waves: boolean): Task {
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

/** Counts what a range delivers and keeps its last entry. */
class LastEntry implements Sink {
  count = 0;
  touched = 0;
  key: Key = '';
  value: Uint8Array | undefined;

  take(key: Key, value: Uint8Array): void {
    this.count++;
    this.touched += value[0] as number;
    this.key = key;
    this.value = value;
  }
}

function rangeOf(session: Session, from: Key | undefined, size: number): LastEntry | Promise<LastEntry> {
  const sink = new LastEntry();
  const running = session.range(from, size, sink);
  return isLater(running) ? running.then(() => sink) : sink;
}

/**
 * Ranges of `size` entries from random keys; without a size one range over everything, which counts entries.
 * Every entry is delivered and counted, and the last one is compared with what must stand at its place. Only in a store that
 * holds every key of the dataset, as the loaded fixtures do.
 */
function ranges(
  { session, dataset, state }: Stage,
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
function opens({ engine, name, options, dataset, state }: Stage, calls: number): Task {
  const base = new TaskBase(dataset, state);
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
 * Gets, inserts, ranges and gets that are followed by a set of the key (YCSB E and F). Calls are made in the order of the
 * trace and each is done before the next, so the checks can go through the group once more and know what every call had to find.
 */
function mixes({ session, dataset, state }: Stage, work: Work & { kind: 'mix' }, choice: TraceChoice): Task {
  const { keys, pool, sorted } = dataset;
  const base = new TaskBase(dataset, state);
  const { tally } = base;
  const { numbers, values, sizes, modifies } = mixTrace(dataset, work, choice);
  /** Each key's place in key order. */
  const places = new Uint32Array(keys.length);
  sorted.forEach((number, place) => {
    places[number] = place;
  });
  /** A range begins at its key and delivers what is there behind it, up to its size. */
  const checkRange = (number: number, size: number, found: LastEntry): void => {
    let count = 0;
    let last = number;
    for (let place = at(places, number); place < sorted.length && count < size; place++) {
      if (state[at(sorted, place)] === ABSENT) continue;
      count++;
      last = at(sorted, place);
    }
    tally.reads += count;
    tally.hits += found.count;
    tally.bytes += found.count * base.entryBytes;
    if (found.count !== count || compareKeys(found.key, at(keys, last)) !== 0) tally.wrong++;
    else base.expect(last, found.value);
  };
  return new Calls<unknown>(base.tally, {
    calls: numbers.length,
    waves: false,
    run: (call) => {
      const key = keys[numbers[call] as number] as Key;
      const value = values[call] as number;
      if (value === SCAN) return rangeOf(session, key, sizes[call] as number);
      const found = value === GET || modifies[call] === 1 ? session.get(key) : undefined;
      if (value < 0) return found;
      const bytes = pool[value] as Uint8Array;
      if (session.kind === 'sync') session.set(key, bytes);
      else return Promise.resolve(found).then((got) => session.set(key, bytes).then(() => got));
      return found;
    },
    check: (call, found) => {
      const number = at(numbers, call);
      const value = at(values, call);
      if (found instanceof LastEntry) checkRange(number, at(sizes, call), found);
      else if (value === GET || modifies[call] === 1) {
        tally.reads++;
        if (found !== undefined) tally.hits++;
        tally.bytes += base.entryBytes;
        base.expect(number, found as Uint8Array | undefined);
      }
      if (value >= 0) {
        state[number] = value;
        tally.bytes += base.entryBytes;
      }
      tally.ops++;
    },
    finish: () => {
      if (session.kind === 'sync') session.commit();
    },
  });
}

/**
 * Many gets as one call: a wave where the session has one (one frame of Varve's, one transaction of IndexedDB's), a loop
 * inside one turn where it answers at once, during which no other caller can write.
 */
function reads({ session, dataset, state }: Stage, size: number, choice: TraceChoice): Task {
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
function transactions({ session, dataset, state }: Stage, size: number, choice: TraceChoice, waves: boolean): Task {
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
