/** Whether the results page, its charts and the README's figures are what docs/results.json gives: part of `npm run check`. */

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { problemsOf } from './files.ts';

/** What is wrong in the repository at `root`, a sentence each. */
export function checkResults(root: string): string[] {
  const charts = join(root, 'docs', 'results');
  const read = (path: string): string | undefined => {
    const file = join(root, path);
    return existsSync(file) ? readFileSync(file, 'utf8') : undefined;
  };
  return problemsOf(read, existsSync(charts) ? readdirSync(charts) : []);
}
