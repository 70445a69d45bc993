/**
 * The gate: a run compared with a baseline, and what looks slower measured once more.
 *
 * Invariant: only what is slower in two runs, each in a browser of its own, fails. Within one run everything shares one
 * layout of the code and one moment of the machine, which no number of rounds evens out.
 */

import { type Baseline, type Compared, compare, comparedText } from '../../core/baseline.ts';
import type { Plan } from '../../core/plan.ts';
import { caseName, type Row } from '../../core/row.ts';

/** Compares a run with a baseline, and measures once more what looks slower. `passed`: nothing is slower, and all was measured. */
export async function judgeRun(
  baseline: Baseline,
  rows: readonly Row[],
  failOver: number,
  measure: (plan: Plan) => Promise<readonly Row[]>,
): Promise<{ readonly text: string; readonly passed: boolean }> {
  const { plan } = baseline;
  const first = compare(baseline, rows, failOver);
  const suspects = first.filter(({ verdict }) => verdict === 'SLOWER');
  const suites = plan.suites.filter((name) => suspects.some(({ suite }) => suite === name));
  const again = suites.length === 0 ? [] : compare(baseline, await measure({ ...plan, suites }), failOver);
  const nameOf = (row: Compared): string => `${caseName(row)} ${row.engine}`;
  const confirmed = again.filter(({ verdict }) => verdict === 'SLOWER').map(nameOf);
  const judged = first.map((row): Compared => {
    const isCleared = row.verdict === 'SLOWER' && !confirmed.includes(nameOf(row));
    return isCleared ? { ...row, verdict: 'too noisy to tell' } : row;
  });
  const more = `${suspects.length} looked slower and ran once more in a new browser. Slower again: ${confirmed.join(', ') || 'none'}.`;
  const text = `${comparedText(baseline, judged)}\n${suspects.length > 0 ? `\n${more}\n` : ''}`;
  return { text, passed: !judged.some(({ verdict }) => verdict === 'SLOWER' || verdict === 'NOT MEASURED') };
}
