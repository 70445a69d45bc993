// Whole browsers are killed with SIGKILL while they write, again and again, on one profile. Acknowledged writes are there, and the store
// is a prefix of history. `VARVE_KILL_ROUNDS` sets the number of rounds, `VARVE_SEED` their choices. Each round writes up to three stores:
//
// - one through `varve` where `open` puts it;
// - one in IndexedDB;
// - one through `varve/synchronous`, in an engine that has files.
//
// In one or two of a hundred rounds the kill tears the log in which Chromium keeps IndexedDB. One or two starts later Chromium finds the
// log corrupt and deletes it (torn-logs.test.ts). The store must then report that it was lost, and begin anew.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Found, History, type Plan } from '../support/history.ts';
import { isTorn, logsOf } from '../support/leveldb.ts';
import { Progress } from '../support/progress.ts';
import { randomFrom } from '../support/random.ts';
import { numberFrom, runSeed } from '../support/seed.ts';
import type { Engine, Tab } from './support/engine.ts';
import { ENGINES, Session } from './support/engines.ts';

const ROUNDS = numberFrom('VARVE_KILL_ROUNDS', 3);
/** Sets of each store in a round, after which the browser is killed. */
const SETS = 2000;
const SETS_MORE = 6000;
const WORKER = '/crash-calls-worker.js';

const seed = runSeed('engines', 'kill');

/** A store that is written: how the page does that, and what the store must have. */
interface Written {
  readonly name: string;
  history: History;
  /** Whether the browser may lose it because a kill tore the browser's own files. */
  readonly mayBeLost?: boolean;
  open(tab: Tab): Promise<Found>;
  start(tab: Tab, plan: Plan): Promise<unknown>;
}

function inPage(name: string, options: { storage?: 'indexeddb' }): Written {
  return {
    name,
    history: new History(),
    mayBeLost: options.storage === 'indexeddb',
    open: (tab) => tab.evaluate((store, given) => writer.open(store, given), name, options),
    start: (tab, plan) => tab.evaluate((store, what) => writer.start(store, what), name, plan),
  };
}

function inWorker(name: string): Written {
  const call = (tab: Tab, method: string, ...args: readonly unknown[]) =>
    tab.evaluate((script, what, given) => workers(script, what, ...given), WORKER, method, args);
  return {
    name,
    history: new History(),
    open: async (tab) => (await call(tab, 'open', name)) as Found,
    start: (tab, plan) => call(tab, 'start', name, plan),
  };
}

function storesOf({ rung }: Engine): Written[] {
  const database = inPage('database', { storage: 'indexeddb' });
  return rung.kind === 'opfs' ? [inPage('files', {}), inWorker('synchronous'), database] : [database];
}

describe.each(ENGINES)('$name', (engine) => {
  const stores = storesOf(engine);
  const random = randomFrom(seed, engine.name.length);
  let session: Session;
  let tab: Tab;
  let wasTorn = false;

  beforeAll(async () => {
    session = await Session.start(engine);
    tab = await session.browser.openTab();
    for (const store of stores) store.history.expect(await store.open(tab));
  });

  afterAll(() => session?.end());

  test.each(Array.from({ length: ROUNDS }, (_, round) => ({ round })))(
    'round $round: what was acknowledged before the browser was killed is there, and what is there is a prefix of history',
    async ({ round }) => {
      const progress = new Progress((listener) => tab.hear(listener));
      const plans = stores.map(({ history }, i): Plan => ({ seed: seed + i, round, sequence: history.sequence }));
      await Promise.all(stores.map((store, i) => store.start(tab, plans[i] as Plan)));
      // One of the stores decides when; the others are at any point.
      const decides = stores[random(stores.length)] as Written;
      await progress.reached(decides.name, SETS + random(SETS_MORE));
      await session.kill((profile) => {
        wasTorn ||= logsOf(profile, 'indexeddb').some(isTorn);
      });
      tab = await session.browser.openTab();
      for (const [i, store] of stores.entries()) {
        const acknowledged = progress.groups(store.name);
        const found = await store.open(tab);
        if (store.mayBeLost && wasTorn && found.state === 'lost') {
          console.log(`${engine.name}, round ${round}, ${store.name}: lost by the browser`);
          store.history = new History();
          store.history.expect(found);
          continue;
        }
        const groups = store.history.survive(plans[i] as Plan, acknowledged, found);
        console.log(
          `${engine.name}, round ${round}, ${store.name}: ${groups} groups, ${acknowledged} acknowledged, ${found.state}`,
        );
      }
      expect(stores.some(({ history }) => history.size > 1000)).toBe(true);
    },
  );
});
