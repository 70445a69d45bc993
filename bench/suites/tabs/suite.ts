/**
 * The suite `multi-tab`: one store that several tabs have open, and calls from the tab that leads it, from one that does not, and from
 * all of them at once; then how long writers wait when the leader is gone (failover.ts).
 *
 * Invariant: tabs read while nobody writes, and write to keys of their own, so that everything read or left behind can be
 * checked to the byte. All tabs of a round begin together. The engines take turns, round by round.
 */

import { type Engine, IN_FLIGHT } from '../../core/engine.ts';
import { rotated } from '../../core/loops.ts';
import { JoinedRounds, type Round } from '../../core/measure.ts';
import { type Context, register, report } from '../../core/suite.ts';
import { failoverSteps, runFailovers } from './failover.ts';
import { House, type RemoteTab } from './house.ts';
import { type Call, epochMs, SHARED, type Work } from './protocol.ts';

const NAME = 'multi-tab';
const ENTRIES = { quick: 5000, full: 20_000 };
const TABS = { quick: [1, 2, 4], full: [1, 2, 4, 8] };
const BUDGET_MS = { quick: 100, full: 600 };
/** Calls that all tabs together could make in a millisecond, at most: twice that many are laid out. */
const CALLS_PER_MS = { awaited: 40, waves: 800 };
/** A round begins so long after all are ready. */
const START_MS = 60;
const CALLS: readonly Call[] = ['get', 'set'];

interface Part {
  /** With the role of the one tab that calls, where the engine has roles. */
  readonly engine: Engine;
  readonly phase: string;
  /** The tabs whose calls count: one calls and the others have the store open, or all call at once. */
  readonly tabs: readonly RemoteTab[];
  readonly rounds: Round[];
}

interface Making {
  readonly engine: Engine;
  readonly call: Call;
  readonly tabs: readonly RemoteTab[];
  readonly parts: readonly Part[];
  group: number;
}

function enginesOf(engines: readonly Engine[]): Engine[] {
  return SHARED.flatMap((name) => engines.find((engine) => engine.name === name) ?? []);
}

async function run(context: Context): Promise<void> {
  const house = new House();
  try {
    await new TabSuite(context, house).run();
    if (context.access === 'page') await runFailovers(context, house, enginesOf(context.engines));
  } finally {
    await house.close();
  }
}

register({
  name: NAME,
  title: 'one store in several tabs',
  accesses: ['page', 'inflight'],
  steps: (plan, engines, access) => {
    // By hand there is nobody to open tabs.
    const able = globalThis.varveBenchTabs === undefined ? [] : enginesOf(engines);
    const count = TABS[plan.mode].length * able.length * (1 + CALLS.length * plan.rounds);
    return count + (access === 'page' ? failoverSteps(plan, able) : 0);
  },
  run,
});

class TabSuite {
  readonly #mode: 'quick' | 'full';
  readonly #engines: readonly Engine[];
  readonly #waves: boolean;
  readonly #groups = new Map<string, number>();

  constructor(
    private readonly context: Context,
    private readonly house: House,
  ) {
    this.#mode = context.plan.mode;
    this.#engines = enginesOf(context.engines);
    this.#waves = context.access === 'inflight';
  }

