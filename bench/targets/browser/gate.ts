/**
 * The gate: a run compared with a baseline, and what looks slower measured once more.
 *
 * Invariant: only what is slower in two runs, each in a browser of its own, fails. Within one run everything shares one
 * layout of the code and one moment of the machine, which no number of rounds evens out.
 */

import { existsSync, readFileSync } from 'node:fs';
import { type Baseline, type Compared, compare, comparedText, parseBaseline } from '../../core/baseline.ts';
import { paramsOf } from '../../core/options.ts';
import type { Plan } from '../../core/plan.ts';
import { caseName, type Row } from '../../core/row.ts';
import { planOf } from './flags.ts';

export function readBaseline(file: string): Baseline {
  if (!existsSync(file)) throw new Error(`There is no baseline ${file}: write one with --save-baseline ${file}.`);
  return parseBaseline(readFileSync(file, 'utf8'), file);
}

/** The plan of a baseline, with the choices of the command line laid over it. */
export function gatePlan({ plan: known }: Baseline, params: URLSearchParams): Plan {
  const plan = planOf(new URLSearchParams([...paramsOf(known), ['mode', known.mode], ...params]));
  const same = ({ mode, seed, scale, custom }: Plan): string => JSON.stringify([mode, seed, scale, custom]);
  if (same(plan) === same(known)) return plan;
  throw new Error(
    'The baseline was made of other work: with --compare only suites, engines, accesses and rounds can be chosen.',
  );
}

/** The part of a baseline that a plan measures: rows that are left out on purpose are not missing. */
export function partOf(baseline: Baseline, { suites, accesses, engines }: Plan): Baseline {
  const rows = baseline.rows.filter(
    ({ suite, access, engine, against }) =>
      suites.includes(suite) &&
      accesses.some((one) => one === access) &&
      [engine, against].every((name) => engines.includes(name)),
  );
  if (rows.length === 0) throw new Error('Nothing of what was asked for is in the baseline.');
  return { ...baseline, rows };
}

/** Compares a run with a baseline, and measures once more what looks slower. `passed`: nothing is slower, and all was measured. */
export async function judgeRun(
  baseline: Baseline,
  plan: Plan,
  rows: readonly Row[],
  failOver: number,
  measure: (plan: Plan) => Promise<readonly Row[]>,
): Promise<{ readonly text: string; readonly passed: boolean }> {
  const part = partOf(baseline, plan);
  const first = compare(part, rows, failOver);
  const suspects = first.filter(({ verdict }) => verdict === 'SLOWER');
  const suites = plan.suites.filter((name) => suspects.some(({ suite }) => suite === name));
  const again = suites.length === 0 ? [] : compare(part, await measure({ ...plan, suites }), failOver);
  const nameOf = (row: Compared): string => `${caseName(row)} ${row.engine}`;
  const confirmed = new Set(again.filter(({ verdict }) => verdict === 'SLOWER').map(nameOf));
  const judged = first.map((row): Compared => {
    return row.verdict === 'SLOWER' && !confirmed.has(nameOf(row)) ? { ...row, verdict: 'too noisy to tell' } : row;
  });
  const more = `${suspects.length} looked slower and ran once more in a new browser. Slower again: ${[...confirmed].join(', ') || 'none'}.`;
  const text = `${comparedText(part, judged)}\n${suspects.length > 0 ? `\n${more}\n` : ''}`;
  return { text, passed: !judged.some(({ verdict }) => verdict === 'SLOWER' || verdict === 'NOT MEASURED') };
}
