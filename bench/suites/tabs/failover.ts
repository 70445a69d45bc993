/**
 * The wait of writers when the tab that leads is closed or killed.
 *
 *     writes        |-|-|-|-|--------------------|-|-|-|
 *     the command          ^
 *     the pause             <------------------->        between two acknowledged writes
 *     from the command      <-------------------->       to the end of the pause
 *
 * Invariant: two followers write without a pause of their own, each a key after another, and every acknowledged write is looked
 * for afterwards. The pause is the longest time between two acknowledged writes of a follower, from the command on: a browser takes
 * its own time to end a tab, and a tab that is being closed still answers.
 */

import type { Engine } from '../../core/engine.ts';
import { duration } from '../../core/figures.ts';
import { median } from '../../core/latency.ts';
import { roundOf } from '../../core/measure.ts';
import type { Plan } from '../../core/plan.ts';
import { type Context, report } from '../../core/suite.ts';
import type { Cause, House, RemoteTab } from './house.ts';
import { epochMs, type Written } from './protocol.ts';

const ENDS: Readonly<Record<Cause, string>> = {
  close: 'its tab is closed',
  kill: 'its renderer is killed',
};
const CAUSES: readonly Cause[] = ['close', 'kill'];
const TIMES = { quick: 3, full: 15 };
const ENTRIES = 10_000;
const FOLLOWERS = 2;
/** How long everybody writes before, and once there is another leader. */
const WRITING_MS = 250;
/** Nobody leads for so long: it is given up. */
const FAILED_MS = 30_000;

/** One death of a leader: milliseconds of each follower. */
interface Pause {
  readonly pause_ms: number;
  readonly fromCommand_ms: number;
}

/** Steps of progress. */
export function failoverSteps({ mode }: Plan, engines: readonly Engine[]): number {
  return engines.length * CAUSES.length * TIMES[mode];
}

/** Ends leaders, one after another, by each cause. */
export async function runFailovers(context: Context, house: House, engines: readonly Engine[]): Promise<void> {
  const { plan, place, emit, step } = context;
  const times = TIMES[plan.mode];
  for (const engine of engines) {
    const line = new Line(house, engine.name);
    try {
      await line.fill();
      for (const cause of CAUSES) {
        const pauses: Pause[] = [];
        for (let time = 0; time < times; time++) {
          step(`multi-tab (${place}): ${engine.name}, leader ended by ${cause}, ${time + 1} of ${times}`);
          const found = await line.end(cause);
          pauses.push(...found.pauses);
          for (const text of found.problems) {
            emit({ type: 'problem', text: `multi-tab, ${cause} on ${engine.name}: ${text}` });
          }
        }
        conclude(context, engine, cause, line.hasLeader, pauses);
      }
    } finally {
      await line.close();
    }
  }
}

/** Reports a row whose calls are the pauses of the writers. */
function conclude(context: Context, engine: Engine, cause: Cause, hasLeader: boolean, pauses: readonly Pause[]): void {
  const us = (ms: number): string => duration(ms * 1000);
  const fromCommand = pauses.map(({ fromCommand_ms }) => fromCommand_ms);
  const note = `from the command: median ${us(median(fromCommand))}, worst ${us(Math.max(...fromCommand))}`;
  const elapsed_ms = pauses.reduce((sum, { pause_ms }) => sum + pause_ms, 0);
  const phase = `pause of ${FOLLOWERS} writers, the ${hasLeader ? 'leader' : 'first tab'} is gone: ${ENDS[cause]}`;
  const microseconds = pauses.map(({ pause_ms }) => pause_ms * 1000);
  report(context, engine, { suite: 'multi-tab', phase, note }, [
    roundOf({ ops: pauses.length }, elapsed_ms, microseconds),
  ]);
}

/** The tabs of one store. */
class Line {
  readonly #store: string;
  #tabs: RemoteTab[] = [];
  #isNew = true;
  #ended = 0;
  hasLeader = false;

  constructor(
    private readonly house: House,
    private readonly engine: string,
  ) {
    this.#store = `bench-failover-${engine}`;
  }

  /** Opens as many tabs as are wanted. */
  async fill(): Promise<void> {
    const store = this.#store;
    while (this.#tabs.length <= FOLLOWERS) {
      const tab = await this.house.open();
      await tab.call.open({ engine: this.engine, store, entries: ENTRIES, isFirst: this.#isNew });
      this.#isNew = false;
      this.#tabs.push(tab);
    }
  }

  /** Ends the tab that leads, or the first one, while the others write. */
  async end(cause: Cause): Promise<{ pauses: Pause[]; problems: string[] }> {
    await this.fill();
    const victim = (await this.#leader(this.#tabs)) ?? (this.#tabs[0] as RemoteTab);
    const followers = this.#tabs.filter((tab) => tab !== victim);
    const prefix = (i: number): string => `${String(this.#ended).padStart(4, '0')}-${i}-`;
    for (const [i, tab] of followers.entries()) {
      await tab.call.write({ engine: this.engine, prefix: prefix(i) });
    }
    await pass(WRITING_MS);
    const command = epochMs();
    await this.house.end(victim, cause);
    if (this.hasLeader) await this.#succession(followers);
    await pass(WRITING_MS);
    const written = await Promise.all(followers.map((tab) => tab.call.stop()));
    const problems = written.flatMap(({ errors }) => errors);
    const reader = followers.at(-1) as RemoteTab;
    for (const [i, { writes }] of written.entries()) {
      const count = writes.length;
      const missing = await reader.call.missing({ engine: this.engine, prefix: prefix(i), count });
      if (missing > 0) problems.push(`${missing} of ${count} acknowledged writes are not there.`);
    }
    this.#ended++;
    this.#tabs = followers;
    return { pauses: written.map((one) => pauseOf(one, command)), problems };
  }

  async close(): Promise<void> {
    for (const [i, tab] of this.#tabs.entries()) {
      const remove = i === this.#tabs.length - 1;
      await tab.call.close({ engine: this.engine, store: this.#store, remove });
      await this.house.end(tab, 'close');
    }
  }

  async #leader(tabs: readonly RemoteTab[]): Promise<RemoteTab | undefined> {
    const leads = await Promise.all(tabs.map((tab) => tab.call.leads(this.engine)));
    this.hasLeader ||= leads.includes(true);
    return tabs[leads.indexOf(true)];
  }

  /** Resolves when one of these tabs leads. */
  async #succession(tabs: readonly RemoteTab[]): Promise<void> {
    const end = epochMs() + FAILED_MS;
    while ((await this.#leader(tabs)) === undefined) {
      if (epochMs() > end) throw new Error('No tab took over within half a minute.');
    }
  }
}

/** The longest wait of a writer that ended after the command. */
function pauseOf({ writes }: Written, command: number): Pause {
  let longest = { pause_ms: 0, fromCommand_ms: 0 };
  for (let i = 1; i < writes.length; i++) {
    const [, before] = writes[i - 1] as readonly [number, number];
    const [, after] = writes[i] as readonly [number, number];
    if (after > command && after - before > longest.pause_ms) {
      longest = { pause_ms: after - before, fromCommand_ms: after - command };
    }
  }
  return longest;
}

function pass(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
