/**
 * The command bench: how fast a store is in a folder, on this machine.
 *
 * It writes a temporary store, closes it, opens it again and reads it. Every operation is awaited by itself, so that its time is what a
 * caller waits; every value that is read is compared with what was written. Percentiles are nearest ranks.
 */

import { rmSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Store } from '../index.ts';
import type { Durability } from '../types.ts';
import type { Call, Command } from './command.ts';
import { CommandError, Exit } from './exit.ts';
import { folderIn, storageOf } from './place.ts';
import { count, size } from './text.ts';

const BATCH = 100;
const SCAN = 100;

/** The times of one kind of operation. */
interface Timing {
  readonly operation: string;
  readonly count: number;
  readonly perSecond: number;
  /** Percentiles of the time of an operation, in milliseconds. */
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
}

type Bytes = Store<readonly ['bench', number], Uint8Array>;

export const bench: Command = {
  name: 'bench',
  usage: '[FOLDER]',
  summary: 'measures sets, gets and scans of a temporary store in a folder',
  options: {
    entries: { value: 'N', help: 'entries to write, one by one (default 10000)' },
    'value-bytes': { value: 'N', help: 'bytes of a value (default 100)' },
    durability: { value: 'LEVEL', help: 'relaxed (default), strict or memory' },
  },
  async run(call) {
    const { args, flags, output } = call;
    const entries = flags.integer('entries', 1) ?? 10_000;
    const bytes = flags.integer('value-bytes', 4) ?? 100;
    const durability = flags.choice('durability', ['relaxed', 'strict', 'memory']) ?? 'relaxed';
    const timings = await measure(resolve(args[0] ?? '.'), { entries, bytes, durability }, call);
    if (output.isJson) {
      await output.result({ entries, valueBytes: bytes, durability, timings });
      return Exit.ok;
    }
    const what = `${count(entries)} entries of ${size(bytes)}, ${durability}, Node ${process.versions.node}, ${process.platform} ${process.arch}`;
    output.note(what);
    const ms = (time: number): string => `${time.toFixed(3)} ms`;
    await output.table(
      [
        ['operation', 'count', 'per second', 'p50', 'p95', 'p99'],
        ...timings.map((timing) => [
          timing.operation,
          count(timing.count),
          count(Math.round(timing.perSecond)),
          ms(timing.p50),
          ms(timing.p95),
          ms(timing.p99),
        ]),
      ],
      [1, 2, 3, 4, 5],
    );
    return Exit.ok;
  },
};

interface Plan {
  readonly entries: number;
  readonly bytes: number;
  readonly durability: Durability;
}

async function measure(root: string, plan: Plan, { output, signal }: Call): Promise<Timing[]> {
  const [{ storage, open }, { bytes }] = await Promise.all([storageOf(root), import('../index.ts')]);
  const name = `varve-bench-${crypto.randomUUID()}`;
  const options = { storage, values: bytes, durability: plan.durability, signal };
  const { entries } = plan;
  const valueAt = valuesOf(plan.bytes);
  const timed = (operation: string, times: number, run: (i: number) => Promise<unknown>): Promise<Timing> =>
    timingOf(operation, times, async (i) => {
      signal.throwIfAborted();
      output.progress(() => `${operation}: ${count(i)} of ${count(times)}`);
      await run(i);
    });
  try {
    const timings: Timing[] = [];
    const written = (await open(name, options as never)) as unknown as Bytes;
    try {
      timings.push(await timed('set', entries, (i) => written.set(keyOf(i), valueAt(i))));
      timings.push(
        await timed(`set ${BATCH} at once`, Math.ceil(entries / BATCH), (batch) =>
          written.setMany(
            Array.from({ length: BATCH }, (_, i) => batch * BATCH + i)
              .filter((i) => i < entries)
              .map((i) => [keyOf(i), valueAt(i)] as const),
          ),
        ),
      );
    } finally {
      await written.close();
    }
    const read = (await open(name, options as never)) as unknown as Bytes;
    try {
      timings.push(
        await timed('get', entries, async () => {
          const i = Math.floor(Math.random() * entries);
          mustBe(await read.get(keyOf(i)), i, plan.bytes);
        }),
      );
      const length = Math.min(SCAN, entries);
      timings.push(
        await timed(`scan ${length}`, Math.ceil(entries / SCAN), async () => {
          let i = Math.floor(Math.random() * (entries - length + 1));
          const end = i + length;
          for await (const [, value] of read.entries({ gte: keyOf(i), limit: length })) mustBe(value, i++, plan.bytes);
          if (i !== end) throw new CommandError(Exit.damaged, 'A scan returned too few entries.');
        }),
      );
    } finally {
      await read.close();
    }
    return timings;
  } finally {
    rmSync(folderIn(root, name).path, { recursive: true, force: true });
  }
}

function keyOf(i: number): readonly ['bench', number] {
  return ['bench', i];
}

/** A function that makes the value of an entry: its number, then random bytes, which cannot be compressed. */
function valuesOf(bytes: number): (i: number) => Uint8Array {
  const random = new Uint8Array(bytes + 65_536);
  for (let at = 0; at < random.length; at += 65_536) crypto.getRandomValues(random.subarray(at, at + 65_536));
  return (i) => {
    const start = (i * 61) % 65_536;
    const value = random.slice(start, start + bytes);
    new DataView(value.buffer).setUint32(0, i);
    return value;
  };
}

function mustBe(value: Uint8Array | undefined, i: number, bytes: number): void {
  const isRight = value?.length === bytes && new DataView(value.buffer, value.byteOffset).getUint32(0) === i;
  if (!isRight) throw new CommandError(Exit.damaged, `Entry ${i} has another value than was written.`);
}

async function timingOf(operation: string, times: number, run: (i: number) => Promise<void>): Promise<Timing> {
  const durations = new Float64Array(times);
  const start = performance.now();
  for (let i = 0; i < times; i++) {
    const before = performance.now();
    await run(i);
    durations[i] = performance.now() - before;
  }
  const seconds = (performance.now() - start) / 1000;
  durations.sort();
  const rank = (percent: number): number => durations[Math.max(0, Math.ceil((percent / 100) * times) - 1)]!;
  return { operation, count: times, perSecond: times / seconds, p50: rank(50), p95: rank(95), p99: rank(99) };
}
