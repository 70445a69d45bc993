/**
 * The gate: a run compared with a baseline, and what looks slower measured once more.
 *
 * Invariant: only what is slower in two runs, each in a browser of its own, fails. Within one run everything shares one
 * layout of the code and one moment of the machine, which no number of rounds evens out.
 */

import { existsSync, readFileSync } from 'node:fs';
import { type Baseline, parseBaseline } from '../../core/compare/baseline.ts';
import { type Compared, compare } from '../../core/compare/judge.ts';
import { keyOf, seriesOf } from '../../core/compare/ratios.ts';
import { comparisonText, isFailure } from '../../core/compare/table.ts';
import { paramsOf } from '../../core/options.ts';
import type { Plan } from '../../core/plan.ts';
import type { Row } from '../../core/row.ts';
import { planOf } from './flags.ts';

/** Runs a plan; resolves with the rows of each run. */
type Measure = (plan: Plan) => Promise<readonly (readonly Row[])[]>;

interface Judgement {
  readonly text: string;
  /** Nothing is slower, and all was measured. */
  readonly passed: boolean;
}

export function readBaseline(file: string): Baseline {
  if (!existsSync(file)) throw new Error(`There is no baseline ${file}: write one with --save-baseline ${file}.`);
  return parseBaseline(readFileSync(file, 'utf8'), file);
}

/** The plan of a baseline, with the choices of the command line laid over it. */
export function gatePlan(baseline: Baseline, params: URLSearchParams): Plan {
  const merged = paramsOf(baseline.plan);
  merged.set('mode', baseline.plan.mode);
  for (const [name, value] of params) merged.set(name, value);
  const plan = planOf(merged);
  const same = ({ mode, seed, scale, custom }: Plan): string => JSON.stringify([mode, seed, scale, custom]);
  if (same(plan) !== same(baseline.plan)) {
    throw new Error(
      'The baseline was made of other work: with --compare only suites, engines, accesses and rounds can be chosen.',
    );
  }
  return plan;
}

/** The part of a baseline that a plan measures: series that are left out on purpose are not missing. */
export function partOf(baseline: Baseline, plan: Plan): Baseline {
  const series = baseline.series.filter(
    ({ suite, access, engine, against }) =>
      plan.suites.includes(suite) &&
      plan.accesses.some((one) => one === access) &&
      plan.engines.includes(engine) &&
      plan.engines.includes(against),
  );
  if (series.length === 0) throw new Error('Nothing of what was asked for is in the baseline.');
  return { ...baseline, series };
}

/** Compares runs with a baseline, and measures once more what looks slower. */
export async function judgeRuns(
  baseline: Baseline,
  plan: Plan,
  runs: readonly (readonly Row[])[],
  failOver: number,
  measure: Measure,
): Promise<Judgement> {
  const part = partOf(baseline, plan);
  const first = compare(part, seriesOf(runs), failOver);
  const suspects = first.filter(({ verdict }) => verdict === 'slower');
  const again = suspects.length === 0 ? [] : await compareAgain(part, plan, suspects, failOver, measure);
  const confirmed = new Set(again.filter(({ verdict }) => verdict === 'slower').map(keyOf));
  const rows = first.map((row): Compared => {
    return row.verdict === 'slower' && !confirmed.has(keyOf(row)) ? { ...row, verdict: 'unclear' } : row;
  });
  const texts = [comparisonText(baseline, rows, failOver)];
  if (suspects.length > 0) {
    texts.push(
      `${suspects.length} looked slower and ran once more in a new browser, where ${confirmed.size} of them were slower again:`,
      comparisonText(part, again, failOver).split('\n\n').slice(2).join('\n\n'),
    );
  }
  return { text: `${texts.join('\n\n')}\n`, passed: !rows.some(isFailure) };
}

async function compareAgain(
  baseline: Baseline,
  plan: Plan,
  suspects: readonly Compared[],
  threshold: number,
  measure: Measure,
): Promise<Compared[]> {
  const keys = new Set(suspects.map(keyOf));
  console.log(`\n${suspects.length} rows look slower; they run once more.`);
  const rows = await measure({
    ...plan,
    suites: plan.suites.filter((name) => suspects.some(({ suite }) => suite === name)),
    accesses: plan.accesses.filter((name) => suspects.some(({ access }) => access === name)),
  });
  const series = baseline.series.filter((one) => keys.has(keyOf(one)));
  return compare({ ...baseline, series }, seriesOf(rows), threshold);
}
