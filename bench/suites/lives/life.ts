/**
 * A life: what months of use do to a store, step by step, and how the store was on the way.
 *
 * Invariant: one definition of each life (lives.ts) serves the browser and Node. The calls of a step are made before the clock
 * runs, and each answer is compared with the model after it. Its time is without looks at the disk, the scans between two
 * windows, and the pauses of one with a pace. Afterwards the whole store is walked.
 */

import { now, turn } from '../../core/clock.ts';
import type { Ability, DiskUse, Engine, Session, SessionOptions } from '../../core/engine.ts';
import { type Key, sameBytes } from '../../core/generator.ts';
import { percentilesOf } from '../../core/latency.ts';
import { groupFor, JoinedRounds, type Limits, measure, type Round, roundOf, SAMPLE_MS } from '../../core/measure.ts';
import type { LifeSample, LifeStory } from '../../core/row.ts';
import { heldBytes, writtenBytes } from '../../core/storage.ts';
import type { Count } from '../../core/suite.ts';
import { Calls, emptyTally, isLater } from '../../core/tasks/task.ts';
import { verifyEntries } from '../../core/verify.ts';

export type Pair = readonly [key: string, value: Uint8Array];

export class LifeStore {
  readonly name: string;
  opened: Session | undefined;

  constructor(
    readonly engine: Engine,
    name: string,
    private readonly options: SessionOptions,
  ) {
    this.name = `${name}-${engine.name}`;
  }

  get session(): Session {
    if (this.opened === undefined) throw new Error(`The store ${this.name} is closed.`);
    return this.opened;
  }

  async open(): Promise<void> {
    this.opened = await this.engine.open(this.name, this.options);
  }

  async close(): Promise<void> {
    const session = this.opened;
    this.opened = undefined;
    await session?.close();
  }

  commit(): void {
    if (this.opened?.kind === 'sync') this.opened.commit();
  }

  range(gte: string, limit: number): readonly Pair[] | PromiseLike<readonly Pair[]> {
    const pairs: Pair[] = [];
    const sink = { take: (key: Key, value: Uint8Array) => void pairs.push([key as string, value]) };
    const running = this.session.range(gte, limit, sink);
    return isLater(running) ? running.then(() => pairs) : pairs;
  }
}

export interface LifeCall {
  /** Bytes of keys and values that it writes or reads. */
  readonly bytes: number;
  readonly writes: boolean;
  run(store: LifeStore): unknown;
  check?(given: unknown): boolean;
}

export interface Course {
  /** The entries of the store now, in the order of keys; before the first step, those that it begins with. */
  holds(): Pair[];
  step(): readonly LifeCall[];
  /** A scan that is made now and then, here and in a fresh store that holds the same as this one at first. */
  scan?(entries: readonly Pair[]): LifeCall;
  /** How long the openings since the last look took, in milliseconds: of a life whose steps open the store. */
  openings?(): readonly number[];
}

export interface Life {
  readonly name: string;
  readonly title: string;
  readonly phase?: string;
  readonly steps: Count;
  readonly valueBytes: number;
  readonly needs: readonly Ability[];
  /** It pauses now and then, so that it makes no more steps a second than so many. */
  readonly pace?: Count;
  /** Left alone for a while at its end, to see what it gives back. */
  readonly idles?: boolean;
  begin(mode: keyof Count): Course;
}

/** The result of a life: its steps, and the calls that were timed beside them, by name. */
interface Lived {
  readonly parts: readonly { readonly phase: string | undefined; readonly round: Round; readonly groupSize: number }[];
  readonly story: LifeStory;
  readonly problem: string | undefined;
}

interface LifeExtent {
  readonly mode: keyof Count;
  readonly steps: number;
  /** It ends after so long, in milliseconds of its own time. */
  readonly budgetMs: number;
  readonly signal: AbortSignal;
  readonly sampled?: (sample: LifeSample) => void;
  /** Milliseconds without a call at the end, of a life that idles. */
  readonly idleMs: number;
}

/** The scan of a store that lived, and the same of a fresh one. */
export const SCAN = 'scan';
export const FRESH_SCAN = 'scan, fresh store';
const OPENING = 'open';
export const IDLE_MS: Count = { quick: 1000, full: 10_000 };

export const WINDOWS: Count = { quick: 20, full: 100 };
/** Before the first window comes a rehearsal, which is not counted: as many steps, but no more of the time than this share. */
const REHEARSAL_PART = 0.05;
/** Steps timed as one in it, or a tenth of them. */
const REHEARSAL_GROUP = 64;
/** Scans, or groups of them, between two windows. */
const SCANS = 20;
const SCANS_MS = 100;
/** A life with a pace makes the steps of so much time at once, about. */
const BURST_MS = 20;
const LOAD_BATCH = 500;

