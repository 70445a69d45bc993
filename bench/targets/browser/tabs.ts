/**
 * Real tabs for the page of the benchmark: opened, closed and killed from the command line.
 *
 * Invariant: only a process that belongs to one of these tabs alone is ever killed.
 */

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { Page } from 'playwright';
import type { TabRequest } from '../../suites/tabs/house.ts';

/** No browser says which process belongs to which tab: the process that grows by this is the tab's. */
const BALLAST_KIB = 96 * 1024;

/** Puts `varveBenchTabs` into the page. */
export async function offerTabs(page: Page): Promise<void> {
  const tabs = new Map<string, { readonly page: Page; process?: number | undefined }>();
  const answer = async ({ type, tab: name, ...more }: TabRequest): Promise<boolean> => {
    if ('path' in more) {
      const opened = await page.context().newPage();
      opened.on('pageerror', (error) => console.log(`  ! ${name}: ${error}`));
      tabs.set(name, { page: opened });
      await opened.goto(new URL(more.path, page.url()).href);
      return true;
    }
    const tab = tabs.get(name);
    if (tab === undefined) return false;
    switch (type) {
      case 'aim':
        tab.process = await processOf(tab.page);
        return tab.process !== undefined;
      case 'kill': {
        if (tab.process === undefined) return false;
        const crashed = tab.page.waitForEvent('crash');
        process.kill(tab.process, 'SIGKILL');
        await crashed;
        break;
      }
      default:
    }
    tabs.delete(name);
    await tab.page.close();
    return true;
  };
  await page.exposeFunction('varveBenchTabs', answer);
}

/** The process of a page alone, where the system reports it (Linux); undefined when it is not certain. */
async function processOf(page: Page): Promise<number | undefined> {
  if (process.platform !== 'linux') return undefined;
  const before = renderers().map((id) => ({ id, memory: memoryOf(id) }));
  await page.evaluate((bytes) => {
    Object.assign(globalThis, { ballast: new Uint8Array(bytes).fill(1) });
  }, BALLAST_KIB * 1024);
  const [only, ...others] = before.filter(({ id, memory }) => memoryOf(id) - memory > BALLAST_KIB / 2);
  return others.length === 0 ? only?.id : undefined;
}

/** The renderers that descend from this process: its browser leads a group of its own. */
function renderers(): number[] {
  const lines = execFileSync('ps', ['-A', '-o', 'pid=,ppid=,args='], { encoding: 'utf8' }).trim().split('\n');
  const all = lines.map((line) => {
    const [id, parent, ...command] = line.trim().split(/\s+/);
    return { id: Number(id), parent: Number(parent), command: command.join(' ') };
  });
  const own = new Set([process.pid]);
  for (let size = 0; size < own.size; ) {
    size = own.size;
    for (const { id, parent } of all) if (own.has(parent)) own.add(id);
  }
  return all.filter(({ id, command }) => own.has(id) && command.includes('--type=renderer')).map(({ id }) => id);
}

function memoryOf(id: number): number {
  try {
    return Number(/^VmRSS:\s*(\d+)/m.exec(readFileSync(`/proc/${id}/status`, 'utf8'))?.[1] ?? 0);
  } catch {
    // It ended meanwhile.
    return 0;
  }
}
