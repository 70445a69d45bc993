/**
 * A row of the comparison on Node, and its table.
 *
 * Invariant: rates are medians of the rounds; the ratio beside an engine says how often `varve-sync` does what that engine does
 * once, in the same rounds: below 1 Varve is slower.
 */

import { duration, percent, rate, times } from '../../core/figures.ts';
import { Latencies, median } from '../../core/latency.ts';
import { spreadOf } from '../../core/rows.ts';
import type { LifeStory } from '../../suites/lives/life.ts';
import type { FileEngine, Level } from './engine.ts';

/** One round of one engine. */
export interface FileRound {
  readonly operations: number;
  readonly wrong: number;
  readonly elapsed_ms: number;
  readonly latencies: Latencies;
}

/** A row; its JSON is what `--json` writes. Times are in microseconds, of single calls. */
export interface FileRow {
  readonly suite: string;
  readonly work: string;
  readonly runtime: 'node';
  readonly engine: string;
  readonly version: string;
  readonly durability: Level;
  /** How the level is reached, in words. */
  readonly writes: string;
  readonly connections: 1;
  /** Calls, and the operations that they did. */
  readonly requests: number;
  readonly operations: number;
  readonly opsPerSecond: number;
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
  readonly max: number;
  /** Calls that were answered wrongly. */
  readonly errors: number;
  readonly verified: boolean;
  /** Operations a second of each round. */
  readonly rounds: readonly number[];
  readonly problem?: string | undefined;
  /** Of a life: how the store was over time, and that in one line. On the row of its steps. */
  readonly life?: LifeStory | undefined;
  readonly note?: string | undefined;
}

/** Sums up the rounds of one engine in one suite; `problem` is what the pass over its store found. */
export function makeFileRow(
  { name, title, level }: { readonly name: string; readonly title: string; readonly level: Level },
  { name: engine, version, writes }: Pick<FileEngine, 'name' | 'version' | 'writes'>,
  rounds: readonly FileRound[],
  problem: string | undefined,
): FileRow {
  const latencies = new Latencies();
  for (const round of rounds) latencies.addAll(round.latencies);
  const rates = rounds.map(({ operations, elapsed_ms }) => (operations * 1000) / elapsed_ms);
  const sum = (of: (round: FileRound) => number): number => rounds.reduce((total, round) => total + of(round), 0);
  const errors = sum(({ wrong }) => wrong);
  return {
    suite: name,
    work: title,
    runtime: 'node',
    engine,
    version,
    durability: level,
    writes: writes[level],
    connections: 1,
    requests: latencies.count,
    operations: sum(({ operations }) => operations),
    opsPerSecond: median(rates),
    ...latencies.percentiles(),
    errors,
    verified: errors === 0 && problem === undefined && rounds.length > 0,
    rounds: rates,
    problem,
  };
}

/** The engine that peers are compared with. */
const OURS = 'varve-sync';

/** The suite of a row, with its part where the suite has several. */
export function nameOf({ suite, work }: FileRow, rows: readonly FileRow[]): string {
  return rows.some((row) => row.suite === suite && row.work !== work) ? `${suite}, ${work}` : suite;
}

/** The rows as one table, each peer beside Varve. */
export function fileTable(rows: readonly FileRow[]): string {
  const lines = [
    '| suite | engine | durability | ops/s | varve-sync beside it | p50 | p95 | p99 | max | spread | verified |',
    '| --- | --- | --- | --: | --: | --: | --: | --: | --: | --: | --: |',
  ];
  for (const row of rows) {
    const varve = rows.find(({ suite, work, engine }) => suite === row.suite && work === row.work && engine === OURS);
    const ratio = varve === undefined || row.engine === OURS ? '' : times(varve.opsPerSecond / row.opsPerSecond);
    const times_us = [row.p50, row.p95, row.p99, row.max].map(duration);
    const durability = `${row.durability}: ${row.writes}`;
    const cells = [
      nameOf(row, rows),
      row.engine,
      durability,
      rate(row.opsPerSecond),
      ratio,
      ...times_us,
      percent(spreadOf(row)),
    ];
    lines.push(`| ${[...cells, row.verified ? 'yes' : '**no**'].join(' | ')} |`);
  }
  const stories = rows.flatMap(({ suite, engine, note }) =>
    note === undefined ? [] : [`- ${suite}, ${engine}: ${note}`],
  );
  return [lines.join('\n'), ...(stories.length === 0 ? [] : [stories.join('\n')])].join('\n\n');
}
