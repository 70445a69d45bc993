// A full quota, in a real Chromium.

import type { Page, Worker } from 'playwright';
import { expect, onTestFinished, test } from 'vitest';
import type { FullStore, steps } from '../support/full-steps.ts';
import { type FullDriver, type FullPlan, liveFull } from '../support/full-storage.ts';
import { newProfile, openWorker, type Profile } from './support/profile.ts';

declare global {
  var fullSteps: typeof steps;
  var fullStore: FullStore;
}

const ROOM_BYTES = 30 * 1024 * 1024;

type Place = 'opfs' | 'indexeddb' | 'opfs, varve/synchronous';

/** A store in a page, or in a worker of it, whose origin has little room. */
class FullPage implements FullDriver {
  readonly roomBytes = ROOM_BYTES;
  readonly #place: Place;
  readonly #profile: Profile;
  /** The quota is small as long as this page is open. */
  #quotaPage: Page | undefined;
  #page: Page | undefined;
  #realm: Page | Worker | undefined;

  constructor(place: Place, profile: Profile) {
    this.#place = place;
    this.#profile = profile;
  }

  async open(): Promise<void> {
    const isSync = this.#place === 'opfs, varve/synchronous';
    await this.#keepQuota();
    const { page } = await this.#profile.openPage(isSync ? '/blank.html' : '/varve.html');
    this.#page = page;
    if (isSync) {
      const { worker } = await openWorker(page);
      this.#realm = worker;
      await worker.evaluate(async (name) => {
        globalThis.fullStore = await varveSync.open<number, Uint8Array>(name);
      }, this.#name);
    } else {
      this.#realm = page;
      await page.evaluate(
        async ([name, storage]) => {
          globalThis.fullStore = await varve.open(name, { storage });
        },
        [this.#name, this.#place as 'opfs' | 'indexeddb'] as const,
      );
    }
  }

  async close(): Promise<void> {
    await this.#there().evaluate(() => fullStore.close());
    await this.#page?.close();
  }

  /** Ends the page and its workers. Not the browser: after a kill it no longer knows the size of its files in OPFS, and grants more. */
  async kill(): Promise<void> {
    await this.#page?.close();
  }

  async killBrowser(): Promise<void> {
    await this.#profile.kill();
    this.#quotaPage = undefined;
  }

  async call(step: keyof typeof steps, ...rest: unknown[]): Promise<never> {
    const result = await this.#there().evaluate(
      ([name, args]) => (fullSteps[name] as (...all: unknown[]) => Promise<unknown>)(fullStore, ...args),
      [step, rest] as const,
    );
    return result as never;
  }

  /**
   * Makes the quota small, and keeps it so while no page of the store is open. Otherwise, a commit that outlives its page is granted the
   * browser's own quota, and Chromium's IndexedDB goes by that answer for 30 seconds.
   */
  async #keepQuota(): Promise<void> {
    if (this.#quotaPage !== undefined) return;
    const { page } = await this.#profile.openPage('/blank.html');
    await this.#profile.overrideQuota(page, ROOM_BYTES);
    this.#quotaPage = page;
  }

  get #name(): string {
    return `full ${this.#place}`;
  }

  #there(): Pick<Worker, 'evaluate'> {
    if (this.#realm === undefined) throw new Error('It is not open.');
    return this.#realm as Worker;
  }
}

const PLANS: Record<Place, Omit<FullPlan, 'name'>> = {
  // Sets do not wait for a flush that would make room: the first refusal comes at 78 or at 88 %.
  opfs: { usable: 0.75, backShare: 0.7 },
  'opfs, varve/synchronous': { usable: 0.8, backShare: 0.7 },
  indexeddb: { usable: 0.65, backShare: 0.55 },
};

test.each(Object.keys(PLANS) as Place[])(
  '%s: a full quota refuses sets, keeps entries, accepts deletes, then sets',
  { timeout: 900_000 },
  async (place) => {
    const profile = await newProfile();
    onTestFinished(() => profile.close());
    const driver = new FullPage(place, profile);
    const kept = await liveFull(driver, { name: place, ...PLANS[place] });

    // A full store and a browser that is killed.
    await driver.open();
    const { keys } = await driver.call('fill', 40_000);
    await driver.killBrowser();
    await driver.open();
    expect(await driver.call('read')).toEqual({ keys: [...kept, ...keys], wrong: [] });
    await driver.close();
  },
);