/** Lives a life in new stores, which are gone afterwards. `storeOf` gives the store of a name, not yet opened. */
export async function live(life: Life, extent: LifeExtent, storeOf: (name: string) => LifeStore): Promise<Lived> {
  const course = life.begin(extent.mode);
  const store = storeOf(life.name);
  const fresh = course.scan === undefined ? undefined : storeOf(`${life.name}-fresh`);
  const stores = fresh === undefined ? [store] : [store, fresh];
  try {
    for (const one of stores) {
      await one.engine.remove(one.name);
      await one.open();
      await fill(one, course.holds());
    }
    // Its steps open it.
    if (course.openings !== undefined) await store.close();
    return await new Living(life, course, extent, store, fresh).run();
  } finally {
    for (const one of stores) {
      await one.close();
      await one.engine.remove(one.name);
    }
  }
}

async function fill(store: LifeStore, pairs: readonly Pair[]): Promise<void> {
  for (let from = 0; from < pairs.length; from += LOAD_BATCH) {
    const part = pairs.slice(from, from + LOAD_BATCH);
    await store.session.batch({ keys: part.map(([key]) => key), values: part.map(([, value]) => value) });
  }
  store.commit();
  await turn();
}

class Part extends JoinedRounds {
  groupSize = 1;
  writtenBytes = 0;
  #dueMs = 0;

  /** `pace`: no more calls a second than so many, in bursts. */
  constructor(
    readonly phase: string | undefined,
    private readonly store: LifeStore,
    private readonly make: () => readonly LifeCall[],
    private readonly pace = Infinity,
  ) {
    super();
  }

  /** Makes calls that are not counted, but for what is wrong with them; finds how many last long enough for the timer. */
  async rehearse(calls: number, budgetMs: number, signal: AbortSignal): Promise<void> {
    const group = Math.min(REHEARSAL_GROUP, Math.ceil(calls / 10));
    const { tally, latencies } = await this.#measured(calls, { group, budgetMs, signal });
    this.tally.wrong += tally.wrong;
    this.groupSize = groupFor(latencies);
  }

  async goOn(calls: number, budgetMs: number, signal: AbortSignal, sample?: Limits['sample']): Promise<Round> {
    const round = await this.#measured(calls, { group: this.groupSize, budgetMs, signal, sample });
    this.add(round);
    return round;
  }

  result(): Lived['parts'][number] {
    const { phase, groupSize } = this;
    if (this.tally.ops === 0) throw new Error(`Of ${phase ?? 'a life'} nothing was measured.`);
    return { phase, round: this, groupSize };
  }

  async #measured(calls: number, limits: Omit<Limits, 'callsMax' | 'together'>): Promise<Round> {
    const { store } = this;
    const { group } = limits;
    const tally = emptyTally();
    let due: (readonly LifeCall[])[] = [];
    const check = (step: readonly LifeCall[], given: readonly unknown[]): void => {
      for (const [i, one] of step.entries()) {
        tally.bytes += one.bytes;
        if (one.writes) this.writtenBytes += one.bytes;
        if (one.check !== undefined && !one.check(given[i])) tally.wrong++;
      }
    };
    const task = new Calls<unknown[]>(tally, {
      calls,
      waves: false,
      group,
      // Only the calls that will be made: the model is where the store is.
      prepare: (from, to) => {
        due = Array.from({ length: to - from }, this.make);
      },
      run: (at) => stepOf(due[at % group] ?? [], store),
      check: (at, given) => {
        check(due[at % group] ?? [], given);
        tally.ops++;
        return this.#keepPace(limits.sample);
      },
      finish: () => store.commit(),
    });
    const round = await measure(task, { ...limits, callsMax: calls, together: false });
    if (tally.ops < calls) {
      // The time was up: the calls that were prepared are made, uncounted.
      for (const step of due) check(step, await stepOf(step, store));
      store.commit();
    }
    return round;
  }

  /** Pauses when the steps are ahead of their pace by a burst. Time that was lost is not caught up with. */
  #keepPace(look: Limits['sample']): Promise<void> | undefined {
    const dueMs = Math.max(this.#dueMs + 1000 / this.pace, now());
    this.#dueMs = dueMs;
    if (dueMs - now() < BURST_MS) return undefined;
    return (async () => {
      await look?.();
      await new Promise((resolve) => setTimeout(resolve, dueMs - now()));
    })();
  }
}

/** Makes the calls of a step, one after the other. A call that answers at once is not waited for. */
function stepOf(calls: readonly LifeCall[], on: LifeStore, given: unknown[] = []): unknown[] | PromiseLike<unknown[]> {
  while (given.length < calls.length) {
    const answer = calls[given.length]?.run(on);
    if (isLater(answer)) return answer.then((one) => stepOf(calls, on, [...given, one]));
    given.push(answer);
  }
  return given;
}

class Living {
  readonly #steps: Part;
  readonly #scans: readonly Part[];
  readonly #openings: Part | undefined;
  readonly #samples: LifeSample[] = [];
  readonly #first: readonly Pair[];
  /** The entries that scans look for. They are gathered before the scans: between two of them this would slow the second one down. */
  #held: readonly Pair[];

