/**
 * The content of docs/results.json.gz: the results page, its chart and the figures of the README come from it.
 *
 * Invariant: they come from nothing else, so making them again shows a figure that was edited by hand (files.ts).
 */

import type { Engine } from '../core/engine.ts';
import type { Plan } from '../core/plan.ts';
import { browserName, jsonWith } from '../core/result.ts';
import type { Row } from '../core/row.ts';
import type { StorageReport } from '../core/storage.ts';
import { shownStorage } from '../core/tables.ts';
import { type Judged, judge } from '../core/targets.ts';
import type { SavedRun, Sizes } from '../targets/browser/browser-run.ts';
import type { Machine, Provenance, ServerResult, Source } from '../targets/command.ts';

const VERSION = 2;

/** The plan of some suites. */
export interface PlanNote extends Pick<Plan, 'mode' | 'rounds' | 'seed' | 'scale' | 'custom'> {
  readonly suites: readonly string[];
}

export interface Results {
  readonly version: number;
  /** ISO dates of the runs. */
  readonly dates: readonly string[];
  readonly machine: Machine;
  /** The highest of the runs. */
  readonly load: number;
  readonly source: Source;
  readonly browser: string;
  readonly plans: readonly PlanNote[];
  /** Of runtimes and libraries. */
  readonly versions: Readonly<Record<string, string>>;
  readonly engines: readonly Pick<Engine, 'name' | 'about' | 'version' | 'url'>[];
  readonly targets: readonly Judged[];
  readonly storage: readonly StorageReport[];
  readonly sizes: Sizes;
  readonly problems: readonly string[];
  /** With four significant digits. */
  readonly rows: readonly Row[];
}

/** The runs in files that `--json` wrote. */
export interface Runs {
  readonly browser: readonly SavedRun[];
  readonly server: readonly ServerResult[];
}

/** Throws if the file contains no runs. */
export function parseRuns(file: string, text: string): Runs {
  const parsed: unknown = JSON.parse(text);
  const list = (Array.isArray(parsed) ? parsed : [parsed]) as Partial<SavedRun & ServerResult>[];
  const isRun = ({ rows, machine }: Partial<SavedRun>): boolean => Array.isArray(rows) && machine !== undefined;
  if (list.every(isRun) && list.every(({ environment }) => environment))
    return { browser: list as SavedRun[], server: [] };
  if (list.every(isRun) && list.every(({ date }) => date)) return { browser: [], server: list as ServerResult[] };
  throw new Error(`${file} is no result of the benchmark: give it files that --json wrote.`);
}

/** `engines` are those of the browser. Throws if the runs do not belong together. */
export function resultsOf(runs: readonly Runs[], engines: readonly Engine[], problems: readonly string[]): Results {
  const browser = runs.flatMap((run) => run.browser);
  const server = runs.flatMap((run) => run.server);
  const [first] = browser;
  if (first === undefined) throw new Error('The results page needs a run of the browser.');
  const all = [...browser, ...server];
  const madeBy = ({ machine, source }: Provenance): string => JSON.stringify([machine, source.commit]);
  if (all.some((run) => madeBy(run) !== madeBy(first))) {
    throw new Error('The runs are of different machines or commits: their figures do not belong on one page.');
  }
  const rows = all.flatMap((run) => run.rows);
  const names = new Set(rows.map(({ engine }) => engine.replace(/ \(.*\)$/, '')));
  return {
    version: VERSION,
    dates: [...browser.map(({ environment }) => environment.date), ...server.map(({ date }) => date)].sort(),
    machine: first.machine,
    load: Math.max(...all.map(({ load }) => load)),
    source: { ...first.source, clean: all.every(({ source }) => source.clean) },
    browser: browserName(first.environment.userAgent),
    plans: browser.map(planOf),
    versions: Object.assign({}, ...server.map(({ versions }) => versions)),
    engines: [...names].map((name) => {
      const { about, url } = engines.find((one) => one.name === name) ?? { about: '', url: undefined };
      const version = rows.find((row) => row.engine === name && row.engineVersion !== undefined)?.engineVersion;
      return { name, about, ...(version && { version }), ...(url && { url }) };
    }),
    targets: judge(rows),
    storage: shownStorage(browser.flatMap(({ storage }) => storage)).map(({ stats: _, ...report }) => report),
    sizes: first.sizes,
    problems: [...problems, ...all.flatMap((run) => run.problems)],
    rows: rows.map(short),
  };
}

function short(row: Row): Row {
  const four = (_: string, value: unknown): unknown =>
    typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(4)) : value;
  return JSON.parse(JSON.stringify(row, four));
}

function planOf({ plan: { mode, rounds, seed, scale, custom }, rows }: SavedRun): PlanNote {
  return { mode, rounds, seed, scale, custom, suites: [...new Set(rows.map(({ suite }) => suite))] };
}

export function resultsText({ rows, ...head }: Results): string {
  return jsonWith(head, 'rows', rows);
}

/** Throws if the data is of another version. */
export function parseResults(text: string): Results {
  const results = JSON.parse(text) as Results;
  if (results.version === VERSION) return results;
  throw new Error('The data of the results page is of another version: run `npm run bench -- results`.');
}
