// Chromium, driven through Playwright on a persistent profile.

import { readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { type BrowserContext, type Page, chromium as playwright } from 'playwright';
import { browserFlags, findBrowser } from '../../../scripts/browser.mjs';
import { processOf } from '../../support/processes.ts';
import type { Browser, Engine, Tab } from './engine.ts';

const OPFS = { kind: 'opfs' } as const;
const WAIT_MS = 60_000;

export const chromium: Engine = {
  name: 'chromium',
  rung: OPFS,
  modes: [{ title: 'in a private window', rung: OPFS, isPrivate: true }],
  hasTabProcesses: true,
  endsTransactions: true,
  canCrashTabs: true,
  sharedWorkerRung: 'indexeddb',
  async launch(directory, { site, mode, keepsPages }) {
    const executablePath = await findBrowser();
    if (executablePath === undefined) throw new Error('No Chromium was found: run `npm run setup`.');
    const isPrivate = mode?.isPrivate === true;
    const args = isPrivate ? [...browserFlags(), '--incognito'] : browserFlags();
    const context = await playwright.launchPersistentContext(directory, {
      executablePath,
      args,
      ignoreDefaultArgs: keepsPages ? ['--disable-back-forward-cache'] : [],
    });
    context.setDefaultTimeout(WAIT_MS);
    return new Chromium(directory, context, `${site.origin}/engine.html`, isPrivate);
  },
};

class Chromium implements Browser {
  readonly #directory: string;
  readonly #context: BrowserContext;
  readonly #url: string;
  readonly #isPrivate: boolean;

  constructor(directory: string, context: BrowserContext, url: string, isPrivate: boolean) {
    this.#directory = directory;
    this.#context = context;
    this.#url = url;
    this.#isPrivate = isPrivate;
  }

  async openTab(): Promise<Tab> {
    // Under --incognito the first window is a private one, and tabs that Playwright opens are not.
    const [first] = this.#isPrivate ? this.#context.pages() : [];
    const tab = new ChromiumTab(first ?? (await this.#context.newPage()));
    await tab.page.goto(this.#url, { waitUntil: 'load' });
    await tab.isThere();
    return tab;
  }

  async killTab(tab: Tab): Promise<void> {
    const { page } = tab as ChromiumTab;
    const id = await processOf(this.#processId, '--type=renderer', (run, bytes) => tab.evaluate(run, bytes));
    const crashed = page.waitForEvent('crash');
    process.kill(id, 'SIGKILL');
    await crashed;
    await page.close();
  }

  async crashTab(tab: Tab): Promise<void> {
    const { page } = tab as ChromiumTab;
    const session = await this.#context.newCDPSession(page);
    const crashed = page.waitForEvent('crash');
    // The browser never answers it.
    session.send('Page.crash').catch(() => undefined);
    await crashed;
    await page.close();
  }

  async kill(): Promise<void> {
    const closed = new Promise<void>((resolve) => {
      this.#context.once('close', () => resolve());
    });
    // It leads a group: a negative id is the whole group.
    process.kill(-this.#processId, 'SIGKILL');
    await closed;
  }

  /** Its lock file names the process, `<host>-<process id>`. */
  get #processId(): number {
    const lock = readlinkSync(join(this.#directory, 'SingletonLock'));
    return Number(lock.slice(lock.lastIndexOf('-') + 1));
  }

  close(): Promise<void> {
    return this.#context.close();
  }
}

class ChromiumTab implements Tab {
  readonly page: Page;
  readonly errors: string[] = [];

  constructor(page: Page) {
    this.page = page;
    page.on('pageerror', (error) => this.errors.push(String(error)));
    page.on('console', (message) => {
      if (message.type() === 'error') this.errors.push(message.text());
    });
  }

  evaluate<A extends readonly unknown[], T>(run: (...args: A) => T | Promise<T>, ...args: A): Promise<T> {
    return this.page.evaluate(`(${run})(...${JSON.stringify(args)})`) as Promise<T>;
  }

  hear(listener: (text: string) => void): void {
    this.page.on('console', (message) => listener(message.text()));
  }

  async reload(): Promise<void> {
    await this.page.evaluate(() => Object.assign(globalThis, { isOld: true }));
    await this.page.reload({ waitUntil: 'load' });
    await this.isThere();
  }

  /** Resolves when the page has run its script: on a busy machine `load` may have been that of the page before. */
  async isThere(): Promise<void> {
    await this.page.waitForFunction(() => !('isOld' in globalThis) && 'varve' in globalThis);
  }

  async leave(): Promise<void> {
    await this.page.goto(new URL('/away.html', this.page.url()).href, { waitUntil: 'load' });
  }

  async back(): Promise<void> {
    // Playwright waits for a load that a page from the back/forward cache does not have.
    await this.page.goBack({ waitUntil: 'commit', timeout: 2000 }).catch(() => undefined);
    await this.page.waitForFunction(() => 'tabWriter' in globalThis);
  }

  close(): Promise<void> {
    return this.page.close();
  }
}
