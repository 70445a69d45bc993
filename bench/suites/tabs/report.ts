/**
 * The tables of the suite `multi-tab`.
 *
 * Invariant: a ratio is of two rows with as many tabs, the same call and the same load; what Varve is compared with says which of
 * its rows it was.
 */

import { duration, times } from '../../core/figures.ts';
import { median } from '../../core/latency.ts';
import type { Failover, InTabs, Row } from '../../core/rows.ts';
import { FIGURE_COLUMNS, figureCells, type SuiteTable } from '../../core/suite-table.ts';

type InTabsRow = Row & { readonly tabs: InTabs };

const COLUMNS = ['tabs', 'who calls', 'engine', ...FIGURE_COLUMNS, 'Varve is'];
const FAILOVER_COLUMNS = ['engine', 'ended', 'times', 'pause: median', 'worst', 'from the command: median', 'worst'];
const FRAMES =
  'These are frames of one page, which share its process and its thread (their workers are their own). From the command line the suite opens tabs.';
const CAUSES: Readonly<Record<Failover['cause'], string>> = {
  close: 'its tab is closed',
  terminate: 'its worker is terminated',
  kill: 'its renderer is killed (SIGKILL)',
};
const WAYS = { page: 'awaited', inflight: '100 in flight', worker: 'in the worker' } as const;

/** The tables of a run, if it had the suite. */
export function tabTables(rows: readonly Row[], failovers: readonly Failover[]): SuiteTable[] {
  const own = rows.filter((row): row is InTabsRow => row.tabs !== undefined);
  const kinds = (['get', 'set'] as const).flatMap((call) =>
    (['page', 'inflight', 'worker'] as const).map((access) => ({ call, access })),
  );
  const tables = kinds.flatMap(({ call, access }): SuiteTable[] => {
    const group = own.filter((row) => row.tabs.call === call && row.access === access).sort(byCount);
    const [first] = group;
    if (first === undefined) return [];
    const lines = group.map((row) => ({
      cells: cellsOf(row, group),
      role: row.role,
      isBad: !row.verified,
      rows: [row],
    }));
    const note = first.tabs.place === 'frame' ? FRAMES : undefined;
    return [{ title: `multi-tab: ${call}, ${WAYS[access]}`, note, columns: COLUMNS, words: [0, 1, 2], lines }];
  });
  return [...tables, ...failoverTables(failovers)];
}

/** The table of what writers waited for when the leading tab was ended, if it was. */
export function failoverTables(failovers: readonly Failover[]): SuiteTable[] {
  const [first] = failovers;
  if (first === undefined) return [];
  return [
    {
      title: `multi-tab: the leader is gone, ${first.tabs - 1} others write`,
      note: first.place === 'frame' ? FRAMES : undefined,
      columns: FAILOVER_COLUMNS,
      words: [0, 1],
      lines: failovers.map((failover) => ({
        cells: failoverCells(failover),
        role: failover.engine === 'varve' ? 'varve' : 'peer',
        isBad: false,
        rows: [],
      })),
    },
  ];
}

function byCount(a: InTabsRow, b: InTabsRow): number {
  const order = ['alone', 'all'];
  return a.tabs.count - b.tabs.count || order.indexOf(a.tabs.load) - order.indexOf(b.tabs.load);
}

function cellsOf(row: InTabsRow, group: readonly InTabsRow[]): string[] {
  return [String(row.tabs.count), whoCalls(row.tabs), row.engine, ...figureCells(row), ratios(row, group)];
}

function whoCalls({ role, load, count }: InTabs): string {
  if (load === 'alone') return role === 'tab' ? 'one tab' : `the ${role}`;
  const others = count === 2 ? 'its follower' : `its ${count - 1} followers`;
  return role === 'all' ? 'all at once' : `all at once: ${role === 'leader' ? 'the leader' : others}`;
}

/** What Varve's rows of the same load reach of this one. */
function ratios(row: InTabsRow, group: readonly InTabsRow[]): string {
  if (row.role === 'varve') return '';
  const same = group.filter(
    ({ role, tabs }) => role === 'varve' && tabs.count === row.tabs.count && tabs.load === row.tabs.load,
  );
  const compared = same.filter(({ tabs }) => row.tabs.load === 'alone' || tabs.role === 'all');
  const texts = compared.map(({ opsPerSecond, tabs }) => {
    const ratio = times(opsPerSecond / row.opsPerSecond);
    return tabs.role === 'all' ? ratio : `${ratio} (${tabs.role})`;
  });
  return texts.join(', ');
}

function failoverCells({ engine, cause, hasLeader, pauses_ms, fromCommand_ms, tabs }: Failover): string[] {
  const ms = (figure: number): string => duration(figure * 1000);
  const what = CAUSES[cause];
  return [
    engine,
    hasLeader ? what : `${what} (no tab leads)`,
    String(pauses_ms.length / (tabs - 1)),
    ms(median(pauses_ms)),
    ms(Math.max(...pauses_ms)),
    ms(median(fromCommand_ms)),
    ms(Math.max(...fromCommand_ms)),
  ];
}

/** One line about a failover, for the progress. */
export function failoverLine(failover: Failover): string {
  const [engine, what, times, pause, worst] = failoverCells(failover);
  return `${engine}: ${what}, ${times} times: writers pause ${pause}, at worst ${worst}`;
}
