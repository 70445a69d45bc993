/** Real tabs for the page of the benchmark: opened, closed and killed from the command line. */

import type { Page } from 'playwright';

export async function offerTabs(page: Page): Promise<void> {
  const tabs = new Map<string, Page>();
  await page.exposeFunction('varveBenchTabs', async (act: 'open' | 'close' | 'kill', address: string) => {
    const tab = tabs.get(address) ?? (await page.context().newPage());
    if (act === 'open') {
      tabs.set(address, tab);
      tab.on('pageerror', (error) => console.log(`  ! ${address}: ${error}`));
      await tab.goto(new URL(address, page.url()).href);
      return;
    }
    if (act === 'kill') {
      // Chromium ends the renderer of the tab that goes there, which the going cannot outlive.
      const crashed = tab.waitForEvent('crash');
      tab.goto('chrome://kill').catch(() => undefined);
      await crashed;
    }
    tabs.delete(address);
    await tab.close();
  });
}
