/**
 * The stopwatch: makes the calls of a task in groups, and times the groups.
 *
 * Invariant: the time of a round is the sum of its groups, of the turns between them and of the final commit, as a user would wait
 * for them. The checks between the groups are not in it. Between the groups of an engine that
 * answers at once there is no `await`: to such an engine each one would be the end of a turn.
 */

import { GROUP_STEPS, now, timerStepMs, turn } from './clock.ts';
import { percentilesOf } from './latency.ts';
import { emptyTally, type Tally, type Task } from './tasks/task.ts';

/** A loop lets go of the turn this often, as a worker that also answers messages would. */
const TURN_MS = 16;
export const SAMPLE_MS = 50;
/** Groups of a third of a round, at least, to say what its end lost. */
const THIRD_MIN = 10;

export interface Limits {
  readonly group: number;
  readonly budgetMs: number;
  readonly callsMax: number;
  /** The calls of a group are under way together: its time is the latency of each, not their mean. */
  readonly together: boolean;
  readonly signal: AbortSignal;
  /** Called about every SAMPLE_MS of a round, outside of what is timed. */
  readonly sample?: (() => Promise<void>) | undefined;
}

/** Plain data: it travels between tabs. */
export interface Round {
  readonly tally: Tally;
  readonly elapsedMs: number;
  /** Microseconds of the groups. */
  readonly latencies: readonly number[];
  /** The share of the rate of its first third that its last third lost; undefined where it was too short to say. */
  readonly lost?: number | undefined;
  /** Of a mix: the same of its reads, and of its writes. */
  readonly reads?: readonly number[];
  readonly writes?: readonly number[];
}

export class JoinedRounds implements Round {
  readonly tally = emptyTally();
  readonly latencies: number[] = [];
  readonly reads: number[] = [];
  readonly writes: number[] = [];
  elapsedMs = 0;

  add({ tally, elapsedMs, ...samples }: Round): this {
    for (const name of Object.keys(tally) as (keyof Tally)[]) this.tally[name] += tally[name];
    for (const name of ['latencies', 'reads', 'writes'] as const) {
      for (const one of samples[name] ?? []) this[name].push(one);
    }
    this.elapsedMs += elapsedMs;
    return this;
  }
}

/** A round that was timed elsewhere, with the microseconds of its calls. */
export function roundOf(tally: Partial<Tally>, elapsedMs: number, latencies: readonly number[]): Round {
  return { tally: { ...emptyTally(), ...tally }, elapsedMs, latencies };
}

/** How many calls of these latencies last long enough for the timer. */
export function groupFor(latencies: readonly number[], stepMs = timerStepMs()): number {
  return Math.max(1, Math.ceil((GROUP_STEPS * stepMs * 1000) / Math.max(percentilesOf(latencies).p50, 0.01)));
}

function endOf({ isRead }: Task, from: number, last: number): number {
  let to = isRead === undefined ? last : from + 1;
  while (to < last && isRead?.(to) === isRead?.(from)) to++;
  return to;
}

export async function measure(task: Task, limits: Limits): Promise<Round> {
  const calls = Math.min(task.calls, limits.callsMax);
  const latencies: number[] = [];
  const [reads, writes]: [number[], number[]] = [[], []];
  let elapsed = 0;
  let spent = 0;
  let lastTurn = now();
  const endsMs: number[] = [];
  let sampledMs = 0;
  for (let from = 0; from < calls && (from % limits.group > 0 || elapsed < limits.budgetMs); ) {
    limits.signal.throwIfAborted();
    const last = Math.min(from - (from % limits.group) + limits.group, calls);
    const to = endOf(task, from, last);
    const start = now();
    const running = task.run(from, to);
    if (running !== undefined) await running;
    const end = now();
    elapsed += end - start;
    spent += end - start;
    const kind = task.isRead && (task.isRead(from) ? reads : writes);
    kind?.push(((end - start) * 1000) / (to - from));
    const checked = task.check(from, to);
    if (checked !== undefined) await checked;
    from = to;
    if (limits.sample !== undefined && elapsed - sampledMs >= SAMPLE_MS) {
      sampledMs = elapsed;
      await limits.sample();
    }
    if (end - lastTurn > TURN_MS) {
      const before = now();
      await turn();
      lastTurn = now();
      elapsed += lastTurn - before;
    }
    if (to < last) continue;
    latencies.push((spent * 1000) / (limits.together ? 1 : ((last - 1) % limits.group) + 1));
    endsMs.push(elapsed);
    spent = 0;
  }
  const start = now();
  await task.finish();
  elapsed += now() - start;
  await limits.sample?.();
  return { tally: task.tally, elapsedMs: elapsed, latencies, lost: lostShare(endsMs), reads, writes };
}

/** The same of groups of equal work, by when each ended. */
export function lostShare(endsMs: readonly number[]): number | undefined {
  const third = Math.floor(endsMs.length / 3);
  if (third < THIRD_MIN) return undefined;
  const end = (group: number): number => endsMs.at(group) ?? Number.NaN;
  return 1 - end(third - 1) / (end(-1) - end(-third - 1));
}
