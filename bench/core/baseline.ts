/**
 * A baseline: how many times the rate of something measured beside it Varve reached in earlier runs, and whether a later run
 * falls short of that.
 *
 * Invariant: it holds ratios and what was asked for, no times and nothing of the machine but the browser's version, so that it
 * can be compared with a run on another machine. Of several runs it holds the lowest ratio of each row: browsers that are
 * started anew differ by more than their rounds show. A row is slower only if its whole interval lies beyond the threshold.
 */

import { times } from './figures.ts';
import type { Plan } from './plan.ts';
import { type Ratio, ratioOfTurns } from './ratio.ts';
import { browserName, jsonWith, type Result } from './result.ts';
import { caseName, groupsBy, type Row } from './row.ts';
import { markdownTable } from './tables.ts';
import { targetOf } from './targets.ts';

const VERSION = 2;
/** Fewer rounds do not show their scatter. */
const ROUNDS_MIN = 5;

interface Known extends Pick<Row, 'suite' | 'access' | 'phase' | 'engine'> {
  readonly against: string;
  readonly ratio: number;
}

export interface Baseline {
  readonly version: number;
  readonly dates: readonly string[];
  readonly commit: string | undefined;
  readonly browser: string;
  readonly plan: Plan;
  readonly rows: readonly Known[];
}

export type Judgement = 'NOT MEASURED' | 'SLOWER' | 'too noisy to tell' | 'not slower' | 'needs 5 rounds';

export interface Compared extends Known {
  readonly now: number | undefined;
  /** The ratio now for that of the baseline: 0.8 is a fifth slower. */
  readonly change: Ratio;
  readonly verdict: Judgement;
}

/** A baseline of one or more runs of the same plan, of the rows that all of them have. Throws when there are none. */
export function makeBaseline(results: readonly Result[], commit: string | undefined): Baseline {
  const [first] = results;
  const rows = (first?.rows ?? []).flatMap((row): Known[] => {
    const { suite, access, phase, engine } = row;
    const against = referenceOf(row, first?.rows ?? []);
    if (against === undefined) return [];
    const name = { suite, access, ...(phase && { phase }), engine, against };
    const ratio = Math.min(...results.map((result) => ratioIn(result.rows, name)?.ratio ?? Number.NaN));
    return ratio > 0 ? [{ ...name, ratio: Number(ratio.toPrecision(4)) }] : [];
  });
  if (first === undefined || rows.length === 0) {
    throw new Error('No row of the run has a ratio: a baseline needs verified rows of Varve and of a floor or peer.');
  }
  const dates = results.map(({ environment }) => environment.date);
  return { version: VERSION, dates, commit, browser: browserName(first.environment.userAgent), plan: first.plan, rows };
}

function referenceOf(row: Row, rows: readonly Row[]): string | undefined {
  if (row.role !== 'varve') return undefined;
  const beside = rows.filter((other) => other.verified && caseName(other) === caseName(row));
  const against = targetOf(row);
  const found = beside.find(({ engine }) => engine === against) ?? beside.find(({ role }) => role === 'floor');
  return (found ?? beside.find(({ role }) => role === 'peer'))?.engine;
}

/** The ratio of a row in a run; undefined where it was not measured, or not verified. */
function ratioIn(rows: readonly Row[], known: Omit<Known, 'ratio'>): (Ratio & { rounds: number }) | undefined {
  const of = (engine: string): Row | undefined =>
    rows.find((row) => row.verified && row.engine === engine && caseName(row) === caseName(known));
  const [ours, theirs] = [of(known.engine), of(known.against)];
  return ours && theirs && { ...ratioOfTurns(ours.rounds, theirs.rounds), rounds: ours.rounds.length };
}

export function parseBaseline(text: string, file: string): Baseline {
  const parsed: Partial<Baseline> | null = JSON.parse(text);
  if (parsed?.version === VERSION) return parsed as Baseline;
  throw new Error(`${file} is no baseline of this version of the benchmark: renew it, as bench/README.md says.`);
}

export function baselineText({ rows, ...head }: Baseline): string {
  return jsonWith(head, 'rows', rows);
}

/** Compares a run with a baseline; the worst first. `threshold` is a share: 0.1 for 10%. */
export function compare({ rows: known }: Baseline, rows: readonly Row[], threshold: number): Compared[] {
  const compared = known.map((one): Compared => {
    const { ratio = Number.NaN, low = Number.NaN, high = Number.NaN, rounds } = ratioIn(rows, one) ?? {};
    const change = { ratio: ratio / one.ratio, low: low / one.ratio, high: high / one.ratio };
    return { ...one, now: ratio, change, verdict: judge(change, rounds, 1 - threshold) };
  });
  const weight = ({ change }: Compared): number => (Number.isNaN(change.ratio) ? 0 : change.ratio);
  return compared.sort((a, b) => weight(a) - weight(b));
}

function judge({ low, high }: Ratio, rounds: number | undefined, least: number): Judgement {
  if (rounds === undefined) return 'NOT MEASURED';
  if (rounds < ROUNDS_MIN) return `needs ${ROUNDS_MIN} rounds`;
  if (high < least) return 'SLOWER';
  return low > least ? 'not slower' : 'too noisy to tell';
}

const COLUMNS = ['row', 'beside', 'baseline', 'now', 'change', '95% interval', 'verdict'];

export function comparedText({ commit, dates, browser }: Baseline, rows: readonly Compared[]): string {
  const counts = groupsBy(rows, ({ verdict }) => verdict).map((group) => `${group.length} ${group[0]?.verdict}`);
  const lines = rows.map((row) => {
    const { against, ratio, now, change, verdict } = row;
    const interval = `${signed(change.low)} to ${signed(change.high)}`;
    const figures = [times(ratio), times(now ?? 0), signed(change.ratio), interval];
    return { cells: [`${caseName(row)} ${row.engine}`, against, ...figures, verdict] };
  });
  return [
    '## Compared with the baseline',
    `Ratios to what was measured beside Varve in the same round; the baseline is the lowest of ${dates.length} runs (commit ${commit ?? 'unknown'}, ${dates[0]?.slice(0, 10)}, ${browser}).`,
    `Rows: ${counts.join(', ')}.`,
    markdownTable({ columns: COLUMNS, lines }),
  ].join('\n\n');
}

function signed(factor: number): string {
  const change = (factor - 1) * 100;
  return Number.isNaN(change) ? '-' : `${change >= 0 ? '+' : ''}${change.toFixed(1)}%`;
}