  async run(): Promise<void> {
    const tabs: RemoteTab[] = [];
    for (const count of TABS[this.#mode]) {
      while (tabs.length < count) tabs.push(await this.house.open());
      await this.#measure(tabs);
    }
    for (const tab of tabs) await this.house.end(tab, 'close');
  }

  async #measure(tabs: readonly RemoteTab[]): Promise<void> {
    const entries = ENTRIES[this.#mode];
    const store = ({ name }: Engine): string => `bench-tabs-${name}-${tabs.length}`;
    for (const engine of this.#engines) {
      this.#progress(`${tabs.length} tabs: ${engine.name} loads`);
      for (const [i, tab] of tabs.entries()) {
        await tab.call.open({ engine: engine.name, store: store(engine), entries, isFirst: i === 0 });
      }
    }
    const made: Making[] = [];
    for (const call of CALLS) made.push(...(await this.#makings(tabs, call)));
    for (const engine of this.#engines) {
      const wrong = await this.#verify(engine.name, tabs);
      for (const making of made) if (making.engine === engine) this.#conclude(making, wrong);
      for (const [i, tab] of tabs.entries()) {
        await tab.call.close({ engine: engine.name, store: store(engine), remove: i === tabs.length - 1 });
      }
    }
  }

  async #makings(tabs: readonly RemoteTab[], call: Call): Promise<Making[]> {
    const makings = await Promise.all(this.#engines.map((engine) => this.#making(engine, tabs, call)));
    for (let round = 0; round < this.context.plan.rounds; round++) {
      for (const making of rotated(makings, round)) await this.#runRound(making, round);
    }
    return makings;
  }

  /** Asks each time which tab leads, because the leader can change. */
  async #making(engine: Engine, tabs: readonly RemoteTab[], call: Call): Promise<Making> {
    const leads = await Promise.all(tabs.map((tab) => tab.call.leads(engine.name)));
    const by = { leader: tabs.filter((_, i) => leads[i]), follower: tabs.filter((_, i) => leads[i] === false) };
    const roles = (['leader', 'follower'] as const).filter((role) => by[role].length > 0);
    const count = tabs.length === 1 ? '1 tab' : `${tabs.length} tabs`;
    const part = (how: string, own: readonly RemoteTab[], name = engine.name): Part => {
      return { engine: { ...engine, name }, phase: `${count}, ${call}, ${how}`, tabs: own, rounds: [] };
    };
    const parts = roles.map((role) => part('one calls', by[role].slice(0, 1), `${engine.name} (${role})`));
    // Peers have no leader.
    if (roles.length === 0) parts.push(part('one calls', tabs.slice(0, 1)));
    if (tabs.length > 1) {
      parts.push(part('all call', tabs));
    }
    return { engine, call, tabs, parts, group: 1 };
  }

  async #runRound(making: Making, round: number): Promise<void> {
    const { engine, call, tabs, parts } = making;
    this.#progress(`${tabs.length} tabs: ${engine.name} ${call}, round ${round + 1} of ${this.context.plan.rounds}`);
    making.group = this.#waves ? 1 : await this.#groupOf(making);
    for (const part of parts) {
      part.rounds.push(sum(await this.#go(making, part.tabs, round)));
    }
  }

  async #go(making: Making, who: readonly RemoteTab[], round: number): Promise<Round[]> {
    this.context.signal.throwIfAborted();
    await Promise.all(
      who.map((tab) => {
        const work = this.#workOf(making, tab);
        const calls = Math.ceil((Math.min(2, who.length) * work.calls) / who.length);
        return tab.call.prepare({ ...work, calls, round });
      }),
    );
    const at = epochMs() + START_MS;
    return Promise.all(who.map((tab) => tab.call.go(at)));
  }

  #workOf({ engine, call, tabs, group }: Making, tab: RemoteTab): Work {
    const waves = this.#waves;
    const budgetMs = BUDGET_MS[this.#mode];
    const calls = this.context.plan.custom.calls ?? budgetMs * (waves ? CALLS_PER_MS.waves : CALLS_PER_MS.awaited);
    const part = { index: tabs.indexOf(tab), of: tabs.length };
    return { engine: engine.name, call, waves, ...part, calls, budgetMs, group, round: 0 };
  }

  async #groupOf(making: Making): Promise<number> {
    const key = `${making.engine.name} ${making.call}`;
    const [tab] = making.tabs;
    const known = this.#groups.get(key);
    if (known !== undefined || tab === undefined) return known ?? 1;
    const group = await tab.call.rehearse(this.#workOf(making, tab));
    this.#groups.set(key, group);
    return group;
  }

  #conclude({ group, parts }: Making, wrong: string | undefined): void {
    for (const { engine, phase, rounds } of parts) {
      const head = { suite: NAME, phase, groupSize: this.#waves ? IN_FLIGHT : group };
      report(this.context, engine, head, rounds, wrong);
    }
  }

  /** Puts together the writes of all tabs, and has the last tab walk the store. */
  async #verify(engine: string, tabs: readonly RemoteTab[]): Promise<string | undefined> {
    const states = await Promise.all(tabs.map((tab) => tab.call.state(engine)));
    const [first] = states;
    const last = tabs.at(-1);
    if (first === undefined || last === undefined) return undefined;
    const state = first.map((value, number) => states[number % tabs.length]?.[number] ?? value);
    return last.call.verify({ engine, state });
  }

  #progress(text: string): void {
    this.context.step(`${NAME} (${this.context.place}): ${text}`);
  }
}

/** The rounds of several tabs at once as one: its rate is the sum of theirs. */
function sum(rounds: readonly Round[]): Round {
  const all = new JoinedRounds();
  for (const round of rounds) all.add(round);
  const perMs = rounds.reduce((rate, { tally, elapsedMs }) => rate + tally.ops / elapsedMs, 0);
  all.elapsedMs = all.tally.ops / perMs;
  return all;
}
