// The README's first example as the script of a page, and a browser that loads it.
//
// Invariant: the browser has a profile on disk, as OPFS needs. The page gets nothing that a user's page would not have, except the function
// that it reports to.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type BrowserContext, chromium, type Page } from 'playwright';
import { afterAll, onTestFinished } from 'vitest';
import { browserFlags, findBrowser } from '../../../scripts/browser.mjs';
import { firstExample } from '../../support/readme.ts';

/** Far more than a page needs on a busy machine. */
const LIMIT_MS = 300_000;

/** The result of the example. */
export interface Seen {
  readonly storage: string;
  readonly recovery: string;
  readonly note: unknown;
  /** Its log: the entries of its scan. */
  readonly logged: readonly unknown[];
  /** How often a page has loaded this store. */
  readonly loads: number;
  /** A store in IndexedDB, whose script is loaded later: its storage, and the number of loads that it has. */
  readonly inOther: readonly unknown[];
  readonly isIsolated: boolean;
}

/** The result of loading a page. */
export interface Loaded {
  readonly seen: Seen | undefined;
  /** The error that it threw: its code, if it has one, and its message. */
  readonly failure: { readonly code: string; readonly message: string } | undefined;
  /** The errors that the page or one of its workers reported, including violations of its policy. */
  readonly complaints: readonly string[];
  /** The scripts of its workers, by path. */
  readonly workers: readonly string[];
  /** The fetched files: path and content type. */
  readonly fetched: ReadonlyMap<string, string>;
}

/** The example, and the report of its result. `before` stands before it: it may change what is imported. */
export function exampleScript(): string {
  return `
    const logged = [];
    console.log = (...what) => logged.push(what);
    ${firstExample()}
    const loads = ((await db.get('loads')) ?? 0) + 1;
    await db.set('loads', loads, { durability: 'strict' });
    const { storage, recovery } = db;
    await db.close();
    const other = await open('other', { storage: 'indexeddb' });
    await other.set('loads', loads, { durability: 'strict' });
    const inOther = [other.storage.kind, await other.get('loads')];
    await other.close();
    report({ seen: { storage: storage.kind, recovery: recovery.state, note, logged, loads, inOther, isIsolated: crossOriginIsolated } });
  `;
}

/** A page with a module script. */
export function pageWith(script: string, head = ''): string {
  return `<!doctype html><title>Notes</title>${head}<script type="module" src="${script}"></script>`;
}

/** Run in the page before anything else. */
const LISTEN = `
  const failed = (error) => report({ failure: { code: String(error?.code), message: String(error?.message ?? error) } });
  addEventListener('error', (event) => failed(event.error ?? event.message));
  addEventListener('unhandledrejection', (event) => failed(event.reason));
  document.addEventListener('securitypolicyviolation', ({ effectiveDirective, blockedURI }) =>
    complain('violated ' + effectiveDirective + ' by ' + blockedURI));
`;

/** A browser. Its first page starts it. */
export class Browser {
  #running: Promise<{ readonly folder: string; readonly context: BrowserContext }> | undefined;

  /** A browser of the running test. */
  static forTest(): Browser {
    const browser = new Browser();
    onTestFinished(() => browser.#close());
    return browser;
  }

  /** A browser of all tests of a file. */
  static forFile(): Browser {
    const browser = new Browser();
    afterAll(() => browser.#close());
    return browser;
  }

  /** An empty page. `complaints` gets the errors that it and its workers report. */
  async page(): Promise<{ readonly page: Page; readonly complaints: string[] }> {
    this.#running ??= start();
    const page = await (await this.#running).context.newPage();
    page.setDefaultTimeout(LIMIT_MS);
    const complaints: string[] = [];
    page.on('console', (message) => {
      const isComplaint = ['error', 'warning'].includes(message.type());
      // The browser makes this request itself; no page knows about it.
      if (isComplaint && !message.location().url.endsWith('/favicon.ico'))
        complaints.push(`${message.text()} (${message.location().url})`);
    });
    page.on('pageerror', (error) => complaints.push(String(error)));
    return { page, complaints };
  }

  /** Loads a page until it has reported. */
  async load(url: string): Promise<Loaded> {
    const { page, complaints } = await this.page();
    const workers: string[] = [];
    const fetched = new Map<string, string>();
    page.on('worker', (worker) => workers.push(new URL(worker.url()).pathname));
    page.on('response', (response) => {
      fetched.set(new URL(response.url()).pathname, response.headers()['content-type'] ?? '');
    });
    await page.exposeFunction('complain', (what: string) => complaints.push(what));
    const reported = new Promise<Pick<Loaded, 'seen' | 'failure'>>((resolve, reject) => {
      page.exposeFunction('report', resolve).catch(reject);
      setTimeout(() => reject(new Error(`${url} reported nothing: ${complaints.join('; ')}`)), LIMIT_MS).unref();
    });
    await page.addInitScript(LISTEN);
    await page.goto(url);
    const { seen, failure } = await reported;
    await page.close();
    return { seen, failure, complaints, workers, fetched };
  }

  async #close(): Promise<void> {
    if (this.#running === undefined) return;
    const { folder, context } = await this.#running;
    await context.close();
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

async function start(): Promise<{ folder: string; context: BrowserContext }> {
  const executablePath = await findBrowser();
  if (!executablePath) throw new Error('No Chromium was found: run `npm run setup`.');
  const folder = await mkdtemp(join(tmpdir(), 'varve-profile-'));
  const options = { executablePath, args: browserFlags(), timeout: LIMIT_MS };
  return { folder, context: await chromium.launchPersistentContext(folder, options) };
}
