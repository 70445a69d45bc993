/**
 * The figures that are compared between runs: not rates, which are a machine's, but how many times the rate of something measured
 * beside it in the same round Varve reaches.
 *
 * Invariant: a ratio is of one round. The engines of a suite take turns, so that what disturbs the machine meets both
 * sides of a ratio, and what is left of it shows as scatter between rounds.
 */

import type { Row } from '../row.ts';
import { targetOf } from '../targets.ts';
import { logRatios } from './rounds.ts';

/** The name of a series. Two runs are compared where these are equal. */
export interface SeriesName {
  readonly suite: string;
  readonly access: string;
  /** Of a suite that makes several rows for one engine: which of them. */
  readonly phase?: string;
  readonly engine: string;
  /** The floor or peer beside it. */
  readonly against: string;
}

/** The ratios of one row to another. */
export interface Series extends SeriesName {
  /** For each run, in the order of its rounds: natural logarithms of Varve's rate divided by the other's. */
  readonly runs: readonly (readonly number[])[];
}

export function keyOf({ suite, access, phase, engine, against }: SeriesName): string {
  return [suite, phase ?? '', access, engine, against].join('|');
}

export function titleOf({ suite, access, phase, engine }: SeriesName): string {
  return `${suite}${phase === undefined ? '' : `, ${phase}`} (${access}) ${engine}`;
}

/** The series that all runs of a plan have, as the first names them. */
export function seriesOf(runs: readonly (readonly Row[])[]): Series[] {
  const each = runs.map((rows) => new Map(ratiosOf(rows).map((found) => [keyOf(found.name), found])));
  const [first] = each;
  return [...(first ?? [])].flatMap(([key, { name }]) => {
    const ratios = each.map((run) => run.get(key)?.logRatios ?? []);
    return ratios.some(({ length }) => length === 0) ? [] : [{ ...name, runs: ratios }];
  });
}

/** Each verified row of Varve that has something verified beside it, and its ratios to that. */
function ratiosOf(rows: readonly Row[]): { name: SeriesName; logRatios: number[] }[] {
  return rows.flatMap((row) => {
    if (row.role !== 'varve' || !row.verified) return [];
    const other = referenceOf(row, rows);
    if (other === undefined) return [];
    const { suite, access, phase, engine } = row;
    const name = { suite, access, ...(phase === undefined ? {} : { phase }), engine, against: other.engine };
    return [{ name, logRatios: logRatios(row.rounds, other.rounds) }];
  });
}

/** The row that the targets compare the row with, else the first floor beside it, else the first peer. */
function referenceOf(row: Row, rows: readonly Row[]): Row | undefined {
  const beside = rows.filter(
    ({ suite, access, phase, role, verified }) =>
      verified && role !== 'varve' && suite === row.suite && access === row.access && phase === row.phase,
  );
  const against = targetOf(row);
  return (
    beside.find(({ engine }) => engine === against) ??
    beside.find(({ role }) => role === 'floor') ??
    beside.find(({ role }) => role === 'peer')
  );
}
