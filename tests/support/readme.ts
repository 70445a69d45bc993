// The code blocks of README.md and of the guide: the tests use exactly what a reader copies.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../scripts/tools.mjs';

const GUIDE = join(root, 'docs', 'guide');

/** The first block of a kind (`ts`, `js`, `html`, or nothing) that has `marker` in it. The README comes before the guide. */
export function readmeBlock(kind: string, marker: string): string {
  const pages = readdirSync(GUIDE).sort();
  for (const file of [join(root, 'README.md'), ...pages.map((page) => join(GUIDE, page))]) {
    for (const [, language, code = ''] of readFileSync(file, 'utf8').matchAll(/^```(\w*)\n(.*?)^```$/gms)) {
      if (language === kind && code.includes(marker)) return code;
    }
  }
  throw new Error(`Neither README.md nor docs/guide has a block of ${kind} with ${marker}.`);
}

/** The pages in folders of docs/, as paths below the repository. */
export function pagesOf(...folders: readonly string[]): string[] {
  return folders.flatMap((folder) => readdirSync(join(root, 'docs', folder)).map((page) => join('docs', folder, page)));
}

/** The README's first example: it opens the store `notes`, writes, reads and scans. It is JavaScript, too. */
export function firstExample(): string {
  return readmeBlock('ts', "import { open } from 'varve';");
}

/** The TypeScript of a page, as paths below the repository have it: the code by a file name for each block, in their order. */
export function blocksOf(page: string): [name: string, code: string][] {
  const blocks = readFileSync(join(root, page), 'utf8').matchAll(/^```(tsx?)\n(.*?)^```$/gms);
  const name = page.replaceAll(/\W/g, '-');
  return Array.from(blocks, ([, kind, code = ''], i) => [`${name}-${i}.${kind}`, code]);
}
