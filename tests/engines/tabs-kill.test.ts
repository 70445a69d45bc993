// Four tabs of one browser write to one store. The leading tab is ended again and again, in every way that an engine has.
//
// - Every acknowledged write is there, once.
// - Unacknowledged writes of an ended tab are there up to some point, and none after it.
// - The other tabs notice only a pause.
//
// `VARVE_LEADER_KILLS` sets the number of rounds, `VARVE_TABS` the number of tabs, `VARVE_SEED` their choices.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { LifeJudge } from '../support/life.ts';
import { randomFrom } from '../support/random.ts';
import { numberFrom, runSeed } from '../support/seed.ts';
import type { Standing, TabsFound } from './fixtures/tab-writer.ts';
import type { Engine, Tab } from './support/engine.ts';
import { ENGINES, Session } from './support/engines.ts';
import { Heard } from './support/heard.ts';

const TABS = numberFrom('VARVE_TABS', 4);
const NAME = 'shared';
/** Groups that the tabs write between two kills, at least. */
const GROUPS = 20;
const GROUPS_MORE = 200;
/** Also run the cases that sometimes hang in an engine. */
const IN_FULL = process.env['VARVE_IN_FULL'] === '1';

const seed = runSeed('engines', 'tabs-kill');

/** A tab, and the life of its page. */
interface Seat {
  tab: Tab;
  judge: LifeJudge;
  heard: Heard;
}

/** The rest of a tab that was ended: nothing; the tab; the page, which continues. */
type Left = 'nothing' | 'tab' | 'page';

/** A way to end the leading tab. */
interface Cause {
  readonly name: string;
  isIn?(engine: Engine): boolean;
  end(session: Session, tab: Tab, others: () => Promise<void>): Promise<Left>;
}

function endsTransactions(engine: Engine): boolean {
  return engine.endsTransactions || IN_FULL;
}

const CAUSES: readonly Cause[] = [
  {
    name: 'its process is killed',
    // Where all tabs share one process, no tab is left; that is the same as killing the browser.
    isIn: ({ hasTabProcesses }) => hasTabProcesses,
    end: (session, tab) => session.browser.killTab(tab).then(() => 'nothing'),
  },
  {
    name: 'it is closed',
    isIn: endsTransactions,
    end: (_, tab) => tab.close().then(() => 'nothing'),
  },
  {
    name: 'its worker is terminated',
    isIn: endsTransactions,
    end: (_, tab) => tab.evaluate(() => tabWriter.terminate()).then(() => 'page'),
  },
  {
    name: 'it goes elsewhere and comes back',
    isIn: endsTransactions,
    async end(_, tab, others) {
      await tab.leave();
      await others();
      await tab.back();
      const life = await tab.evaluate(() => tabWriter.life() ?? null);
      return life === null ? 'tab' : 'page';
    },
  },
  {
    name: 'it is loaded again',
    isIn: endsTransactions,
    end: (_, tab) => tab.reload().then(() => 'tab'),
  },
  {
    name: 'it crashes',
    isIn: ({ canCrashTabs }) => canCrashTabs,
    end: (session, tab) => (session.browser.crashTab?.(tab) ?? Promise.reject()).then(() => 'nothing'),
  },
  {
    name: 'the browser is killed',
    // Its network process outlives it briefly, and no longer answers anything.
    isIn: ({ name }) => name !== 'webkit',
    end: (session) => session.kill().then(() => 'nothing'),
  },
];

