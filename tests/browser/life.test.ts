// Hundreds of short sessions in a real browser. A page opens a store, writes a little once, and ends: it closes the store, is loaded
// again, is closed, or the browser is killed. Some sessions last a while first. Some are those of a service worker that stores a push
// message. `VARVE_SESSIONS` sets the number of sessions, `VARVE_SEED` their choices.
//
// - Every write is accepted, except from a service worker over OPFS.
// - No acknowledged write is lost.
// - The store does not grow with the number of sessions.

import type { Page } from 'playwright';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { randomFrom } from '../support/random.ts';
import { numberFrom, runSeed } from '../support/seed.ts';
import { type Census, checkBounded, Guestbook, summary, visitWrite } from '../support/visits.ts';
import { newProfile, type Profile } from './support/profile.ts';
import type { Visited, VisitPlan } from './support/visitor.ts';

/** Of both storages together. */
const SESSIONS = numberFrom('VARVE_SESSIONS', 500);
const STORAGES = ['opfs', 'indexeddb'] as const;
/** The browser is killed once in so many visits, and all entries are read. */
const KILL_EVERY = 50;
/** Before each kill, so many visits in a row never close their stores. */
const UNCLOSED = 25;
/** One visit in so many lasts longer than necessary, up to so many milliseconds. */
const DWELLS_EVERY = 25;
const DWELL_MS_MAX = 2000;
const WAIT_MS = 30_000;
/** One visit in so many is a push. */
const PUSH_EVERY = 10;
const LIMITS: Record<VisitPlan['storage'], Census> = {
  opfs: { records: 100, segments: 32, tables: 32, files: 64, bytes: 32 << 20, calls: 0 },
  // A service worker may lead all visits between two kills: one session, in which each visit writes two records.
  indexeddb: { records: 3 * KILL_EVERY, segments: 32, tables: 32, files: 0, bytes: 32 << 20, calls: 0 },
};

const seed = runSeed('browser', 'life');
const random = randomFrom(seed);
let profile: Profile;
let page: Page;

beforeAll(async () => {
  profile = await newProfile();
  await openTab();
});

afterAll(() => profile?.close());

async function openTab(): Promise<void> {
  ({ page } = await profile.openPage('/life.html'));
}

type Ending = 'stays' | 'is loaded again' | 'goes at once' | 'is closed' | 'is killed';
const ENDINGS: readonly Ending[] = [
  'stays',
  'stays',
  'stays',
  'is loaded again',
  'is loaded again',
  'goes at once',
  'is closed',
];

/** How a page ends its visit. A page that stays visits again; a page that goes at once does not wait for its write. */
function endingOf(visit: number): Ending {
  if (visit % KILL_EVERY === KILL_EVERY - 1) return 'is killed';
  if (isUnclosed(visit)) return random(2) === 0 ? 'is loaded again' : 'goes at once';
  return ENDINGS[random(ENDINGS.length)] ?? 'stays';
}

function isUnclosed(visit: number): boolean {
  return visit % KILL_EVERY >= KILL_EVERY - UNCLOSED;
}

async function end(ending: Ending): Promise<void> {
  if (ending === 'is loaded again' || ending === 'goes at once') await page.reload({ waitUntil: 'load' });
  if (ending === 'is closed') {
    await page.close();
    await openTab();
  }
  if (ending === 'is killed') {
    await profile.kill();
    await openTab();
  }
}

/** One of the stores, with what is known about it. */
class Life {
  readonly storage: VisitPlan['storage'];
  readonly guestbook: Guestbook;
  readonly censuses: Census[] = [];
  readonly #seed: number;

  constructor(storage: VisitPlan['storage'], number: number) {
    this.storage = storage;
    this.#seed = seed + number;
    this.guestbook = new Guestbook(this.#seed);
  }

  plan(visit: number, how: Omit<VisitPlan, 'storage' | 'write' | 'asked'>): VisitPlan {
    const asked = this.guestbook.asked(visit);
    return { storage: this.storage, write: visitWrite(this.#seed, visit), asked, ...how };
  }

  /** A service worker's session: refused on OPFS; over IndexedDB it is judged like a page's session. */
  judgePush(visit: number, plan: VisitPlan, visited: Visited | string): void {
    if (this.storage === 'opfs') return expect(visited).toBe('VARVE_UNSUPPORTED');
    if (typeof visited === 'string') throw new Error(`The push was refused: ${visited}`);
    this.judge(visit, plan, visited);
  }

  /** Judges what a session found, and notes that it has ended. */
  judge(visit: number, { asked, readsAll, waits }: VisitPlan, { census, values, entries }: Visited): void {
    this.guestbook.check(asked.map((key, at) => [key, values[at]]));
    if (readsAll) this.guestbook.checkAll(entries);
    this.censuses.push(census);
    this.guestbook.ended(visit, waits);
  }
}

test('any number of short sessions leaves all that was acknowledged, and little else', {
  timeout: 120_000 + 2000 * SESSIONS,
}, async () => {
  const lives = STORAGES.map((storage, number) => new Life(storage, number));
  const last = Math.ceil(SESSIONS / STORAGES.length);
  for (let visit = 0; visit <= last; visit++) {
    const ending = endingOf(visit);
    const isPush = random(PUSH_EVERY) === 0;
    const waits = isPush || ending !== 'goes at once';
    // A page that stays closes its stores; others do so now and then.
    const closes = ending === 'stays' || (waits && !isUnclosed(visit) && random(3) === 0);
    const dwell = random(DWELLS_EVERY) === 0 ? random(DWELL_MS_MAX) : 0;
    const wait = random(3) === 0 ? undefined : WAIT_MS;
    const readsAll = visit % KILL_EVERY === 0 || visit === last;
    const plans = lives.map((life) => life.plan(visit, { readsAll, waits, closes, dwell, wait }));
    const isOpenInPage = random(2) === 0;
    try {
      await Promise.all(
        lives.map(async (life, i) => {
          const plan = plans[i] as VisitPlan;
          if (!isPush) return life.judge(visit, plan, await page.evaluate((it) => globalThis.visit(it), plan));
          const pushed = page.evaluate(([it, isOpen]) => globalThis.push(it, isOpen), [plan, isOpenInPage] as const);
          life.judgePush(visit, plan, await pushed);
        }),
      );
    } catch (cause) {
      throw new Error(`session ${visit} failed; so many were well: ${visit * STORAGES.length}`, { cause });
    }
    await end(ending);
  }
  for (const { storage, guestbook, censuses } of lives) {
    console.log(`${censuses.length} sessions in ${storage}: ${summary(censuses)}`);
    expect(guestbook.size).toBeGreaterThan(last / 4);
    checkBounded(censuses, LIMITS[storage]);
  }
});
