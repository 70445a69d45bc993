// A full quota, in a real Chromium.

import type { Page } from 'playwright-core';
import { onTestFinished, test } from 'vitest';
import type { FullStore, steps } from '../support/full-steps.ts';
import { type FullDriver, liveFull } from '../support/full-storage.ts';
import { newProfile, type Profile } from './support/profile.ts';

declare global {
  var fullSteps: typeof steps;
  var fullStore: FullStore;
}

const ROOM_BYTES = 30 * 1024 * 1024;

/** A store in a page whose origin has little room. */
class FullPage implements FullDriver {
  readonly roomBytes = ROOM_BYTES;
  readonly #profile: Profile;
  readonly #storage: 'opfs' | 'indexeddb';
  #page: Page | undefined;

  constructor(profile: Profile, storage: 'opfs' | 'indexeddb') {
    this.#profile = profile;
    this.#storage = storage;
  }

  async open(): Promise<void> {
    const { page } = await this.#profile.openPage();
    await this.#profile.overrideQuota(page, ROOM_BYTES);
    this.#page = page;
    await page.evaluate(async (storage) => {
      globalThis.fullStore = await varve.open(`full ${storage}`, { storage });
    }, this.#storage);
  }

  async close(): Promise<void> {
    await this.#there().evaluate(() => fullStore.close());
    await this.#there().close();
  }

  async kill(): Promise<void> {
    await this.#profile.kill();
  }

  async call(step: keyof typeof steps, ...rest: unknown[]): Promise<never> {
    const told = await this.#there().evaluate(
      ([name, args]) => (fullSteps[name] as (...all: unknown[]) => Promise<unknown>)(fullStore, ...args),
      [step, rest] as const,
    );
    return told as never;
  }

  #there(): Page {
    if (this.#page === undefined) throw new Error('It is not open.');
    return this.#page;
  }
}

test.each(['opfs', 'indexeddb'] as const)(
  '%s: a full quota is used, refuses, keeps, deletes and goes on',
  { timeout: 900_000 },
  async (storage) => {
    // A browser of its own: one that was killed counts what a store in OPFS took, and was removed, as 4 GiB from then on.
    const profile = await newProfile();
    onTestFinished(() => profile.close());
    const driver = new FullPage(profile, storage);
    await liveFull(driver, storage === 'opfs' ? { usable: 0.6, backShare: 0.5 } : { usable: 0.5, backShare: 0.25 });
  },
);
