/**
 * A page of the benchmark in Chromium, with a persistent profile.
 *
 * Invariant: the profile is a folder made for this run and removed after it. It must be persistent: in an off-the-record
 * context every file call goes through the browser's process and costs a hundred times as much.
 */

import { mkdtempSync, readlinkSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type BrowserContext, chromium, type Page } from 'playwright';
import { browserFlags, findBrowser } from '../../../scripts/browser.mjs';
import { ISOLATED, serve } from '../../../scripts/server.mjs';
import { root } from '../../../scripts/tools.mjs';

export const SITE = join(root, 'build', 'site', 'bench');
/** A page without an event for so long hangs. */
const SILENCE_MS = 300_000;
/** A browser that was asked to end and is still there after so long is killed. */
const CLOSING_MS = 15_000;
const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

interface Session {
  /** The folder of the built pages. Default: that of `npm run build`. */
  readonly site?: string | undefined;
  /** Asks the page to end early with what it has. Called at the first signal to end; the next one ends the process. */
  readonly cancel?: (page: Page) => void;
}

/** Serves the pages and hands one over, empty, with the address they are served at. */
export async function inBrowser<T>({ site = SITE, cancel }: Session, use: (page: Page, origin: string) => Promise<T>) {
  const executablePath = await findBrowser();
  if (executablePath === undefined) throw new Error('No Chromium was found: `npm run setup` installs one.');
  const server = await serve({ mounts: [{ path: '/bench/', folder: site, headers: ISOLATED }] });
  const profile = mkdtempSync(join(tmpdir(), 'varve-bench-'));
  const remove = (): void => rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
  const options = { executablePath, args: browserFlags(), handleSIGINT: false, handleSIGTERM: false };
  const context = await chromium.launchPersistentContext(profile, options);
  // After the listener that ends the browser, which would go on writing.
  process.once('exit', remove);
  const page = context.pages()[0] ?? (await context.newPage());
  const stopListening = onSignals(cancel && (() => cancel(page)));
  try {
    return await use(page, server.origin);
  } finally {
    stopListening();
    await closed(context, profile);
    await server.close();
    remove();
    process.off('exit', remove);
  }
}

/** Listens to signals to end: to the first with `cancel`, if it is there. The returned function ends the listening. */
function onSignals(cancel: (() => void) | undefined): () => void {
  let cancelled = cancel === undefined;
  const end = (): void => {
    // Listeners to the end of the process end the browser and remove its profile.
    if (cancelled) process.exit(1);
    cancelled = true;
    console.error('\nEnding early: the results so far will be printed. One more signal ends the command at once.');
    cancel?.();
  };
  for (const signal of SIGNALS) process.on(signal, end);
  return () => {
    for (const signal of SIGNALS) process.off(signal, end);
  };
}

/** Ends the browser: by asking, and by force when that takes too long. */
async function closed(context: BrowserContext, profile: string): Promise<void> {
  const timer = setTimeout(() => {
    console.error('The browser did not close: its process is ended.');
    // The lock of a profile names the process: `<host>-<process id>`.
    process.kill(Number(readlinkSync(join(profile, 'SingletonLock')).split('-').at(-1)), 'SIGKILL');
  }, CLOSING_MS);
  await context.close().catch(() => undefined);
  clearTimeout(timer);
}

/** Opens `address` and passes the events of the page to `take`, until that returns a result. */
export async function drive<E, R>(page: Page, address: string, take: (event: E) => R | undefined): Promise<R> {
  let timer: NodeJS.Timeout | undefined;
  try {
    return await new Promise((resolve, reject) => {
      const wait = (): void => {
        clearTimeout(timer);
        timer = setTimeout(() => reject(new Error('The page reported nothing for five minutes.')), SILENCE_MS);
      };
      const listener = (event: E): void => {
        wait();
        const result = take(event);
        if (result !== undefined) resolve(result);
      };
      page.on('pageerror', (error) => reject(error));
      page.on('crash', () => reject(new Error('The page crashed.')));
      page.on('close', () => reject(new Error('The page was closed.')));
      page.on('console', (message) => {
        if (message.type() === 'error') console.log(`  ! browser: ${message.text()}`);
      });
      page
        .exposeFunction('varveBenchListener', listener)
        .then(() => page.goto(address))
        .then((response) => {
          if (!response?.ok()) throw new Error(`The page ${address} is not there: build it first (npm run build).`);
        })
        .catch(reject);
      wait();
    });
  } finally {
    clearTimeout(timer);
  }
}