describe.each(ENGINES)('$name', (engine) => {
  const rounds = numberFrom('VARVE_LEADER_KILLS', engine.name === 'chromium' ? 10 : 3);
  const causes = CAUSES.filter(({ isIn }) => isIn?.(engine) ?? true);
  const random = randomFrom(seed, engine.name.length, 1);
  const pauses = new Map<string, number[]>();
  let session: Session;
  let seats: Seat[] = [];
  let lives = 0;

  /** Begins a life in a tab, which does not write yet. */
  async function sit(tab: Tab): Promise<Seat> {
    const plan = { seed, life: lives++ };
    const heard = new Heard(plan.life, tab);
    await tab.evaluate((name, what) => tabWriter.begin(name, what), NAME, plan);
    return { tab, judge: new LifeJudge(plan), heard };
  }

  /** The seat of the leading tab. The leader may change during the call, when a tab is hidden. */
  function leader(): Promise<Seat> {
    const found = async (): Promise<Seat | undefined> => {
      for (const seat of seats) if (await seat.tab.evaluate(() => tabWriter.leads())) return seat;
      return undefined;
    };
    return expect.poll(found, { timeout: 60_000 }).toBeDefined().then(found) as Promise<Seat>;
  }

  /** Resolves when each of these has so many more groups acknowledged. */
  const progress = (of: readonly Seat[], groups: number): Promise<unknown> =>
    Promise.all(of.map(({ heard }) => heard.more(groups)));

  beforeAll(async () => {
    session = await Session.start(engine, undefined, true);
    while (seats.length < TABS) seats.push(await sit(await session.browser.openTab()));
  });

  afterAll(async () => {
    for (const [cause, of] of pauses) {
      if (of.length === 0) continue;
      const sorted = of.toSorted((a, b) => a - b);
      const at = (share: number): string => `${Math.round(sorted[Math.floor((sorted.length - 1) * share)] ?? 0)} ms`;
      console.log(`${engine.name}, ${cause}: ${of.length} pauses, median ${at(0.5)}, worst ${at(1)}`);
    }
    await session?.end();
  });

  test.each(
    Array.from({ length: rounds }, (_, round) => {
      const cause = causes[(seed + round) % causes.length] as Cause;
      return { round, cause, what: cause.name };
    }),
  )('round $round: $what, what was acknowledged is there once, and the other tabs go on', async ({ round, cause }) => {
    for (const { tab } of seats) await tab.evaluate(() => tabWriter.go());
    await progress(seats, GROUPS + random(GROUPS_MORE));

    const ended = await leader();
    const others = cause.name === 'the browser is killed' ? [] : seats.filter((seat) => seat !== ended);
    for (const { tab } of others) await tab.evaluate(() => tabWriter.pause());
    const left = await cause.end(session, ended.tab, () => progress(others, GROUPS).then(() => undefined));
    const alive = left === 'page' ? seats : others;
    await progress(alive, GROUPS);
    const measured = await Promise.all(others.map(({ tab }) => tab.evaluate(() => tabWriter.pause())));
    pauses.set(cause.name, [...(pauses.get(cause.name) ?? []), ...measured]);

    // Every page that runs waits until all of its calls are answered; then no page writes.
    const standings = new Map<Seat, Standing>();
    for (const seat of alive) standings.set(seat, await seat.tab.evaluate(() => tabWriter.rest()));
    const dead = seats.filter((seat) => !standings.has(seat));
    seats = [...alive];
    if (left === 'tab') seats.push(await sit(ended.tab));
    while (seats.length < TABS) seats.push(await sit(await session.browser.openTab()));
    const reader = seats[random(seats.length)] as Seat;
    const found = await reader.tab.evaluate(() => tabWriter.read());

    expect(found.faults).toEqual([]);
    for (const [seat, standing] of standings) expectAll(seat, standing, found);
    const survived = dead.map((seat) => expectPrefix(seat, found));
    for (const { judge } of dead) await reader.tab.evaluate((life) => tabWriter.forget(life), judge.plan.life);
    const known = new Set([...seats, ...dead].map(({ judge }) => judge.plan.life));
    expect(found.entries.filter(({ life }) => !known.has(life))).toEqual([]);
    for (const { tab, heard } of [...standings.keys()]) {
      expect(heard.faults).toEqual([]);
      expect(tab.errors).toEqual([]);
    }
    const retries = [...standings.values()].reduce((sum, standing) => sum + standing.retries, 0);
    console.log(
      `${engine.name}, round ${round}, ${cause.name}: ${survived.join(', ')}; ${found.entries.length} entries; ` +
        `${retries} retries so far; pauses ${measured.map(Math.round).join(', ')} ms`,
    );
  });
});

/** A life that continues left exactly what it wrote. */
function expectAll({ judge }: Seat, { groups, links, count, shared }: Standing, found: TabsFound): void {
  const { life } = judge.plan;
  judge.expect(
    groups,
    found.entries.filter((entry) => entry.life === life),
  );
  expect(countsOf(life, found)).toEqual({ links, count, shared });
}

/** A life that was ended left a prefix of what it wrote, with all that was acknowledged. */
function expectPrefix({ judge, heard }: Seat, found: TabsFound): string {
  const { life } = judge.plan;
  const { groups, links, count, shared } = heard.acknowledged;
  const survived = judge.survive(
    groups,
    found.entries.filter((entry) => entry.life === life),
  );
  const counts = countsOf(life, found);
  expect(counts.links).toBeGreaterThanOrEqual(links);
  expect(counts.count).toBeGreaterThanOrEqual(count);
  expect(counts.shared).toBeGreaterThanOrEqual(shared);
  expect(heard.faults).toEqual([]);
  return `life ${life}: ${survived} groups, ${groups} acknowledged`;
}

function countsOf(life: number, { links, counts, shared }: TabsFound): Record<'links' | 'count' | 'shared', number> {
  const of = (list: readonly (readonly [number, number])[]): number => list.find(([one]) => one === life)?.[1] ?? 0;
  return { links: of(links), count: of(counts), shared: shared[life] ?? 0 };
}
