/**
 * The files that the results are shown in, by their path from the repository, and what tells that one was changed.
 *
 * Invariant: the check makes the files with the same code that wrote them. In the README nothing outside of the markers is
 * touched.
 */

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { CHART, headlinesOf } from './chart.ts';
import { comparisonsIn, pageText, readmeText, summaryText } from './page.ts';
import { parseResults, type Results } from './results.ts';

/** Where the data of the page is kept. */
export const DATA = 'docs/results.json.gz';
const PAGE = 'docs/results.md';
const SUMMARY = 'docs/results.json';
const CHARTS = 'docs/results';
const README = 'README.md';
const BEGIN = '<!-- results:begin -->';
const END = '<!-- results:end -->';

/** Page, summary and chart of the results. */
export function pageFiles(results: Results): Map<string, string> {
  const chart = headlinesOf(comparisonsIn(results));
  return new Map([
    [PAGE, pageText(results)],
    [SUMMARY, summaryText(results)],
    ...(chart === undefined ? [] : [[`${CHARTS}/${CHART}`, chart] as const]),
  ]);
}

/** The README with the part between its markers made anew. Throws when the markers are not there. */
export function readmeWith(readme: string, results: Results | undefined): string {
  const begin = readme.indexOf(BEGIN);
  const end = readme.indexOf(END);
  if (begin < 0 || end < begin)
    throw new Error(`README.md has no ${BEGIN} and ${END}: its figures stand between them.`);
  return `${readme.slice(0, begin + BEGIN.length)}\n${readmeText(results)}\n${readme.slice(end)}`;
}

/** The files that do not follow from the data: a sentence each. `read` reads one of the repository; `charts` are the names below docs/results. */
export function problemsOf(
  results: Results | undefined,
  read: (path: string) => string | undefined,
  charts: readonly string[],
): string[] {
  const files = results === undefined ? new Map<string, string>() : pageFiles(results);
  files.set(README, readmeWith(read(README) ?? '', results));
  const changed = [...files].filter(([path, text]) => read(path) !== text).map(([path]) => path);
  const left = [PAGE, SUMMARY, ...charts.map((name) => `${CHARTS}/${name}`)].filter((path) => {
    return !files.has(path) && read(path) !== undefined;
  });
  return [
    ...changed.map((path) => `${path} is not what ${DATA} gives.`),
    ...left.map((path) => `${path} belongs to no run: ${DATA} does not give it.`),
  ];
}

/** Whether the page, its chart and the README's figures follow from the data: part of `npm run check`. */
export function checkResults(root: string): string[] {
  const charts = join(root, CHARTS);
  const read = (path: string): string | undefined => {
    const file = join(root, path);
    return existsSync(file) ? readFileSync(file, 'utf8') : undefined;
  };
  return problemsOf(readData(root), read, existsSync(charts) ? readdirSync(charts) : []);
}

/** The data of the repository; undefined when there is none. */
function readData(root: string): Results | undefined {
  const file = join(root, DATA);
  return existsSync(file) ? parseResults(gunzipSync(readFileSync(file)).toString()) : undefined;
}
