/**
 * The files that show the results, by their path in the repository, and the check that nobody edited them.
 *
 * Invariant: the check makes the files with the code that wrote them. In the README only the text between the markers changes.
 */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { CHART, comparisonsIn, headlinesOf, pageText, readmeText } from './page.ts';
import { parseResults, type Results } from './results.ts';

export { publishedOf } from './page.ts';

export const DATA = 'docs/results.json.gz';
const PAGE = 'docs/results.md';
const README = 'README.md';
const BEGIN = '<!-- results:begin -->';
const END = '<!-- results:end -->';

export function pageFiles(results: Results): Map<string, string> {
  return new Map([
    [PAGE, pageText(results)],
    [`docs/results/${CHART}`, headlinesOf(comparisonsIn(results))],
  ]);
}

/** The README with new text between its markers. Throws if there are none. */
export function readmeWith(readme: string, results: Results): string {
  const begin = readme.indexOf(BEGIN);
  const end = readme.indexOf(END);
  if (begin < 0 || end < begin)
    throw new Error(`README.md has no ${BEGIN} and ${END}: its figures stand between them.`);
  return `${readme.slice(0, begin + BEGIN.length)}\n${readmeText(results)}\n${readme.slice(end)}`;
}

export function problemsOf(results: Results, read: (path: string) => string): string[] {
  const files = pageFiles(results).set(README, readmeWith(read(README), results));
  const changed = [...files].filter(([path, text]) => read(path) !== text);
  return changed.map(([path]) => `${path} is not what ${DATA} gives.`);
}

export function readResults(data: string): Results {
  return parseResults(gunzipSync(readFileSync(data)).toString());
}

/** The check of the repository, as a part of `npm run check`. */
export function checkResults(root: string): string[] {
  return problemsOf(readResults(join(root, DATA)), (path) => readFileSync(join(root, path), 'utf8'));
}
