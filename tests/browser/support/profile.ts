// A Chromium with a profile on disk that outlives it: data that a page stored is there after the browser was killed and
// started again. Invariant: never an off-the-record context, whose files never reach the disk.

import { readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, readlink, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { type BrowserContext, type CDPSession, chromium, type Page, type Worker } from 'playwright';
import { browserFlags, findBrowser } from '../../../scripts/browser.mjs';
import { type Site, startSite } from './site.ts';

/** A page, and every error that it or one of its workers reported: exceptions, console errors, policy violations. */
export interface OpenPage {
  readonly page: Page;
  readonly errors: readonly string[];
}

/** One profile, its browser and the site that its pages come from. */
export class Profile {
  readonly #folder: string;
  readonly #site: Site;
  readonly #flags: readonly string[];
  #context: BrowserContext;

  private constructor(folder: string, site: Site, flags: readonly string[], context: BrowserContext) {
    this.#folder = folder;
    this.#site = site;
    this.#flags = flags;
    this.#context = context;
  }

  /** Starts a site, and a browser with an empty profile and `flags` beside the usual ones. */
  static async create(flags: readonly string[] = []): Promise<Profile> {
    const folder = await mkdtemp(join(tmpdir(), 'varve-profile-'));
    const site = await startSite();
    return new Profile(folder, site, flags, await launch(folder, flags));
  }

  /** The origin of every page of this profile; it stays the same when the browser is started again. */
  get origin(): string {
    return this.#site.origin;
  }

  get context(): BrowserContext {
    return this.#context;
  }

  /** Opens a page of the site in a new tab; `/varve.html` has the package as the global `varve`. */
  async openPage(path = '/varve.html'): Promise<OpenPage> {
    const page = await this.#context.newPage();
    const errors: string[] = [];
    page.on('pageerror', (error) => errors.push(String(error)));
    page.on('console', (message) => {
      if (message.type() === 'error') errors.push(message.text());
    });
    await page.goto(this.origin + path, { waitUntil: 'load' });
    return { page, errors };
  }

  /** Kills the browser and all its processes at once, as a crash or the system would, and starts it again; `whileDown` gets its folder. */
  async kill(whileDown?: (folder: string) => void): Promise<void> {
    const context = this.#context;
    const closed = new Promise<void>((resolve) => {
      context.once('close', () => resolve());
    });
    // Playwright makes the browser the leader of a process group; a negative id is the whole group.
    const group = await this.processId();
    process.kill(-group, 'SIGKILL');
    await closed;
    // A process that is still ending has its files locked. The next browser may think that a database it cannot lock is damaged.
    for (let waits = 0; waits < 250 && hasRunning(group); waits++) await setTimeout(20);
    whileDown?.(this.#folder);
    this.#context = await launch(this.#folder, this.#flags);
  }

  /** Closes the browser in an orderly way and starts it again on the same profile. */
  async restart(): Promise<void> {
    await this.#context.close();
    this.#context = await launch(this.#folder, this.#flags);
  }

  /** Limits what the origin may store until the returned session is detached. */
  async overrideQuota(page: Page, quotaBytes: number): Promise<CDPSession> {
    const session = await this.#context.newCDPSession(page);
    await session.send('Storage.overrideQuotaForOrigin', { origin: this.origin, quotaSize: quotaBytes });
    return session;
  }

  /** Closes the browser and the site and removes the profile. */
  async close(): Promise<void> {
    await this.#context.close();
    await this.#site.close();
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 5 });
  }

  /** The browser's process, which its lock file names: `<host>-<process id>`. */
  async processId(): Promise<number> {
    const lock = await readlink(join(this.#folder, 'SingletonLock'));
    return Number(lock.slice(lock.lastIndexOf('-') + 1));
  }
}

/** Starts a browser with an empty profile. */
export function newProfile(flags?: readonly string[]): Promise<Profile> {
  return Profile.create(flags);
}

/** Whether a process of a group still runs; false where there is no /proc. */
function hasRunning(group: number): boolean {
  const processes = process.platform === 'linux' ? readdirSync('/proc').filter((name) => /^\d+$/.test(name)) : [];
  return processes.some((name) => {
    try {
      const [state, , ofGroup] = readFileSync(`/proc/${name}/stat`, 'utf8')
        .replace(/^.*[)] /s, '')
        .split(' ');
      return Number(ofGroup) === group && state !== 'Z';
    } catch {
      return false;
    }
  });
}

async function launch(folder: string, flags: readonly string[]): Promise<BrowserContext> {
  const executablePath = await findBrowser();
  if (!executablePath) throw new Error('No Chromium was found: run `npm run setup`.');
  const context = await chromium.launchPersistentContext(folder, {
    executablePath,
    args: [...browserFlags(), ...flags],
  });
  context.setDefaultTimeout(60_000);
  return context;
}

/** Starts a dedicated module worker from a page; the test evaluates code in it. `terminate` stops it abruptly. */
export async function openWorker(
  page: Page,
  script = '/sync-worker.js',
): Promise<{ worker: Worker; terminate(): Promise<void> }> {
  const started = page.waitForEvent('worker', (worker) => new URL(worker.url()).pathname === script);
  const handle = await page.evaluateHandle((url) => new Worker(url, { type: 'module' }), script);
  const worker = await started;
  const terminate = async (): Promise<void> => {
    const closed = new Promise<void>((resolve) => {
      worker.once('close', () => resolve());
    });
    await handle.evaluate((running) => running.terminate());
    await closed;
  };
  return { worker, terminate };
}
