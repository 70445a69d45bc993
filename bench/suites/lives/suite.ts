/**
 * The lives as suites: each on every engine that has its calls, one engine after another, in the browser and on Node.
 *
 * Invariant: an engine lives a life once, from a new store to its end: rounds do not apply. An engine that fails is reported, and the
 * others continue; one that lacks a call sits out, which is a note.
 */

import type { Access, Engine } from '../../core/engine.ts';
import { budgetMs } from '../../core/plan.ts';
import { caseName } from '../../core/row.ts';
import { type Context, count, explain, register, report } from '../../core/suite.ts';
import { FRESH_SCAN, IDLE_MS, type Life, LifeStore, live, SCAN, WINDOWS } from './life.ts';
import { LIVES } from './lives.ts';
import { storyText } from './story.ts';

const DURABILITY = 'relaxed';
/** A life ends after the time of so many rounds of other suites. */
const ROUNDS = count(20, 60);

for (const life of LIVES) {
  register({
    ...{ name: life.name, title: life.title, accesses: ['worker', 'page'] },
    steps: (plan, engines, access) => {
      const able = candidatesOf(engines, access).filter((engine) => lackingOf(life, engine).length === 0);
      return able.length * WINDOWS[plan.mode];
    },
    run: (context) => runLife(context, life),
  });
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

async function runLife(context: Context, life: Life): Promise<void> {
  const { engines, access, place, emit, signal } = context;
  for (const engine of candidatesOf(engines, access)) {
    const title = caseName({ suite: life.name, access: place });
    const lacking = lackingOf(life, engine);
    if (lacking.length > 0) {
      emit({ type: 'note', text: `${title} is without ${engine.name}, which has no ${lacking.join(', ')}.` });
      continue;
    }
    try {
      await runEngine(context, life, engine);
    } catch (error) {
      signal.throwIfAborted();
      emit({ type: 'problem', text: `${title} on ${engine.name}: ${explain(error)}` });
    }
  }
}

async function runEngine(context: Context, life: Life, engine: Engine): Promise<void> {
  const { plan, step, signal } = context;
  const { mode, custom } = plan;
  const planned = stepsOf(context, life, engine);
  const extent = {
    mode,
    steps: planned,
    budgetMs: budgetMs(plan) * ROUNDS[mode],
    idleMs: IDLE_MS[mode],
    signal,
    sampled: ({ steps }: { readonly steps: number }) =>
      step(`${life.name}: ${engine.name}, ${steps} of ${planned} steps`),
  };
  const options = { durability: DURABILITY, valueBytes: life.valueBytes, memoryBytes: custom.memoryBytes } as const;
  const { parts, story, problem } = await live(life, extent, (name) => new LifeStore(engine, `bench-${name}`, options));
  for (const [i, { phase, round, groupSize }] of parts.entries()) {
    const unit = phase === SCAN || phase === FRESH_SCAN ? 'ranges' : 'steps';
    const more = { ...(phase !== undefined && { phase }), ...(i === 0 && { life: story, note: storyText(story) }) };
    report(context, engine, { suite: life.name, unit, groupSize, ...more }, [round], problem);
  }
}

function stepsOf({ plan: { mode, scale, custom } }: Context, { steps, needs }: Life, engine: Engine): number {
  const planned = custom.calls ?? Math.max(1, Math.round(steps[mode] * scale));
  return needs.includes('open') ? Math.min(planned, engine.opensMax ?? planned) : planned;
}
