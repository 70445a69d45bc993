/**
 * Visits of the notes app: first ones over slow networks, and its use when it is opened again.
 *
 * Invariant: a first visit finds no cache, no store and no code that was compiled before. Stores take turns, round by round. After a visit
 * the notes of its store are compared with those that were added.
 */

import type { CDPSession, Page } from 'playwright';
import { bytes } from '../../core/figures.ts';
import { rotated } from '../../core/loops.ts';
import { type Round, roundOf } from '../../core/measure.ts';
import type { Emit } from '../../core/plan.ts';
import { report } from '../../core/suite.ts';
import { versionOf } from '../command.ts';
import { noteOf, WELCOME } from './pages/app.ts';
import { PACKAGES, type Site, type StoreName } from './site.ts';

export const SUITES = ['open-first-visit', 'notes-app'] as const;
/** Milliseconds of a round trip, and bytes a second. The last one is the 3G of WebPageTest. */
const NETWORKS = {
  local: { latency: 0, throughput: -1 },
  '100 ms, 10 Mbit/s': { latency: 100, throughput: 10e6 / 8 },
  '3G: 300 ms, 1.6 Mbit/s': { latency: 300, throughput: 1.6e6 / 8 },
} as const;
type Network = keyof typeof NETWORKS;
const LOCAL: Network = 'local';
/** Notes of the app in use, and how many are looked for and added in a round. */
const NOTES = 1000;
const CALLS = 20;

const titles = (beginning: string, count: number): string[] =>
  Array.from({ length: count }, (_, i) => beginning + String(i).padStart(4, '0'));

export class Visits {
  readonly #rows = new Map<string, { suite: string; phase: string; store: StoreName; note: string; rounds: Round[] }>();
  readonly #wrong = new Map<StoreName, string>();

  constructor(
    private readonly page: Page,
    private readonly devtools: CDPSession,
    private readonly site: Site,
    private readonly stores: readonly StoreName[],
  ) {}

  async first(round: number): Promise<void> {
    for (const network of Object.keys(NETWORKS) as Network[]) {
      for (const store of rotated(this.stores, round)) {
        const shownMs = await this.#visit(store, network);
        await this.#compare(store, [WELCOME]);
        const { requests, bytes: taken } = this.site.taken();
        const note = `${requests} requests, ${bytes(taken)} after gzip`;
        this.#add('open-first-visit', `first value, ${network}`, store, [shownMs], note);
      }
    }
  }

  async use(round: number): Promise<void> {
    for (const store of rotated(this.stores, round)) {
      const old = titles('note ', NOTES);
      await this.#visit(store, LOCAL);
      await this.page.evaluate((all) => addAll(all), old);
      await this.page.reload();
      this.#add('notes-app', 'reload to the first list', store, [await this.page.evaluate(() => firstShown)]);
      // Nothing else outlives the page.
      if (store === 'memory') await this.page.evaluate((all) => addAll(all), old);
      const found = await this.#shown(
        titles('note 0', CALLS).map((title) => title.slice(0, -2)),
        'input',
      );
      this.#add('notes-app', 'keystroke to list', store, found);
      const added = titles('new ', CALLS);
      this.#add('notes-app', 'adding a note, to list', store, await this.#shown(added, 'submit'));
      await this.#compare(store, [...added, ...old, WELCOME]);
    }
  }

  conclude(emit: Emit): void {
    for (const { suite, phase, store, note, rounds } of this.#rows.values()) {
      const isFloor = store === 'memory';
      const engine = { name: store, role: isFloor ? 'floor' : store === 'varve' ? 'varve' : 'peer' } as const;
      const version = isFloor ? {} : { version: versionOf(PACKAGES[store]) };
      const head = { suite, phase, durability: isFloor ? 'memory' : 'relaxed', ...(note && { note }) } as const;
      report({ emit, place: 'page' }, { ...engine, ...version }, head, rounds, this.#wrong.get(store));
    }
  }

  /** Visits the app as if nobody ever had. Resolves with the milliseconds to its first list. */
  async #visit(store: StoreName, network: Network): Promise<number> {
    const { latency, throughput } = NETWORKS[network];
    await this.page.goto('about:blank');
    await this.devtools.send('Storage.clearDataForOrigin', { origin: this.site.origin, storageTypes: 'all' });
    await this.devtools.send('Network.clearBrowserCache');
    const speed = { downloadThroughput: throughput, uploadThroughput: throughput };
    await this.devtools.send('Network.emulateNetworkConditions', { offline: false, latency, ...speed });
    this.site.taken();
    await this.page.goto(`${this.site.origin}/${store}/`);
    return this.page.evaluate(() => firstShown);
  }

  /** Types or adds each of these; resolves with the milliseconds from each to its list. */
  #shown(texts: readonly string[], event: 'input' | 'submit'): Promise<number[]> {
    const act = async ([all, name]: readonly [readonly string[], string]): Promise<number[]> => {
      const [search, form, list] = document.body.children as unknown as [HTMLInputElement, HTMLElement, HTMLElement];
      const times: number[] = [];
      for (const text of all) {
        search.value = text;
        const since = performance.now();
        const shown = new Promise((resolve) => list.addEventListener('shown', resolve, { once: true }));
        (name === 'input' ? search : form).dispatchEvent(new Event(name, { cancelable: true }));
        await shown;
        times.push(performance.now() - since);
      }
      return times;
    };
    return this.page.evaluate(act, [texts, event] as const);
  }

  async #compare(store: StoreName, expected: readonly string[]): Promise<void> {
    const found = await this.page.evaluate(() => notes.find('', 1e6));
    const sorted = [...found].sort((a, b) => (a.title < b.title ? -1 : 1));
    if (JSON.stringify(sorted) === JSON.stringify(expected.map(noteOf))) return;
    this.#wrong.set(store, `${found.length} notes are there, ${expected.length} were added, or one has another text.`);
  }

  #add(suite: string, phase: string, store: StoreName, timesMs: readonly number[], note = ''): void {
    const key = `${suite} ${phase} ${store}`;
    const row = this.#rows.get(key) ?? { suite, phase, store, note, rounds: [] };
    this.#rows.set(key, row);
    const sumMs = timesMs.reduce((sum, ms) => sum + ms, 0);
    row.rounds.push(
      roundOf(
        { ops: timesMs.length },
        sumMs,
        timesMs.map((ms) => ms * 1000),
      ),
    );
  }
}
