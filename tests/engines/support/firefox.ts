// Firefox as it ships, driven through WebDriver BiDi (puppeteer-core; Playwright drives only a Firefox of its own).

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { type Browser as Driven, launch, type Page } from 'puppeteer-core';
import { findFirefox } from '../../../scripts/engines.mjs';
import type { Browser, Engine, Tab } from './engine.ts';
import { processOf } from './processes.ts';

/** A start takes 3 s, and on a machine that is busy with much else more than a minute. */
const WAIT_MS = 240_000;
const RESTORE_MS_MAX = 60_000;
/** Tabs of one site in up to eight processes. */
const OWN_PROCESSES = { 'fission.webContentIsolationStrategy': 1, 'dom.ipc.processCount.webIsolated': 8 };

export const firefox: Engine = {
  name: 'firefox',
  rung: { kind: 'opfs' },
  modes: [
    {
      title: 'in a private window',
      rung: { kind: 'indexeddb', reason: /refused the origin private file system \(SecurityError\)/ },
      isPrivate: true,
    },
  ],
  // All tabs of a site share one, unless it is started with `hasManyTabs`.
  hasTabProcesses: false,
  canCrashTabs: false,
  sharedWorkerRung: 'opfs',
  async launch(directory, { site, mode, hasManyTabs }) {
    const executablePath = findFirefox();
    if (executablePath === undefined) throw new Error('No Firefox was found: run `npm run setup`.');
    const browser = await launch({
      browser: 'firefox',
      executablePath,
      headless: true,
      userDataDir: directory,
      timeout: WAIT_MS,
      protocolTimeout: WAIT_MS,
      extraPrefsFirefox: {
        'browser.privatebrowsing.autostart': mode?.isPrivate === true,
        ...(hasManyTabs ? OWN_PROCESSES : {}),
      },
    });
    return new Firefox(directory, browser, `${site.origin}/engine.html`);
  },
};

class Firefox implements Browser {
  readonly #directory: string;
  readonly #browser: Driven;
  readonly #url: string;

  constructor(directory: string, browser: Driven, url: string) {
    this.#directory = directory;
    this.#browser = browser;
    this.#url = url;
  }

  async openTab(): Promise<Tab> {
    const page = await this.#browser.newPage();
    page.setDefaultTimeout(WAIT_MS);
    const tab = new FirefoxTab(page);
    await page.goto(this.#url, { waitUntil: 'load' });
    return tab;
  }

  async killTab(tab: Tab): Promise<void> {
    const id = await processOf(this.#processId, '-isForBrowser', (run, bytes) => tab.evaluate(run, bytes));
    process.kill(id, 'SIGKILL');
    await tab.close();
  }

  async kill(): Promise<void> {
    const gone = new Promise<void>((resolve) => {
      this.#browser.once('disconnected', () => resolve());
    });
    this.#killGroup();
    await gone;
    await this.#preferencesPutBack();
  }

  async close(): Promise<void> {
    await this.#browser.close();
    // Processes of pages outlive it by a moment, in which they write to the profile.
    this.#killGroup();
  }

  /**
   * Puppeteer puts the profile's own preferences back once the process has ended, and does not say when it has: a browser that
   * is started on the profile meanwhile fails.
   */
  async #preferencesPutBack(): Promise<void> {
    const kept = ['prefs.js', 'user.js'].map((file) => join(this.#directory, `${file}.puppeteer`));
    const deadline = Date.now() + RESTORE_MS_MAX;
    while (kept.some(existsSync) && Date.now() < deadline) await setTimeout(10);
  }

  get #processId(): number {
    const pid = this.#browser.process()?.pid;
    if (pid === undefined) throw new Error('Firefox does not run.');
    return pid;
  }

  /** Kills whatever is left of its processes. */
  #killGroup(): void {
    try {
      // It leads a process group; a negative id is the whole group.
      process.kill(-this.#processId, 'SIGKILL');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }
}

class FirefoxTab implements Tab {
  readonly #page: Page;
  readonly errors: string[] = [];

  constructor(page: Page) {
    this.#page = page;
    page.on('pageerror', (error) => this.errors.push(String(error)));
    page.on('console', (message) => {
      if (message.type() === 'error') this.errors.push(message.text());
    });
  }

  evaluate<A extends readonly unknown[], T>(run: (...args: A) => T | Promise<T>, ...args: A): Promise<T> {
    return this.#page.evaluate(`(${run})(...${JSON.stringify(args)})`) as Promise<T>;
  }

  hear(listener: (text: string) => void): void {
    this.#page.on('console', (message) => listener(message.text()));
  }

  async reload(): Promise<void> {
    await this.#page.reload({ waitUntil: 'load' });
  }

  async leave(): Promise<void> {
    await this.#page.goto(new URL('/away.html', this.#page.url()).href, { waitUntil: 'load' });
  }

  async back(): Promise<void> {
    await this.#page.goBack({ waitUntil: 'load' });
  }

  close(): Promise<void> {
    return this.#page.close();
  }
}
