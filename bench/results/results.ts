/**
 * The results that the page in docs, its charts and the README are made of: docs/results.json.
 *
 * Invariant: what is shown is a function of this file alone, so that a figure that was changed by hand, there or here,
 * is found by making it again (check.ts).
 */

import { browserOf } from '../core/compare/baseline.ts';
import type { Plan, StorageReport } from '../core/plan.ts';
import { shownStorage, targetCells } from '../core/report.ts';
import type { Failover } from '../core/rows.ts';
import { judge, judgeStories } from '../core/targets.ts';
import type { SavedRun, Sizes } from '../targets/browser/saved-run.ts';
import type { Machine, Source } from '../targets/machine.ts';
import { fromBrowser, fromServer, lifeRowOf, type ResultRow, type ServerRow } from './row.ts';

const VERSION = 1;

/** What an engine is, for its readers. */
export interface EngineNote {
  readonly name: string;
  readonly about?: string;
  readonly version?: string;
  readonly url?: string;
}

/** How some suites were measured. */
export interface PlanNote extends Pick<Plan, 'mode' | 'rounds' | 'seed' | 'scale' | 'custom'> {
  readonly suites: readonly string[];
  readonly commit?: string;
}

/** What docs/results.json holds. */
export interface Results {
  readonly version: number;
  /** ISO dates of the runs. */
  readonly dates: readonly string[];
  readonly machine: Machine;
  /** Programs that wanted to run, on average over the last minute of a run, its own included; of several runs the most. */
  readonly load: number;
  /** The commit of all runs of the browser; where there are several, those of `plans`. */
  readonly source: Source;
  readonly browser: string;
  /** What was asked for, of each run of the browser, and the suites that it gave rows of. */
  readonly plans: readonly PlanNote[];
  /** Server runtimes and what else told its version. */
  readonly versions: Readonly<Record<string, string>>;
  readonly engines: readonly EngineNote[];
  /** The lines of the table of targets, and whether each was reached (null where it cannot be told). */
  readonly targets: readonly { readonly cells: readonly string[]; readonly reached: boolean | null }[];
  readonly storage: readonly Omit<StorageReport, 'stats'>[];
  readonly sizes: Sizes;
  /** What failed or was not measured. */
  readonly problems: readonly string[];
  readonly rows: readonly ResultRow[];
  /** How long writers waited when the leading tab was ended. */
  readonly failovers?: readonly Failover[];
}

/** What the suites on Node and over HTTP write with `--json`. */
export interface ServerRun {
  readonly date?: string;
  readonly versions?: Readonly<Record<string, string>>;
  /** What could not be run, and why. */
  readonly failures?: readonly string[];
  readonly rows: readonly ServerRow[];
}

/** The content of files that `--json` wrote, told apart by what they hold. */
export interface Runs {
  readonly browser: readonly SavedRun[];
  readonly server: readonly ServerRun[];
}

/** Tells what the text of a file holds. Throws a sentence when it is of neither kind. */
export function parseRuns(file: string, text: string): Runs {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (error) {
    throw new Error(`${file} is not JSON: ${error instanceof Error ? error.message : error}`);
  }
  const list = Array.isArray(parsed) ? parsed : [parsed];
  if (list.every(isBrowserRun)) return { browser: list, server: [] };
  if (list.every(isServerRun)) return { browser: [], server: list };
  throw new Error(`${file} is no result of the benchmark: give it files that --json wrote.`);
}

function isBrowserRun(value: unknown): value is SavedRun {
  const { environment, machine, rows } = (value ?? {}) as Partial<SavedRun>;
  return environment !== undefined && machine !== undefined && Array.isArray(rows);
}

function isServerRun(value: unknown): value is ServerRun {
  const { rows } = (value ?? {}) as Partial<ServerRun>;
  return Array.isArray(rows) && rows.every((row) => typeof row.runtime === 'string');
}

