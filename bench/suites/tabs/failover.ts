/**
 * The wait of writers when the tab that leads is closed or killed.
 *
 *     writes        |-|-|-|-|--------------------|-|-|-|
 *     the command          ^
 *     the pause             <------------------->        between two acknowledged writes
 *
 * Invariant: two followers write without a pause of their own, each a key after another, and every acknowledged write is looked
 * for afterwards. The pause is the longest time between two acknowledged writes of a follower, from the command on: a browser takes
 * its own time to end a tab, and a tab that is being closed still answers. A tab of IndexedDB is no leader: there the first one ends.
 */

import type { Engine } from '../../core/engine.ts';
import { roundOf } from '../../core/measure.ts';
import type { Plan } from '../../core/plan.ts';
import { type Context, report } from '../../core/suite.ts';
import type { Cause, House, RemoteTab } from './house.ts';
import { epochMs, type Written } from './protocol.ts';

const ENDS: Readonly<Record<Cause, string>> = { close: 'its tab is closed', kill: 'its renderer is killed' };
const CAUSES: readonly Cause[] = ['close', 'kill'];
const TIMES = { quick: 3, full: 15 };
const ENTRIES = 10_000;
const TABS = 3;
/** How long everybody writes before, and once there is another leader. */
const WRITING_MS = 250;
/** Nobody leads for so long: it is given up. */
const FAILED_MS = 30_000;

export function failoverSteps({ mode }: Plan, engines: readonly Engine[]): number {
  return engines.length * CAUSES.length * TIMES[mode];
}

/** Ends leaders, one after another, by each cause; a row has the pauses of the writers as its calls. */
export async function runFailovers(context: Context, house: House, engines: readonly Engine[]): Promise<void> {
  const { plan, place, step } = context;
  const times = TIMES[plan.mode];
  for (const engine of engines) {
    for (const cause of CAUSES) {
      const pausesMs: number[] = [];
      let wrong: string | undefined;
      let gone = '';
      for (let time = 0; time < times; time++) {
        step(`multi-tab (${place}): ${engine.name}, leader ended by ${cause}, ${time + 1} of ${times}`);
        const found = await failover(house, engine.name, cause);
        pausesMs.push(...found.pausesMs);
        wrong ??= found.wrong;
        gone = found.gone;
      }
      const elapsedMs = pausesMs.reduce((sum, ms) => sum + ms, 0);
      const microseconds = pausesMs.map((ms) => ms * 1000);
      const round = roundOf({ ops: pausesMs.length }, elapsedMs, microseconds);
      const phase = `pause of ${TABS - 1} writers, the ${gone} is gone: ${ENDS[cause]}`;
      report(context, engine, { suite: 'multi-tab', phase }, [round], wrong);
    }
  }
}

/** Opens a store in some tabs, and ends the one that leads while the others write. */
async function failover(house: House, engine: string, cause: Cause) {
  const store = `bench-failover-${engine}`;
  const tabs: RemoteTab[] = [];
  for (let i = 0; i < TABS; i++) {
    const tab = await house.open();
    await tab.call.open({ engine, store, entries: ENTRIES, isFirst: i === 0 });
    tabs.push(tab);
  }
  const leader = await leaderOf(engine, tabs);
  const victim = leader ?? (tabs[0] as RemoteTab);
  const followers = tabs.filter((tab) => tab !== victim);
  for (const [i, tab] of followers.entries()) await tab.call.write({ engine, prefix: `${i}-` });
  await pass(WRITING_MS);
  const commandMs = epochMs();
  await house.end(victim, cause);
  while (leader !== undefined && (await leaderOf(engine, followers)) === undefined) {
    if (epochMs() > commandMs + FAILED_MS) throw new Error('No tab took over within half a minute.');
  }
  await pass(WRITING_MS);
  const written = await Promise.all(followers.map((tab) => tab.call.stop()));
  const problems = written.flatMap(({ errors }) => errors);
  for (const [i, tab] of followers.entries()) {
    const count = written[i]?.writes.length ?? 0;
    const missing = await tab.call.missing({ engine, prefix: `${i}-`, count });
    if (missing > 0) problems.push(`${missing} of ${count} acknowledged writes are not there.`);
  }
  for (const [i, tab] of followers.entries()) {
    await tab.call.close({ engine, store, remove: i === followers.length - 1 });
    await house.end(tab, 'close');
  }
  const gone = leader === undefined ? 'first tab' : 'leader';
  return { pausesMs: written.map((one) => pauseOf(one, commandMs)), wrong: problems[0], gone };
}

async function leaderOf(engine: string, tabs: readonly RemoteTab[]): Promise<RemoteTab | undefined> {
  const leads = await Promise.all(tabs.map((tab) => tab.call.leads(engine)));
  return tabs[leads.indexOf(true)];
}

/** The longest wait of a writer that ended after the command, in milliseconds. */
function pauseOf({ writes }: Written, commandMs: number): number {
  const waits = writes.slice(1).map(([, after], i) => (after > commandMs ? after - (writes[i]?.[1] ?? after) : 0));
  return Math.max(0, ...waits);
}

function pass(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
