/**
 * The results that the page in docs, its chart and the README are made of: docs/results.json.gz.
 *
 * Invariant: the page is a function of this file alone, so that a figure that was changed by hand, there or here,
 * is found by making it again (files.ts).
 */

import { browserOf } from '../core/compare/baseline.ts';
import type { Engine } from '../core/engine.ts';
import type { Plan } from '../core/plan.ts';
import type { Row } from '../core/row.ts';
import type { StorageReport } from '../core/storage.ts';
import { shownStorage } from '../core/tables.ts';
import { type Judged, judge } from '../core/targets.ts';
import type { SavedRun, Sizes } from '../targets/browser/browser-run.ts';
import type { Machine, ServerResult, Source } from '../targets/command.ts';

const VERSION = 2;

/** How some suites were measured. */
export interface PlanNote extends Pick<Plan, 'mode' | 'rounds' | 'seed' | 'scale' | 'custom'> {
  readonly suites: readonly string[];
  readonly commit?: string;
}

/** The data of the page. */
export interface Results {
  readonly version: number;
  /** ISO dates of the runs. */
  readonly dates: readonly string[];
  readonly machine: Machine;
  /** Of several runs the most. */
  readonly load: number;
  /** The commit of all runs of the browser; where there are several, those of `plans`. */
  readonly source: Source;
  readonly browser: string;
  /** What was asked for, of each run of the browser, and the suites that it gave rows of. */
  readonly plans: readonly PlanNote[];
  /** Runtimes and libraries that told their versions. */
  readonly versions: Readonly<Record<string, string>>;
  readonly engines: readonly Pick<Engine, 'name' | 'about' | 'version' | 'url'>[];
  readonly targets: readonly Judged[];
  readonly storage: readonly StorageReport[];
  readonly sizes: Sizes;
  /** What failed or was not measured. */
  readonly problems: readonly string[];
  /** Without timelines; figures have four digits that count, as they say no more than was measured. */
  readonly rows: readonly Row[];
}

/** The content of files that `--json` wrote, told apart by what they hold. */
export interface Runs {
  readonly browser: readonly SavedRun[];
  readonly server: readonly ServerResult[];
}

/** Tells what the text of a file holds. Throws a sentence when it is of neither kind. */
export function parseRuns(file: string, text: string): Runs {
  const parsed: unknown = JSON.parse(text);
  const list = (Array.isArray(parsed) ? parsed : [parsed]) as Partial<SavedRun & ServerResult>[];
  const isRun = ({ rows, machine }: Partial<SavedRun>): boolean => Array.isArray(rows) && machine !== undefined;
  if (list.every(isRun) && list.every(({ environment }) => environment))
    return { browser: list as SavedRun[], server: [] };
  if (list.every(isRun) && list.every(({ date }) => date)) return { browser: [], server: list as ServerResult[] };
  throw new Error(`${file} is no result of the benchmark: give it files that --json wrote.`);
}

/** Gathers runs. `engines` are those of the browser. Throws when the runs do not belong together. */
export function resultsOf(runs: readonly Runs[], engines: readonly Engine[], problems: readonly string[]): Results {
  const browser = runs.flatMap((run) => run.browser);
  const server = runs.flatMap((run) => run.server);
  const [first] = browser;
  if (first === undefined) throw new Error('The results page needs a run of the browser.');
  if (browser.some(({ machine }) => JSON.stringify(machine) !== JSON.stringify(first.machine))) {
    throw new Error('The runs were made on different machines: their figures do not belong on one page.');
  }
  const plans = browser.map(planOf);
  const clash = clashOf(plans);
  if (clash !== undefined) throw new Error(`${clash} was measured at different commits: measure it again at one.`);
  const rows = [...browser, ...server].flatMap((run) => run.rows);
  const names = new Set(rows.map(({ engine }) => engine.replace(/ \(.*\)$/, '')));
  return {
    version: VERSION,
    dates: [...browser.map(({ environment }) => environment.date), ...server.map(({ date }) => date)].sort(),
    machine: first.machine,
    load: Math.max(...[...browser, ...server].map(({ load }) => load)),
    source: {
      ...(plans.every(({ commit }) => commit === first.source.commit) ? first.source : {}),
      clean: browser.every(({ source }) => source.clean),
    },
    browser: browserOf(first.environment.userAgent),
    plans,
    versions: Object.assign({}, ...server.map(({ versions }) => versions)),
    engines: [...names].map((name) => {
      const { about, url } = engines.find((one) => one.name === name) ?? { about: '', url: undefined };
      const version = rows.find((row) => row.engine === name && row.engineVersion !== undefined)?.engineVersion;
      return { name, about, ...(version && { version }), ...(url && { url }) };
    }),
    targets: judge(rows),
    storage: shownStorage(browser.flatMap(({ storage }) => storage)).map(({ stats: _, ...report }) => report),
    sizes: first.sizes,
    problems: [...problems, ...[...browser, ...server].flatMap((run) => run.problems)],
    rows: rows.map(short),
  };
}

function short({ timeline: _, ...row }: Row): Row {
  return JSON.parse(
    JSON.stringify(row, (_, value) => {
      return typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(4)) : value;
    }),
  );
}

function planOf({ plan: { mode, rounds, seed, scale, custom }, rows, source: { commit } }: SavedRun): PlanNote {
  const suites = [...new Set(rows.map(({ suite }) => suite))];
  return { mode, rounds, seed, scale, custom, suites, ...(commit && { commit }) };
}

/** A suite that was measured at more than one commit. */
function clashOf(plans: readonly PlanNote[]): string | undefined {
  const commits = new Map<string, string | undefined>();
  for (const { suites, commit } of plans) {
    for (const suite of suites) {
      if (commits.has(suite) && commits.get(suite) !== commit) return suite;
      commits.set(suite, commit);
    }
  }
  return undefined;
}

/** The commits of the runs, each with its suites where there are several. */
export function commitsOf({ source, plans }: Pick<Results, 'plans' | 'source'>): Map<string, readonly string[]> {
  if (source.commit !== undefined) return new Map([[source.commit, []]]);
  const commits = new Map<string, string[]>();
  for (const { commit = 'not known', suites } of plans) {
    commits.set(commit, [...new Set([...(commits.get(commit) ?? []), ...suites])]);
  }
  return commits;
}

/** The text of the data, a row a line. */
export function resultsText({ rows, ...head }: Results): string {
  const lines = rows.map((row) => `    ${JSON.stringify(row)}`);
  return `${JSON.stringify(head, undefined, 2).slice(0, -2)},\n  "rows": [\n${lines.join(',\n')}\n  ]\n}\n`;
}

/** Reads the data. Throws a sentence when it is of another version. */
export function parseResults(text: string): Results {
  const results = JSON.parse(text) as Results;
  if (results.version === VERSION) return results;
  throw new Error('The data of the results page is of another version: run `npm run bench -- results`.');
}
