/** Makes the task of one round out of a suite's work and the stage it runs on. */

import type { Access, PointCall } from '../engine.ts';
import { at, compareKeys, Random, salted } from '../generator.ts';
import type { Stage } from '../stage.ts';
import { batchTraces, countFromFirst, isOfPoints, pointTrace, scatteredTraces, type TraceChoice } from '../trace.ts';
import type { Work } from '../work.ts';
import { Points } from './points.ts';
import { Calls, entriesOf, rangeOf, type Task, TaskBase } from './task.ts';

interface RoundChoice extends Omit<TraceChoice, 'there'> {
  readonly access: Access;
  /** The store has keys that are not loaded, for inserts. */
  readonly hasReserve: boolean;
}

type Stored = Pick<Stage, 'engine' | 'name' | 'options' | 'session' | 'dataset' | 'state'>;

type Several = Extract<Work, { kind: 'batches' | 'reads' | 'transactions' }>;

export function makeTask(work: Work, stage: Stored, { access, hasReserve, ...drawn }: RoundChoice): Task {
  const waves = access === 'inflight';
  const isGrouped = stage.engine.grouped !== undefined;
  const choice: TraceChoice = { ...drawn, there: hasReserve ? countFromFirst(stage.state) : undefined };
  switch (work.kind) {
    case 'points':
      return new Points(stage, pointTrace(stage.dataset, work, choice), waves || (isGrouped && isOfPoints(work.mix)));
    case 'ranges':
      return ranges(stage, work.size, choice, waves);
    case 'scan':
      return ranges(stage, undefined, choice, false);
    case 'open':
      return opens(stage, drawn.calls);
    default:
      return several(stage, work, choice, waves);
  }
}

/**
 * Many entries in one call: a batch of sets; gets as of one moment; or a transaction that gets entries and sets all of them, or
 * nothing. The keys of a round do not come twice before all were used, so calls that are under way together do not touch the same.
 *
 * Many gets are a wave where the session has one (one frame of Varve's, one transaction of IndexedDB's), a loop inside one turn
 * where it answers at once, during which no other caller can write.
 */
function several({ session, dataset, state }: Stored, { kind, size }: Several, choice: TraceChoice, waves: boolean) {
  const base = new TaskBase(dataset, state);
  const [gets, sets] = [kind !== 'batches', kind !== 'reads'];
  const traces = gets ? scatteredTraces(dataset, size, choice) : batchTraces(dataset, size, choice);
  const entries = traces.map((trace) => entriesOf(dataset, trace));
  const calls = entries.map(({ keys }) => (sets ? [] : keys.map((key): PointCall => ({ key, value: undefined }))));
  const run = (call: number): unknown => {
    if (gets && sets) return session.transact?.(at(entries, call));
    if (gets)
      return session.kind === 'async'
        ? session.wave(at(calls, call))
        : at(calls, call).map(({ key }) => session.get(key));
    const written = session.batch(at(entries, call));
    if (session.kind === 'sync') session.commit();
    return written;
  };
  return new Calls<unknown>(base.tally, {
    calls: traces.length,
    waves: waves && sets,
    run,
    check: (call, answer) => {
      const { numbers, values } = at(traces, call);
      const found = gets ? ((answer ?? []) as readonly (Uint8Array | undefined)[]) : [];
      if (gets) for (const [i, number] of numbers.entries()) base.expect(number, found[i]);
      if (sets) for (const [i, number] of numbers.entries()) state[number] = at(values, i);
      const hits = found.filter((value) => value !== undefined).length;
      base.tally.ops += gets && sets ? 1 : numbers.length;
      base.tally.reads += gets ? numbers.length : 0;
      base.tally.hits += hits;
      base.tally.bytes += (hits + (sets ? numbers.length : 0)) * base.entryBytes;
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