/** Gathers runs. `notes` are about the engines of the browser. Throws when they do not belong together. */
export function resultsOf(runs: readonly Runs[], notes: readonly EngineNote[], problems: readonly string[]): Results {
  const browser = runs.flatMap((run) => run.browser);
  const server = runs.flatMap((run) => run.server);
  const [first] = browser;
  if (first === undefined) throw new Error('The results page needs a run of the browser.');
  if (browser.some(({ machine }) => JSON.stringify(machine) !== JSON.stringify(first.machine))) {
    throw new Error('The runs were made on different machines: their figures do not belong on one page.');
  }
  const plans = browser.map(planOf);
  const clash = clashOf(plans);
  if (clash !== undefined) {
    throw new Error(`${clash} was measured at different commits: measure it again at one.`);
  }
  const raw = browser.flatMap(({ rows }) => rows);
  const rows = [...raw.map(fromBrowser), ...server.flatMap((run) => run.rows.map(fromServer))];
  const date = ({ date: told }: ServerRun): string[] => (told === undefined ? [] : [told]);
  return {
    version: VERSION,
    dates: [...browser.map(({ environment }) => environment.date), ...server.flatMap(date)].sort(),
    machine: first.machine,
    load: Math.max(...browser.map(({ load }) => load)),
    source: {
      ...(plans.every(({ commit }) => commit === first.source.commit) ? first.source : {}),
      clean: browser.every(({ source }) => source.clean),
    },
    browser: browserOf(first.environment.userAgent),
    plans,
    versions: Object.assign({}, ...server.map(({ versions }) => versions ?? {})),
    engines: enginesOf(rows, notes, [
      ...raw.map(({ engine, engineVersion }) => [engine, engineVersion] as const),
      ...server.flatMap((run) => run.rows.map(({ engine, version }) => [engine, version] as const)),
    ]),
    targets: [...judge(raw), ...judgeStories(server.flatMap((run) => run.rows.map(lifeRowOf)))].map((judged) => ({
      cells: targetCells(judged),
      reached: judged.reached ?? null,
    })),
    storage: shownStorage(browser.flatMap(({ storage }) => storage)).map(({ stats: _, ...report }) => report),
    sizes: first.sizes,
    problems: [
      ...problems,
      ...browser.flatMap((run) => run.problems),
      ...server.flatMap(({ failures }) => failures ?? []),
    ],
    rows,
    failovers: browser.flatMap(({ failovers }) => failovers),
  };
}

function planOf({ plan: { mode, rounds, seed, scale, custom }, rows, source: { commit } }: SavedRun): PlanNote {
  const suites = [...new Set(rows.map(({ suite }) => suite))];
  return { mode, rounds, seed, scale, custom, suites, ...(commit === undefined ? {} : { commit }) };
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

type Told = readonly (readonly [engine: string, version: string | undefined])[];

function enginesOf(rows: readonly ResultRow[], notes: readonly EngineNote[], told: Told): EngineNote[] {
  const names = [...new Set(rows.map(({ engine }) => engine.replace(/ \(.*\)$/, '')))];
  return names.map((name) => {
    const version = told.find(([engine, found]) => engine === name && found !== undefined)?.[1];
    const note = notes.find((one) => one.name === name);
    return {
      name,
      ...(note?.about === undefined ? {} : { about: note.about }),
      ...(version === undefined ? {} : { version }),
      ...(note?.url === undefined ? {} : { url: note.url }),
    };
  });
}

/** The file's text, a row a line. */
export function resultsText({ rows, ...head }: Results): string {
  const lines = rows.map((row) => `    ${JSON.stringify(row)}`);
  return `${JSON.stringify(head, undefined, 2).slice(0, -2)},\n  "rows": [\n${lines.join(',\n')}\n  ]\n}\n`;
}

/** Reads docs/results.json. Throws a sentence when it is of another version. */
export function parseResults(text: string): Results {
  const results = JSON.parse(text) as Results;
  if (results.version === VERSION) return results;
  throw new Error('docs/results.json is of another version of the benchmark: run `npm run bench -- results`.');
}
