// WebKitGTK, in its own plain browser, MiniBrowser, on a display that nobody sees. Its driver, WebKitWebDriver, gives only
// sessions that keep nothing and that end with the first page that dies; so nothing drives it: its pages fetch what they
// are to do (remote.ts), and its profile is a folder like that of any other browser.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { findMiniBrowser, findXvfb } from '../../../scripts/engines.mjs';
import type { Browser, Engine, EngineSite, Tab } from './engine.ts';
import { groupOf, ticksOf } from './processes.ts';
import type { RemotePage } from './remote.ts';

const WITHOUT_HANDLES = { kind: 'indexeddb', reason: /browser has no .*file/ } as const;

export const webkit: Engine = {
  name: 'webkit',
  rung: WITHOUT_HANDLES,
  modes: [
    { title: 'in a private window', rung: WITHOUT_HANDLES, isPrivate: true },
    {
      title: 'where the engine has files, but does not open them',
      rung: { kind: 'indexeddb', reason: /refused to open a file of the store \(NotSupportedError\)/ },
      flags: ['--features=+FileSystem,+AccessHandle,+FileSystemWritableStream,+StorageAPI,+StorageAPIEstimate'],
    },
  ],
  hasTabProcesses: true,
  canCrashTabs: false,
  sharedWorkerRung: 'indexeddb',
  async launch(directory, { site, mode }) {
    const executable = findMiniBrowser();
    const xvfb = findXvfb();
    if (executable === undefined || xvfb === undefined) throw new Error('No WebKitGTK was found: run `npm run setup`.');
    const display = await startDisplay(xvfb);
    const { id, page } = site.remote.page();
    const greeted = page.greeting();
    mkdirSync(directory, { recursive: true });
    const flags = [
      '--javascript-can-open-windows-automatically=true',
      ...(mode?.isPrivate ? ['--private'] : []),
      ...(mode?.flags ?? []),
    ];
    const browser = spawn(executable, [...flags, `${site.origin}/engine.html#remote=${id}`], {
      // A group of its own, so that it can be killed with all of its processes.
      detached: true,
      stdio: 'ignore',
      env: {
        ...process.env,
        HOME: directory,
        XDG_DATA_HOME: join(directory, 'data'),
        XDG_CACHE_HOME: join(directory, 'cache'),
        XDG_CONFIG_HOME: join(directory, 'config'),
        DISPLAY: display.name,
      },
    });
    const failed = new Promise<never>((_, reject) => {
      browser.once('error', reject);
      browser.once('exit', (code) => reject(new Error(`MiniBrowser ended with ${code}.`)));
    });
    failed.catch(() => undefined);
    await Promise.race([greeted, failed]);
    return new WebKit(browser, display.process, site, page);
  },
};

/** Starts a display server, which picks a number that is free. */
async function startDisplay(xvfb: string): Promise<{ name: string; process: ChildProcess }> {
  const server = spawn(xvfb, ['-displayfd', '3', '-screen', '0', '800x600x24', '-nolisten', 'tcp'], {
    stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
  });
  const [number] = (await once(server.stdio[3] as NodeJS.ReadableStream, 'data')) as [Buffer];
  return { name: `:${number.toString().trim()}`, process: server };
}

class WebKit implements Browser {
  readonly #browser: ChildProcess;
  readonly #display: ChildProcess;
  readonly #site: EngineSite;
  /** The first page, from which the others are opened. No test uses it. */
  readonly #opener: RemotePage;
  readonly #pages: RemotePage[] = [];

  constructor(browser: ChildProcess, display: ChildProcess, site: EngineSite, opener: RemotePage) {
    this.#browser = browser;
    this.#display = display;
    this.#site = site;
    this.#opener = opener;
    process.once('exit', this.#end);
  }

  async openTab(): Promise<Tab> {
    const { id, page } = this.#site.remote.page();
    this.#pages.push(page);
    const greeted = page.greeting();
    // Without an opener it is a tab like one that its user opened, in a process of its own.
    await this.#opener.call(`export default () => { open('/engine.html#remote=${id}', '_blank', 'noopener'); };`);
    await greeted;
    return new WebKitTab(page);
  }

  async killTab(tab: Tab): Promise<void> {
    const { page } = tab as WebKitTab;
    // Nothing says which process is whose: the tab is made to work, and the one that works is its.
    const processes = groupOf(this.#processId, 'WebKitWebProcess');
    const before = new Map(processes.map((id) => [id, ticksOf(id)]));
    await page.call('export default () => { for (const end = Date.now() + 500; Date.now() < end; ); };');
    const spent = processes.map((id) => ({ id, ticks: ticksOf(id) - (before.get(id) ?? 0) }));
    const [busiest] = spent.sort((a, b) => b.ticks - a.ticks);
    if (busiest === undefined) throw new Error('WebKitGTK has no process for its pages.');
    const left = page.leaving();
    process.kill(busiest.id, 'SIGKILL');
    await left;
    page.forget('The tab was killed.');
  }

  async kill(): Promise<void> {
    await this.#end();
  }

  async close(): Promise<void> {
    await this.#end();
  }

  get #processId(): number {
    const { pid } = this.#browser;
    if (pid === undefined) throw new Error('MiniBrowser does not run.');
    return pid;
  }

  readonly #end = async (): Promise<void> => {
    process.off('exit', this.#end);
    const ended = this.#browser.exitCode === null && this.#browser.signalCode === null && once(this.#browser, 'exit');
    if (ended) process.kill(-this.#processId, 'SIGKILL');
    await ended;
    this.#display.kill();
    for (const page of [this.#opener, ...this.#pages]) page.forget('The browser ended.');
  };
}

class WebKitTab implements Tab {
  readonly page: RemotePage;

  constructor(page: RemotePage) {
    this.page = page;
  }

  get errors(): readonly string[] {
    return this.page.errors;
  }

  evaluate<A extends readonly unknown[], T>(run: (...args: A) => T | Promise<T>, ...args: A): Promise<T> {
    return this.page.call(`export default () => (${run})(...${JSON.stringify(args)});`) as Promise<T>;
  }

  hear(listener: (text: string) => void): void {
    this.page.hear(listener);
  }

  reload(): Promise<void> {
    return this.#go('location.reload()');
  }

  leave(): Promise<void> {
    return this.#go("location.href = '/away.html' + location.hash");
  }

  back(): Promise<void> {
    return this.#go('history.back()');
  }

  /** Resolves when the page that this leads to says hello. */
  async #go(statement: string): Promise<void> {
    const greeted = this.page.greeting();
    // The page may be gone before it has answered.
    this.page.call(`export default () => { ${statement}; };`).catch(() => undefined);
    await greeted;
  }

  async close(): Promise<void> {
    const left = this.page.leaving();
    this.page.call('export default () => new Promise(() => close());').catch(() => undefined);
    await left;
    this.page.forget('The tab was closed.');
  }
}
