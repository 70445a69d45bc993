/**
 * A page of the benchmark in Chromium, with a persistent profile.
 *
 * Invariant: the profile is a folder made for this run and removed after it. It must be persistent: in an off-the-record
 * context every file call goes through the browser's process and costs a hundred times as much.
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type BrowserContext, chromium, type Page } from 'playwright-core';
import { browserFlags, findBrowser } from '../scripts/browser.mjs';
import { ISOLATED, serve } from '../scripts/server.mjs';
import { root } from '../scripts/tools.mjs';

/** Where the built pages lie. */
export const SITE = join(root, 'build', 'site', 'bench');
/** Nothing is heard of the page for so long: it hangs. */
const SILENCE_MS = 300_000;
/** A browser that was asked to end and is still there after so long is killed. */
const CLOSING_MS = 15_000;

/** Serves the pages and hands one over, empty, with the address they are served at. */
export async function inBrowser<T>(headed: boolean, use: (page: Page, origin: string) => Promise<T>): Promise<T> {
  const executablePath = await findBrowser();
  if (executablePath === undefined) throw new Error('No Chromium was found: `npm run setup` installs one.');
  const server = await serve({ mounts: [{ path: '/bench/', folder: SITE, headers: ISOLATED }] });
  const profile = mkdtempSync(join(tmpdir(), 'varve-bench-'));
  const remove = (): void => rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
  // A signal ends the browser and then the process, without a word to what waits here.
  process.once('exit', remove);
  const context = await chromium.launchPersistentContext(profile, {
    executablePath,
    headless: !headed,
    args: browserFlags(),
  });
  const pid = await browserPid(context);
  try {
    return await use(context.pages()[0] ?? (await context.newPage()), server.origin);
  } finally {
    await closed(context, pid);
    await server.close();
    remove();
    process.off('exit', remove);
  }
}

/** The browser's process as it tells it itself; undefined where it does not. */
async function browserPid(context: BrowserContext): Promise<number | undefined> {
  const session = await context.browser()?.newBrowserCDPSession();
  if (session === undefined) return undefined;
  const { processInfo } = await session.send('SystemInfo.getProcessInfo');
  await session.detach();
  return processInfo.find(({ type }) => type === 'browser')?.id;
}

/** Ends the browser: by asking, and by force when that takes too long. */
async function closed(context: BrowserContext, pid: number | undefined): Promise<void> {
  const timer = setTimeout(() => {
    console.error('The browser did not close: its process is ended.');
    if (pid !== undefined) process.kill(pid, 'SIGKILL');
  }, CLOSING_MS);
  await context.close().catch(() => undefined);
  clearTimeout(timer);
}

/** Opens `address` and hands what the page tells to `hear`, until it answers with a result. */
export async function drive<E, R>(page: Page, address: string, hear: (event: E) => R | undefined): Promise<R> {
  let timer: NodeJS.Timeout | undefined;
  try {
    return await new Promise((resolve, reject) => {
      const wait = (): void => {
        clearTimeout(timer);
        timer = setTimeout(() => reject(new Error('Nothing was heard of the page for five minutes.')), SILENCE_MS);
      };
      const listener = (event: E): void => {
        wait();
        const result = hear(event);
        if (result !== undefined) resolve(result);
      };
      page.on('pageerror', (error) => reject(error));
      page.on('crash', () => reject(new Error('The page crashed.')));
      page.on('close', () => reject(new Error('The page was closed.')));
      page.on('console', (message) => {
        if (message.type() === 'error') console.log(`  ! browser: ${message.text()}`);
      });
      page
        .exposeFunction('varveBenchHeard', listener)
        .then(() => page.addInitScript(passOn))
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

/** Runs in the page. What is told many times a second is for its charts: each message out of it would cost what is measured. */
function passOn(): void {
  Object.assign(globalThis, {
    varveBenchListener: (event: { readonly type: string }) => {
      if (event.type === 'sample' || event.type === 'amplification') return;
      Reflect.get(globalThis, 'varveBenchHeard')(event);
    },
  });
}
