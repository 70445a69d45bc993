// A browser that no program drives: its pages fetch their calls from the test's site (remote.ts), and its first page opens
// its tabs. Invariant: it leads a group of processes, and ends with all of them.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout } from 'node:timers/promises';
import { lives, processOf } from '../../support/processes.ts';
import type { Browser, EngineSite, Tab } from './engine.ts';
import type { RemotePage } from './remote.ts';

/** How a browser is started. */
export interface Command {
  readonly executable: string;
  /** The arguments of its command line, before the address of the first page. */
  readonly flags: readonly string[];
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** A word in the commands of the processes that its pages run in. */
  readonly pages: string;
}

export class UndrivenBrowser implements Browser {
  readonly #browser: ChildProcess;
  readonly #site: EngineSite;
  readonly #command: Command;
  readonly #onEnd: () => void;
  /** The first page, from which the others are opened. No test uses it. */
  readonly #opener: RemotePage;
  readonly #pages: RemotePage[] = [];

  private constructor(
    browser: ChildProcess,
    site: EngineSite,
    command: Command,
    opener: RemotePage,
    onEnd: () => void,
  ) {
    this.#browser = browser;
    this.#site = site;
    this.#command = command;
    this.#opener = opener;
    this.#onEnd = onEnd;
    process.once('exit', this.#end);
  }

  /** Starts it, and resolves when its first page is there; `onEnd` is called when it has ended. */
  static async start(command: Command, site: EngineSite, onEnd = (): void => undefined): Promise<UndrivenBrowser> {
    const { executable, flags, env } = command;
    const { id, page } = site.remote.page();
    const greeted = page.greeting();
    const browser = spawn(executable, [...flags, `${site.origin}/engine.html#remote=${id}`], {
      // Its own group, so that it can be killed with all of its processes.
      detached: true,
      stdio: 'ignore',
      env: { ...process.env, ...env },
    });
    const failed = new Promise<never>((_, reject) => {
      browser.once('error', reject);
      browser.once('exit', (code) => reject(new Error(`${executable} ended with ${code}.`)));
    });
    failed.catch(() => undefined);
    await Promise.race([greeted, failed]);
    return new UndrivenBrowser(browser, site, command, page, onEnd);
  }

  async openTab(): Promise<Tab> {
    const { id, page } = this.#site.remote.page();
    this.#pages.push(page);
    const greeted = page.greeting();
    // Without an opener it is a tab like one that its user opened, in a process of its own where tabs have them.
    await this.#opener.call(`export default () => { open('/engine.html#remote=${id}', '_blank', 'noopener'); };`);
    await greeted;
    return new UndrivenTab(page);
  }

  async killTab(tab: Tab): Promise<void> {
    const { page } = tab as UndrivenTab;
    const id = await processOf(this.#processId, this.#command.pages, (run, bytes) => tab.evaluate(run, bytes));
    process.kill(id, 'SIGKILL');
    // Firefox keeps the request of a page open even when the page's process is dead.
    while (lives(id)) await setTimeout(5);
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
    if (pid === undefined) throw new Error('The browser does not run.');
    return pid;
  }

  readonly #end = async (): Promise<void> => {
    process.off('exit', this.#end);
    const ended = this.#browser.exitCode === null && this.#browser.signalCode === null && once(this.#browser, 'exit');
    if (ended) process.kill(-this.#processId, 'SIGKILL');
    await ended;
    this.#onEnd();
    for (const page of [this.#opener, ...this.#pages]) page.forget('The browser ended.');
  };
}

class UndrivenTab implements Tab {
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

  async close(): Promise<void> {
    const left = this.page.leaving();
    this.page.call('export default () => new Promise(() => close());').catch(() => undefined);
    await left;
    this.page.forget('The tab was closed.');
  }

  /** Resolves when the page that this leads to says hello. */
  async #go(statement: string): Promise<void> {
    const greeted = this.page.greeting();
    // The page may be gone before it answers.
    this.page.call(`export default () => { ${statement}; };`).catch(() => undefined);
    await greeted;
  }
}
