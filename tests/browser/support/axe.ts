// What axe finds wrong with a page as it is: contrast, names, roles.
// Invariant: nothing may move while it looks; ask for reduced motion where the page moves.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';

const SOURCE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Each violation in light and in dark, as its rule and the elements. */
export async function violationsOf(page: Page): Promise<string[]> {
  await page.evaluate(SOURCE);
  const found: string[] = [];
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    const wrong = await page.evaluate(async () => {
      const { axe } = globalThis as unknown as {
        axe: { run(): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> };
      };
      const { violations } = await axe.run();
      return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`);
    });
    found.push(...wrong.map((words) => `${colorScheme}: ${words}`));
  }
  return found;
}
