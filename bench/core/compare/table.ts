/** A comparison as people read it: one table, the worst first, and a sentence above it. */

import { times } from '../figures.ts';
import { markdownTable } from '../tables.ts';
import type { Baseline } from './baseline.ts';
import { type Compared, ROUNDS_MIN, type Verdict } from './judge.ts';
import { titleOf } from './ratios.ts';

const COLUMNS = ['row', 'beside', 'baseline', 'now', 'change', '95% interval', 'verdict'];

const WORDS: Readonly<Record<Verdict, string>> = {
  slower: 'SLOWER',
  same: 'not slower',
  faster: 'faster',
  unclear: 'too noisy to tell',
  'few rounds': `needs ${ROUNDS_MIN} rounds`,
  missing: 'NOT MEASURED',
};

/** Whether a comparison fails a gate: something is slower, or was not measured at all. */
export function isFailure({ verdict }: Compared): boolean {
  return verdict === 'slower' || verdict === 'missing';
}

export function comparisonText(baseline: Baseline, rows: readonly Compared[], threshold: number): string {
  return [
    '## Compared with the baseline',
    headOf(baseline, threshold),
    summaryOf(rows),
    markdownTable({ columns: COLUMNS, lines: rows.map((row) => ({ cells: cellsOf(row) })) }),
  ].join('\n\n');
}

function headOf({ commit, dates, browser }: Baseline, threshold: number): string {
  const of = commit === undefined ? '' : ` of commit ${commit}`;
  const days = [...new Set(dates.map((date) => date.slice(0, 10)))].join(', ');
  const runs = dates.length === 1 ? 'one run' : `${dates.length} runs`;
  return (
    `Ratios to what was measured beside Varve in the same round; the baseline is ${runs}${of} (${days}, ${browser}). ` +
    `A row fails if it is slower by more than ${share(threshold)}, with its whole interval.`
  );
}

function summaryOf(rows: readonly Compared[]): string {
  const counts = (Object.keys(WORDS) as Verdict[]).flatMap((verdict) => {
    const count = rows.filter((row) => row.verdict === verdict).length;
    return count === 0 ? [] : [`${count} ${WORDS[verdict]}`];
  });
  return `Rows: ${counts.join(', ')}.`;
}

function cellsOf(row: Compared): string[] {
  const { against, before, now, change, verdict } = row;
  return [
    titleOf(row),
    against,
    before === undefined ? '-' : times(before),
    now === undefined ? '-' : times(now),
    change === undefined ? '-' : signed(change.estimate),
    change === undefined ? '-' : `${signed(change.low)} to ${signed(change.high)}`,
    WORDS[verdict],
  ];
}

/** A factor as a change: 0.8 is -20.0%. */
function signed(factor: number): string {
  const change = (factor - 1) * 100;
  return `${change >= 0 ? '+' : ''}${change.toFixed(1)}%`;
}

function share(part: number): string {
  return `${Number((part * 100).toFixed(2))}%`;
}
