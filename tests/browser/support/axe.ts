// The faults that axe finds in a page as it is now: contrast, names, roles.
// Invariant: nothing may move while axe looks; ask for reduced motion where the page moves.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from 'playwright';

const SOURCE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Violations of the page in its present state, of these rules or of all: each as its rule and the beginnings of the elements. */
export async function violationsNow(page: Page, rules?: readonly string[]): Promise<string[]> {
  if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(SOURCE);
  return page.evaluate(async (runOnly) => {
    const { axe } = globalThis as unknown as {
      axe: { run(options: object): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> };
    };
    const options = runOnly === undefined ? {} : { runOnly };
    const { violations } = await axe.run({ resultTypes: ['violations'], ...options });
    return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 200)).join(' ')}`);
  }, rules);
}

/** Each violation in light and in dark. */
export async function violationsOf(page: Page): Promise<string[]> {
  const found: string[] = [];
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    found.push(...(await violationsNow(page)).map((words) => `${colorScheme}: ${words}`));
  }
  return found;
}
