/**
 * The suite `multi-tab`: one store that several tabs have open, and calls from the tab that leads it, from one that does not, and from
 * all of them at once; then how long writers wait when the leader is gone (failover.ts).
 *
 * Invariant: tabs read while nobody writes, and write to keys of their own, so that everything read or left behind can be
 * checked to the byte. All tabs of a round begin together. The engines take turns, round by round.
 */

import { type Access, IN_FLIGHT } from '../../core/engine.ts';
import { Latencies } from '../../core/latency.ts';
import type { Round } from '../../core/measure.ts';
import type { Emit, Plan } from '../../core/plan.ts';
import { type InTabs, makeRow, type Row } from '../../core/rows.ts';
import { TAB_SUITE } from '../../core/workloads.ts';
import { ENGINES } from '../../peers/list.ts';
import { runFailovers } from './failover.ts';
import { House, type RemoteTab } from './house.ts';
import { type Call, epochMs, type RoundData, type Work } from './protocol.ts';

/** Engines that several tabs can use at once, Varve first. */
const SHARED = ['varve', 'indexeddb', 'idb'];
const ENTRIES = { quick: 5000, full: 20_000 };
/** Tabs that have the store open. */
const TABS = { quick: [1, 2, 4], full: [1, 2, 4, 8] };
const BUDGET_MS = { quick: 100, full: 600 };
/** Calls that all tabs together could make in a millisecond, at most: twice that many are laid out. */
const CALLS_PER_MS = { awaited: 40, waves: 800 };
/** A round begins so long after all are ready. */
const START_MS = 60;
const CALLS: readonly Call[] = ['get', 'set'];

/** Who makes the calls of a row. */
interface Part {
  readonly role: InTabs['role'];
  readonly load: InTabs['load'];
  readonly tabs: readonly RemoteTab[];
}

/** One row in the making. */
interface Making {
  readonly engine: string;
  readonly parts: readonly Part[];
  /** What each part came to, round by round. */
  readonly rounds: Map<Part, Round[]>;
  group: number;
}

/** What one number of tabs is measured with. */
interface Setting {
  readonly tabs: readonly RemoteTab[];
  readonly call: Call;
  readonly access: Access;
}

/** Runs the suite from the page. Tabs are closed at the end, also when it is cancelled. */
export async function runTabSuite(plan: Plan, emit: Emit, signal: AbortSignal): Promise<void> {
  const house = new House();
  try {
    await new TabSuite(plan, house, emit, signal).run();
    await runFailovers(plan, house, enginesOf(plan), emit, signal);
  } finally {
    await house.close();
  }
}

function enginesOf(plan: Plan): string[] {
  return SHARED.filter((name) => plan.engines.includes(name));
}

class TabSuite {
  readonly #plan: Plan;
  readonly #house: House;
  readonly #emit: Emit;
  readonly #signal: AbortSignal;
  readonly #mode: 'quick' | 'full';
  readonly #engines: readonly string[];
  /** Groups of awaited calls, by engine and call. */
  readonly #groups = new Map<string, number>();
  #done = 0;

  constructor(plan: Plan, house: House, emit: Emit, signal: AbortSignal) {
    this.#plan = plan;
    this.#house = house;
    this.#emit = emit;
    this.#signal = signal;
    this.#mode = plan.mode;
    this.#engines = enginesOf(plan);
  }

