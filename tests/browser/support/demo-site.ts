// The pages of the demo, served to a browser of a test under the strict policy; any error that a page reports fails the test.
// Invariant: each site has its own port, and so its own origin and stores.

import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright';
import { STRICT_POLICY, serve } from '../../../scripts/server.mjs';
import { buildPages, writeCities } from '../../../scripts/site.mjs';
import { root } from '../../../scripts/tools.mjs';
import type { Profile } from './profile.ts';

/** Answers requests instead of the files. */
export type Respond = NonNullable<Parameters<typeof serve>[0]['respond']>;

/** Builds the demo into a folder of the tests; returns the folder. */
export async function buildDemo(name: string): Promise<string> {
  const folder = join(root, 'build', name);
  rmSync(folder, { recursive: true, force: true });
  await buildPages(join(root, 'demo'), folder);
  cpSync(join(root, 'dist'), join(folder, 'varve'), { recursive: true });
  writeCities(join(folder, 'cities.tsv'));
  return folder;
}

/** The demo at its own origin. */
export class DemoSite {
  /** Errors that pages reported. */
  readonly errors: string[] = [];
  readonly #profile: Profile;
  readonly #site: Awaited<ReturnType<typeof serve>>;

  private constructor(profile: Profile, site: Awaited<ReturnType<typeof serve>>) {
    this.#profile = profile;
    this.#site = site;
  }

  /** Serves a folder that `buildDemo` made. */
  static async start(profile: Profile, folder: string, respond: Respond = () => false): Promise<DemoSite> {
    const site = await serve({ mounts: [{ path: '/demo/', folder, headers: STRICT_POLICY }], respond });
    return new DemoSite(profile, site);
  }

  get origin(): string {
    return this.#site.origin;
  }

  /** Opens a page of the demo in a new tab. */
  async open(path: string): Promise<Page> {
    const page = await this.#profile.context.newPage();
    page.on('pageerror', (error) => this.errors.push(String(error)));
    page.on('console', (message) => {
      if (message.type() === 'error') this.errors.push(message.text());
    });
    await page.goto(`${this.origin}/demo/${path}`);
    return page;
  }

  /** Checks the tabs for reported errors, then closes them and the site. */
  async close(): Promise<void> {
    for (const page of this.#profile.context.pages()) {
      this.errors.push(...(await page.locator('#alert:not([hidden])').allTextContents()));
      await page.close();
    }
    await this.#site.close();
  }
}