  constructor(
    private readonly life: Life,
    private readonly course: Course,
    private readonly extent: LifeExtent,
    private readonly store: LifeStore,
    fresh: LifeStore | undefined,
  ) {
    this.#steps = new Part(life.phase, store, () => course.step(), life.pace?.[extent.mode]);
    this.#first = course.holds();
    this.#held = this.#first;
    const scan = (entries: readonly Pair[]): LifeCall[] => (course.scan === undefined ? [] : [course.scan(entries)]);
    this.#scans =
      fresh === undefined
        ? []
        : [new Part(SCAN, store, () => scan(this.#held)), new Part(FRESH_SCAN, fresh, () => scan(this.#first))];
    this.#openings = course.openings && new Part(OPENING, store, () => []);
  }

  async run(): Promise<Lived> {
    const { steps, budgetMs, signal, mode } = this.extent;
    const every = Math.max(1, Math.round(steps / WINDOWS[mode]));
    await this.#steps.rehearse(every, budgetMs * REHEARSAL_PART, signal);
    this.course.openings?.();
    this.#held = this.course.holds();
    for (const scan of this.#scans) await scan.rehearse(SCANS * REHEARSAL_GROUP, SCANS_MS, signal);
    // Groups of one size: the mean of a larger group hides more of its slowest scan.
    const groupSize = Math.max(...this.#scans.map((scan) => scan.groupSize));
    for (const scan of this.#scans) scan.groupSize = groupSize;
    // Of a slow engine, too, there are enough scans for a p99.
    const windowMs = this.#scans.length > 0 ? budgetMs / WINDOWS[mode] : budgetMs;
    while (this.#steps.tally.ops < steps && this.#steps.elapsedMs < budgetMs) {
      const leftMs = Math.min(windowMs, budgetMs - this.#steps.elapsedMs);
      await this.#window(Math.min(every, steps - this.#steps.tally.ops), leftMs);
    }
    const idle = this.life.idles ? await this.#idle() : undefined;
    const stats = await this.store.opened?.report?.();
    if (this.#openings !== undefined) await this.store.open();
    const held = this.course.holds();
    return {
      parts: [this.#steps, ...this.#scans, ...(this.#openings ? [this.#openings] : [])].map((part) => part.result()),
      story: {
        planned: steps,
        samples: this.#samples,
        livingBytes: bytesOf(held),
        ...(idle && { idle }),
        ...(stats && { writeAmplification: writtenBytes(stats) / (bytesOf(this.#first) + this.#steps.writtenBytes) }),
      },
      problem: await verifyEntries(this.store.engine, this.store.session, held),
    };
  }

  async #window(steps: number, leftMs: number): Promise<void> {
    const { signal, sampled } = this.extent;
    let disk: DiskUse | undefined;
    let lookedMs = 0;
    const look = async (): Promise<void> => {
      // The end of a pause is no reason to look once more.
      if (now() - lookedMs < SAMPLE_MS) return;
      lookedMs = now();
      const seen = await this.store.engine.disk?.(this.store.name);
      if (seen !== undefined && seen.bytes >= (disk?.bytes ?? 0)) disk = seen;
    };
    const { tally, elapsedMs, latencies } = await this.#steps.goOn(steps, leftMs, signal, look);
    const stats = await this.store.opened?.report?.();
    const sample: LifeSample = {
      steps: this.#steps.tally.ops,
      at_ms: this.#steps.elapsedMs,
      stepsPerSecond: (tally.ops * 1000) / elapsedMs,
      p99: percentilesOf(latencies).p99,
      ...(disk && { disk }),
      ...(stats && { memoryBytes: heldBytes(stats) }),
    };
    this.#samples.push(sample);
    const openings = this.course.openings?.() ?? [];
    const [openingMs, microseconds] = [openings.reduce((sum, ms) => sum + ms, 0), openings.map((ms) => ms * 1000)];
    this.#openings?.add(roundOf({ ops: openings.length }, openingMs, microseconds));
    if (this.#scans.length > 0) this.#held = this.course.holds();
    // Another one first each time.
    const scans = this.#samples.length % 2 === 1 ? this.#scans : this.#scans.toReversed();
    for (const scan of scans) await scan.goOn(SCANS * scan.groupSize, SCANS_MS, signal);
    sampled?.(sample);
  }

  async #idle(): Promise<LifeStory['idle']> {
    const { idleMs, signal } = this.extent;
    await new Promise((resolve) => setTimeout(resolve, idleMs));
    signal.throwIfAborted();
    const disk = await this.store.engine.disk?.(this.store.name);
    return disk && { after_ms: idleMs, bytes: disk.bytes };
  }
}

function bytesOf(pairs: readonly Pair[]): number {
  return pairs.reduce((bytes, [key, value]) => bytes + key.length + value.length, 0);
}

export function samePair(a: Pair, b: Pair): boolean {
  return a[0] === b[0] && sameBytes(a[1], b[1]);
}
