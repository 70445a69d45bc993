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
import type { SavedRun, Sizes } from '../targets/browser/browser-run.ts';
import type { Machine, Provenance, ServerResult } from '../targets/command.ts';

const VERSION = 3;

export interface RunNote extends Pick<Provenance, 'load' | 'source'> {
  readonly date: string;
  readonly plan?: Pick<Plan, 'mode' | 'rounds' | 'seed' | 'scale' | 'custom'>;
}

export type NotedRow = Row & { readonly run: number };

export interface Results {
  readonly version: number;
  readonly machine: Machine;
  readonly runs: readonly RunNote[];
  readonly browser: string;
  readonly versions: Readonly<Record<string, string>>;
  readonly engines: readonly Pick<Engine, 'name' | 'about' | 'version' | 'url'>[];
  readonly storage: readonly StorageReport[];
  readonly sizes: Sizes;
  readonly problems: readonly string[];
  /** With four significant digits. */
  readonly rows: readonly NotedRow[];
}

export interface Runs {
  readonly browser: readonly SavedRun[];
  readonly server: readonly ServerResult[];
}

export function parseRuns(file: string, text: string): Runs {
  const parsed: unknown = JSON.parse(text);
  const list = (Array.isArray(parsed) ? parsed : [parsed]) as Partial<SavedRun & ServerResult>[];
  const isRun = ({ rows, machine }: Partial<SavedRun>): boolean => Array.isArray(rows) && machine !== undefined;
  if (list.every(isRun) && list.every(({ environment }) => environment))
    return { browser: list as SavedRun[], server: [] };
  if (list.every(isRun) && list.every(({ date }) => date)) return { browser: [], server: list as ServerResult[] };
  throw new Error(`${file} is no result of the benchmark: give it files that --json wrote.`);
}

/**
 * Results of runs. `before`: results whose other suites are kept. `engines` are those of the browser. Throws if the runs do not belong
 * together.
 */
export function resultsOf(runs: readonly Runs[], engines: readonly Engine[], before?: Results): Results {
  const browser = runs.flatMap((run) => run.browser);
  const server = runs.flatMap((run) => run.server);
  const all: readonly (SavedRun | ServerResult)[] = [...browser, ...server];
  const head =
    browser[0] === undefined ? before : { ...browser[0], browser: browserName(browser[0].environment.userAgent) };
  if (head === undefined) throw new Error('The results page needs a run of the browser.');
  if ([...all, ...(before ? [before] : [])].some(({ machine }) => machineName(machine) !== machineName(head.machine))) {
    throw new Error('The runs are of different machines: their figures do not belong on one page.');
  }
  const first = before?.runs.length ?? 0;
  const measured = all.flatMap(({ rows }, i) => rows.map((row): NotedRow => ({ ...short(row), run: first + i })));
  const isNew = new Set(measured.map(placeOf));
  const kept = (before?.rows ?? []).filter((row) => !isNew.has(placeOf(row)));
  const notes = [...(before?.runs ?? []), ...all.map(noteOf)];
  const rows = [...kept, ...measured];
  const used = notes.map((_, run) => run).filter((run) => rows.some((row) => row.run === run));
  const names = new Set(rows.map(({ engine }) => engine.replace(/ \(.*\)$/, '')));
  const storage = shownStorage(browser.flatMap((run) => run.storage)).map(({ stats: _, ...report }) => report);
  return {
    version: VERSION,
    machine: head.machine,
    runs: used.flatMap((run) => notes[run] ?? []),
    browser: head.browser,
    versions: Object.assign({}, before?.versions, ...server.map(({ versions }) => versions)),
    engines: [...names].map((name) => {
      const known = [...engines, ...(before?.engines ?? [])].find((one) => one.name === name);
      const { about, url } = known ?? { about: '', url: undefined };
      const version = rows.findLast((row) => row.engine === name && row.engineVersion !== undefined)?.engineVersion;
      return { name, about, ...(version && { version }), ...(url && { url }) };
    }),
    storage: storage.length > 0 ? storage : (before?.storage ?? []),
    sizes: head.sizes,
    problems: [...(before?.problems ?? []), ...all.flatMap((run) => run.problems)],
    rows: rows.map((row) => ({ ...row, run: used.indexOf(row.run) })),
  };
}

/** A new run replaces all rows of the same place. */
const placeOf = ({ suite, access }: Row): string => `${suite} ${access}`;

/** Without its memory, whose size differs by some pages after each start. */
const machineName = ({ memoryBytes: _, ...machine }: Machine): string => JSON.stringify(machine);

function short(row: Row): Row {
  const four = (_: string, value: unknown): unknown =>
    typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(4)) : value;
  return JSON.parse(JSON.stringify(row, four));
}

function noteOf(run: SavedRun | ServerResult): RunNote {
  const { load, source } = run;
  if (!('plan' in run)) return { date: run.date, load, source };
  const { mode, rounds, seed, scale, custom } = run.plan;
  return { date: run.environment.date, load, source, plan: { mode, rounds, seed, scale, custom } };
}

export function resultsText({ rows, ...head }: Results): string {
  return jsonWith(head, 'rows', rows);
}

export function parseResults(text: string): Results {
  const results = JSON.parse(text) as Results;
  if (results.version === VERSION) return results;
  throw new Error('The data of the results page is of another version: run `npm run bench -- results`.');
}
