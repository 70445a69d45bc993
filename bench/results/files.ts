/**
 * The files that show the results, by their path in the repository, and the check that nobody edited them.
 *
 * Invariant: the check makes the files with the code that wrote them. In the README only the text between the markers changes.
 */

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { CHART, comparisonsIn, headlinesOf, pageText, readmeText } from './page.ts';
import { parseResults, type Results } from './results.ts';

export const DATA = 'docs/results.json.gz';
const PAGE = 'docs/results.md';
const CHARTS = 'docs/results';
const README = 'README.md';
const BEGIN = '<!-- results:begin -->';
const END = '<!-- results:end -->';

export function pageFiles(results: Results): Map<string, string> {
  const chart = headlinesOf(comparisonsIn(results));
  return new Map([[PAGE, pageText(results)], ...(chart === undefined ? [] : [[`${CHARTS}/${CHART}`, chart] as const])]);
}

/** The README with new text between its markers. Throws if there are none. */
export function readmeWith(readme: string, results: Results | undefined): string {
  const begin = readme.indexOf(BEGIN);
  const end = readme.indexOf(END);
  if (begin < 0 || end < begin)
    throw new Error(`README.md has no ${BEGIN} and ${END}: its figures stand between them.`);
  return `${readme.slice(0, begin + BEGIN.length)}\n${readmeText(results)}\n${readme.slice(end)}`;
}

/** A sentence for each file that differs from the data. */
export function problemsOf(results: Results | undefined, read: (path: string) => string | undefined): string[] {
  const files = results === undefined ? new Map<string, string>() : pageFiles(results);
  files.set(README, readmeWith(read(README) ?? '', results));
  const changed = [...files].filter(([path, text]) => read(path) !== text).map(([path]) => path);
  const left = [PAGE, `${CHARTS}/${CHART}`].filter((path) => !files.has(path) && read(path) !== undefined);
  return [
    ...changed.map((path) => `${path} is not what ${DATA} gives.`),
    ...left.map((path) => `${path} belongs to no run: ${DATA} does not give it.`),
  ];
}

/** The same for the repository, as a part of `npm run check`. */
export function checkResults(root: string): string[] {
  const read = (path: string): string | undefined => {
    const file = join(root, path);
    return existsSync(file) ? readFileSync(file, 'utf8') : undefined;
  };
  const data = join(root, DATA);
  const results = existsSync(data) ? parseResults(gunzipSync(readFileSync(data)).toString()) : undefined;
  return problemsOf(results, read);
}