  async run(): Promise<void> {
    const tabs: RemoteTab[] = [];
    for (const count of TABS[this.#mode]) {
      while (tabs.length < count) tabs.push(await this.#house.open());
      await this.#measure(tabs);
    }
    for (const tab of tabs) await this.#house.end(tab, 'close');
  }

  /** All rows of one number of tabs, on new stores. */
  async #measure(tabs: readonly RemoteTab[]): Promise<void> {
    const entries = ENTRIES[this.#mode];
    const store = (engine: string): string => `bench-tabs-${engine}-${tabs.length}`;
    for (const engine of this.#engines) {
      this.#progress(`${tabs.length} tabs: ${engine} loads`);
      for (const [i, tab] of tabs.entries()) {
        await tab.tell('open', { engine, store: store(engine), entries, isFirst: i === 0 });
      }
    }
    const rows: Row[] = [];
    for (const call of CALLS) {
      for (const access of ['page', 'inflight'] as const) {
        if (this.#plan.accesses.includes(access)) rows.push(...(await this.#rowsOf({ tabs, call, access })));
      }
    }
    for (const engine of this.#engines) {
      const wrong = await this.#verify(engine, tabs);
      if (wrong !== undefined) this.#emit({ type: 'problem', text: `${TAB_SUITE.name} on ${engine}: ${wrong}` });
      for (const row of rows.filter((one) => one.engine === engine)) {
        this.#emit({ type: 'row', row: { ...row, verified: row.verified && wrong === undefined } });
      }
      for (const [i, tab] of tabs.entries()) {
        await tab.tell('close', { engine, store: store(engine), remove: i === tabs.length - 1 });
      }
    }
  }

  async #rowsOf(setting: Setting): Promise<Row[]> {
    const makings = await Promise.all(this.#engines.map((engine) => this.#making(engine, setting)));
    for (let round = 0; round < this.#plan.rounds; round++) {
      for (let turn = 0; turn < makings.length; turn++) {
        const making = makings[(turn + round) % makings.length] as Making;
        await this.#runRound(making, setting, round);
      }
    }
    return makings.flatMap((making) => this.#conclude(making, setting));
  }

  /** Who leads is asked each time: a store may have been handed over. */
  async #making(engine: string, { tabs }: Setting): Promise<Making> {
    const leads = await Promise.all(tabs.map((tab) => tab.tell('leads', { engine })));
    const leader = tabs.filter((_, i) => leads[i] === true);
    const followers = tabs.filter((_, i) => leads[i] === false);
    const parts: Part[] = [];
    const [first] = tabs;
    if (leader.length === 0 && first !== undefined) parts.push({ role: 'tab', load: 'alone', tabs: [first] });
    if (leader.length > 0) parts.push({ role: 'leader', load: 'alone', tabs: leader });
    if (followers.length > 0) parts.push({ role: 'follower', load: 'alone', tabs: followers.slice(0, 1) });
    if (tabs.length > 1) {
      if (leader.length > 0) parts.push({ role: 'leader', load: 'all', tabs: leader });
      if (followers.length > 0) parts.push({ role: 'follower', load: 'all', tabs: followers });
      parts.push({ role: 'all', load: 'all', tabs });
    }
    return { engine, parts, rounds: new Map(parts.map((part) => [part, []])), group: 1 };
  }

  async #runRound(making: Making, setting: Setting, round: number): Promise<void> {
    const { tabs, call, access } = setting;
    const { engine, parts, rounds } = making;
    const alone = parts.filter(({ load }) => load === 'alone');
    const together = parts.filter(({ load }) => load === 'all');
    const text = `${tabs.length} tabs: ${engine} ${call} (${access}), round ${round + 1} of ${this.#plan.rounds}`;
    this.#progress(text);
    making.group = access === 'inflight' ? 1 : await this.#groupOf(engine, setting);
    for (const part of alone) {
      const [data] = await this.#go(making, setting, part.tabs, round);
      if (data !== undefined) rounds.get(part)?.push(sum([data]));
    }
    if (together.length === 0) return;
    const all = await this.#go(making, setting, tabs, round);
    for (const part of together) {
      rounds.get(part)?.push(sum(all.filter((_, i) => part.tabs.includes(tabs[i] as RemoteTab))));
    }
  }

  /** Has tabs make their calls at the same time. */
  async #go(making: Making, setting: Setting, who: readonly RemoteTab[], round: number): Promise<RoundData[]> {
    this.#signal.throwIfAborted();
    await Promise.all(
      who.map((tab) => {
        const work = this.#workOf(making.engine, setting, tab);
        const calls = Math.ceil((Math.min(2, who.length) * work.calls) / who.length);
        return tab.tell('prepare', { ...work, calls, round, group: making.group });
      }),
    );
    const at = epochMs() + START_MS;
    return Promise.all(who.map((tab) => tab.tell('go', { at })));
  }

  #workOf(engine: string, { tabs, call, access }: Setting, tab: RemoteTab): Work {
    const waves = access === 'inflight';
    const budget_ms = BUDGET_MS[this.#mode];
    const calls = this.#plan.custom.calls ?? budget_ms * (waves ? CALLS_PER_MS.waves : CALLS_PER_MS.awaited);
    return { engine, call, waves, index: tabs.indexOf(tab), of: tabs.length, calls, budget_ms, group: 1, round: 0 };
  }

  /** By the tab that is quickest: the first one, which leads. */
  async #groupOf(engine: string, setting: Setting): Promise<number> {
    const key = `${engine} ${setting.call}`;
    const [tab] = setting.tabs;
    const known = this.#groups.get(key);
    if (known !== undefined || tab === undefined) return known ?? 1;
    const group = await tab.tell('rehearse', this.#workOf(engine, setting, tab));
    this.#groups.set(key, group);
    return group;
  }

  #conclude(making: Making, { tabs, call, access }: Setting): Row[] {
    const { engine: name, rounds, group } = making;
    const engine = ENGINES.find((known) => known.name === name);
    if (engine === undefined) return [];
    const groupSize = access === 'inflight' ? IN_FLIGHT : group;
    const head = { suite: TAB_SUITE.name, engine: name, role: engine.role, access, groupSize } as const;
    return making.parts.map((part) => {
      const { role, load } = part;
      const place = { count: tabs.length, call, role, load, place: this.#house.place };
      return makeRow({ ...head, durability: 'relaxed', unit: 'ops', tabs: place }, rounds.get(part) ?? [], true);
    });
  }

  /** Puts together what every tab wrote, and has the last one walk the store. */
  async #verify(engine: string, tabs: readonly RemoteTab[]): Promise<string | undefined> {
    const states = await Promise.all(tabs.map((tab) => tab.tell('state', { engine })));
    const [first] = states;
    const last = tabs.at(-1);
    if (first === undefined || last === undefined) return undefined;
    const state = first.map((value, number) => states[number % tabs.length]?.[number] ?? value);
    return last.tell('verify', { engine, state });
  }

  #progress(text: string): void {
    const rounds = this.#engines.length * CALLS.length * this.#plan.accesses.length * this.#plan.rounds;
    const total = TABS[this.#mode].length * (this.#engines.length + rounds);
    this.#emit({ type: 'progress', done: Math.min(this.#done++, total), total, text });
  }
}

/** The rounds of several tabs at once as one: its rate is the sum of theirs. */
function sum(rounds: readonly RoundData[]): Round {
  const latencies = new Latencies();
  const tally = { ops: 0, bytes: 0, reads: 0, hits: 0, wrong: 0 };
  let perMs = 0;
  for (const round of rounds) {
    for (const name of ['ops', 'bytes', 'reads', 'hits', 'wrong'] as const) tally[name] += round.tally[name];
    latencies.addAll(Latencies.of(round.samples));
    perMs += round.tally.ops / round.elapsed_ms;
  }
  const elapsed_ms = tally.ops / perMs;
  return { tally, elapsed_ms, latencies, timeline: [[elapsed_ms, tally.ops]] };
}
