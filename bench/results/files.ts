/**
 * The files that the results are shown in, by their path from the repository, and what tells that one was changed.
 *
 * Invariant: the check makes the files with the same code that wrote them.
 */

import { chartsOf } from './charts.ts';
import { pageText } from './page.ts';
import { readmeWith } from './readme.ts';
import { parseResults, type Results, resultsText } from './results.ts';

/** Where the data of the page is kept. */
export const DATA = 'docs/results.json';
const PAGE = 'docs/results.md';
const CHARTS = 'docs/results/';
const README = 'README.md';

/** Reads a file of the repository; undefined when there is none. */
export type Read = (path: string) => string | undefined;

/** Page, data and charts of the results. */
export function pageFiles(results: Results): Map<string, string> {
  const charts = chartsOf(results);
  return new Map([
    [DATA, resultsText(results)],
    [PAGE, pageText(results, charts)],
    ...charts.map(({ file, svg }) => [`${CHARTS}${file}`, svg] as const),
  ]);
}

/** All files, the README included. */
export function filesOf(results: Results | undefined, read: Read): Map<string, string> {
  const files = results === undefined ? new Map<string, string>() : pageFiles(results);
  return files.set(README, readmeWith(read(README) ?? '', results));
}

/** What is not as docs/results.json says: a sentence each. `charts` are the names of the files in docs/results. */
export function problemsOf(read: Read, charts: readonly string[]): string[] {
  const data = read(DATA);
  const files = filesOf(data === undefined ? undefined : parseResults(data), read);
  const changed = [...files].filter(([path, text]) => read(path) !== text).map(([path]) => path);
  const left = [PAGE, ...charts.map((name) => `${CHARTS}${name}`)].filter((path) => {
    return !files.has(path) && read(path) !== undefined;
  });
  return [
    ...changed.map((path) => `${path} is not what ${DATA} gives.`),
    ...left.map((path) => `${path} belongs to no run: ${DATA} does not give it.`),
  ];
}
