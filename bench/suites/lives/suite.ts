/**
 * The lives in the browser: each on every engine that has its calls, one engine after another.
 *
 * Invariant: an engine lives a life once, from a new store to its end: rounds do not apply. An engine that fails is told, and the
 * others go on; one that lacks a call sits out, which is a note.
 */

import type { Access, Engine, Session, SessionOptions, StoreNumbers } from '../../core/engine.ts';
import type { Key } from '../../core/generator.ts';
import { budgetMs, type Plan } from '../../core/plan.ts';
import { makeRow } from '../../core/rows.ts';
import type { Special, SpecialContext } from '../../core/special.ts';
import type { Pair } from '../../targets/fs/engine.ts';
import { FRESH_SCAN, IDLE_MS, type Life, type LifeStore, live, SCAN, WINDOWS } from './life.ts';
import { LIVES } from './lives.ts';
import { storyText } from './story.ts';

const DURABILITY = 'relaxed';
/** Opening a store takes a page tens of milliseconds: fewer sessions than on Node show the same. */
const SESSIONS_MAX = 500;
const ROUNDS_MAX = 60;

/** The suites, for the list of those that make their rows themselves. */
export const LIFE_SUITES: readonly Special[] = LIVES.map((life) => ({
  name: life.name,
  title: life.title,
  family: 'beyond',
  quick: false,
  accesses: ['worker', 'page'],
  steps: (plan, engines, access) => ableOf(life, engines, access).length * WINDOWS[plan.mode],
  run: (context) => runLife(context, life),
}));

/** The engines that have its calls. */
function ableOf(life: Life, engines: readonly Engine[], access: Access): Engine[] {
  return candidatesOf(engines, access).filter((engine) => lackingOf(life, engine).length === 0);
}

/** Floors have no ranges over what was just written, and store nothing. Calls are awaited one by one: there is nothing in flight to join. */
function candidatesOf(engines: readonly Engine[], access: Access): Engine[] {
  return engines.filter(
    ({ role, accesses, durabilities, groupsInFlight }) =>
      role !== 'floor' && accesses.includes(access) && durabilities.includes(DURABILITY) && groupsInFlight !== true,
  );
}

function lackingOf({ needs }: Life, { abilities }: Engine): string[] {
  return needs.filter((need) => !abilities.includes(need));
}

async function runLife(context: SpecialContext, life: Life): Promise<void> {
  const { engines, access, emit, signal } = context;
  for (const engine of candidatesOf(engines, access)) {
    const title = `${life.name} (${access})`;
    const lacking = lackingOf(life, engine);
    if (lacking.length > 0) {
      emit({ type: 'note', text: `${title} is without ${engine.name}, which has no ${lacking.join(', ')}.` });
      continue;
    }
    try {
      await runEngine(context, life, engine);
    } catch (error) {
      signal.throwIfAborted();
      const told = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
      emit({ type: 'problem', text: `${title} on ${engine.name}: ${told}` });
    }
  }
}

async function runEngine(
  { plan, access, emit, step, signal }: SpecialContext,
  life: Life,
  engine: Engine,
): Promise<void> {
  const { mode, custom } = plan;
  const planned = stepsOf(life, plan);
  let steps = 0;
  const extent = {
    mode,
    steps: planned,
    budget_ms: budgetMs(plan) * Math.min(life.rounds[mode], ROUNDS_MAX),
    idle_ms: IDLE_MS[mode],
    signal,
    told: (sample: { readonly steps: number; readonly at_ms: number }) => {
      const suite = { suite: life.name, engine: engine.name, access, round: 0 };
      emit({ type: 'sample', ...suite, at_ms: sample.at_ms, ops: sample.steps - steps });
      steps = sample.steps;
      step(`${engine.name}, ${steps} of ${planned} steps`);
    },
  };
  const options = { durability: DURABILITY, valueBytes: life.valueBytes, memoryBytes: custom.memoryBytes } as const;
  const { parts, story, problem } = await live(
    life,
    extent,
    (name) => new SessionStore(engine, `bench-${name}`, options),
  );
  if (problem !== undefined) emit({ type: 'problem', text: `${life.name} (${access}) on ${engine.name}: ${problem}` });
  for (const [i, { phase, round, groupSize }] of parts.entries()) {
    const head = {
      suite: life.name,
      engine: engine.name,
      role: engine.role,
      access,
      durability: DURABILITY,
      unit: phase === SCAN || phase === FRESH_SCAN ? 'ranges' : 'steps',
      groupSize,
      ...(phase !== undefined && { phase }),
      ...(engine.version !== undefined && { engineVersion: engine.version }),
      ...(i === 0 && { life: story, note: storyText(story) }),
    } as const;
    const row = makeRow(head, [round], problem === undefined);
    if (round.tally.wrong > 0) {
      const text = `${life.name} (${access}) on ${engine.name}: ${round.tally.wrong} reads gave something else than was written.`;
      emit({ type: 'problem', text });
    }
    emit({ type: 'row', row });
  }
}

function stepsOf({ name, steps }: Life, { mode, scale, custom }: Plan): number {
  const planned = custom.calls ?? Math.max(1, Math.round(steps[mode] * scale));
  return name === 'sessions' ? Math.min(planned, SESSIONS_MAX) : planned;
}

/** An engine's session as a store that lives. */
class SessionStore implements LifeStore {
  readonly hasRanges: boolean;
  readonly disk?: NonNullable<LifeStore['disk']>;
  readonly #engine: Engine;
  readonly #name: string;
  readonly #options: SessionOptions;
  #session: Session | undefined;

  constructor(engine: Engine, name: string, options: SessionOptions) {
    this.#engine = engine;
    this.#name = `${name}-${engine.name}`;
    this.#options = options;
    this.hasRanges = engine.abilities.includes('range');
    const { disk } = engine;
    if (disk !== undefined) this.disk = () => disk(this.#name);
  }

  async open(): Promise<void> {
    this.#session = await this.#engine.open(this.#name, this.#options);
  }

  async close(): Promise<void> {
    const session = this.#session;
    this.#session = undefined;
    await session?.close();
  }

  remove(): Promise<void> {
    return this.#engine.remove(this.#name);
  }

  set(key: string, value: Uint8Array): void | Promise<void> {
    return this.#opened().set(key, value) as void | Promise<void>;
  }

  get(key: string): Uint8Array | undefined | Promise<Uint8Array | undefined> {
    return this.#opened().get(key);
  }

  delete(key: string): void | Promise<void> {
    return this.#opened().delete(key) as void | Promise<void>;
  }

  batch(pairs: readonly Pair[]): void | Promise<void> {
    const entries = { keys: pairs.map(([key]) => key), values: pairs.map(([, value]) => value) };
    return this.#opened().batch(entries) as void | Promise<void>;
  }

  range(gte: string, limit: number): readonly Pair[] | Promise<readonly Pair[]> {
    const pairs: Pair[] = [];
    const sink = { take: (key: Key, value: Uint8Array) => void pairs.push([key as string, value]) };
    const running = this.#opened().range(gte, limit, sink);
    return running === undefined ? pairs : running.then(() => pairs);
  }

  deleteRange(gte: string, lt: string): void | Promise<void> {
    return this.#opened().deleteRange?.(gte, lt) as void | Promise<void>;
  }

  commit(): void {
    const session = this.#session;
    if (session?.kind === 'sync') session.commit();
  }

  async report(): Promise<StoreNumbers | undefined> {
    return this.#session?.report?.();
  }

  #opened(): Session {
    if (this.#session === undefined) throw new Error(`The store ${this.#name} is closed.`);
    return this.#session;
  }
}
