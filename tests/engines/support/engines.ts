// The engines that the tests run in: all three, or those that `VARVE_ENGINES` names.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chosenEngines } from '../../../scripts/engines.mjs';
import { chromium } from './chromium.ts';
import type { Browser, Engine, EngineSite, LaunchOptions, Mode, Tab } from './engine.ts';
import { firefox } from './firefox.ts';
import { startSite } from './site.ts';
import { webkit } from './webkit.ts';

export const ENGINES: readonly Engine[] = [chromium, firefox, webkit].filter(({ name }) =>
  chosenEngines().includes(name),
);

/** A profile in a temporary folder, the browser that runs on it, and the site that its pages come from. */
export class Session {
  readonly site: EngineSite;
  readonly #engine: Engine;
  readonly #options: LaunchOptions;
  readonly #directory: string;
  #browser: Browser;

  private constructor(engine: Engine, options: LaunchOptions, directory: string, browser: Browser) {
    this.#engine = engine;
    this.#options = options;
    this.site = options.site;
    this.#directory = directory;
    this.#browser = browser;
  }

  /** Starts a site, and a browser with an empty profile. */
  static async start(engine: Engine, mode?: Mode, keepsPages = false): Promise<Session> {
    const directory = await mkdtemp(join(tmpdir(), `varve-${engine.name}-`));
    const options = { site: await startSite(), mode, keepsPages };
    return new Session(engine, options, directory, await engine.launch(directory, options));
  }

  /** The browser that runs now. */
  get browser(): Browser {
    return this.#browser;
  }

  /** Kills the browser and starts it again on the same profile, which may be inspected or changed in between. */
  async kill(between: (profile: string) => void = () => undefined): Promise<void> {
    await this.#browser.kill();
    between(this.#directory);
    this.#browser = await this.#engine.launch(this.#directory, this.#options);
  }

  /** Ends the browser and the site, and removes the profile. */
  async end(): Promise<void> {
    await this.#browser.close();
    await this.site.close();
    // Processes that outlive the browser briefly may still write there.
    await rm(this.#directory, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  }
}

/**
 * The options of a store that is open when its page is left with `rest`. Where that matters, its worker says when the engine is at rest;
 * elsewhere it is the worker of the package.
 */
export function leftOpen<O extends object>(engine: Engine, options: O): O & { worker?: string } {
  return engine.endsTransactions ? options : { ...options, worker: '/resting-worker.js' };
}

/**
 * Call it before leaving a page that has a store open. In some engines a transaction of such a page may stay open and block the
 * next one; there it waits until no transaction is under way, and the engine will begin none.
 */
export async function rest(engine: Engine, tab: Tab): Promise<void> {
  if (!engine.endsTransactions) await tab.evaluate(() => atRest());
}
