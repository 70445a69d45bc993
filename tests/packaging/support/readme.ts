// The code blocks of README.md: what is tested is what a reader copies.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../../scripts/tools.mjs';

/** The first block of a kind (`ts`, `js`, `html`, or nothing) that has `marker` in it. */
export function readmeBlock(kind: string, marker: string): string {
  const readme = readFileSync(join(root, 'README.md'), 'utf8');
  for (const [, language, code = ''] of readme.matchAll(/^```(\w*)\n(.*?)^```$/gms)) {
    if (language === kind && code.includes(marker)) return code;
  }
  throw new Error(`README.md has no block of ${kind} with ${marker}.`);
}

/** The README's first example: it opens the store `notes`, writes, reads and scans. It is JavaScript, too. */
export function firstExample(): string {
  return readmeBlock('ts', "import { open } from 'varve';");
}
