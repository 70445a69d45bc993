/**
 * A row of the results page, whatever ran it: the browser, the stores in files on Node, or a server.
 *
 * Invariant: rows with the same suite, part and place did the same work in the same run, taking turns; only those are
 * set side by side.
 */

import type { Access, Durability, Role } from '../core/engine.ts';
import { noteOf, type Row } from '../core/rows.ts';
import type { LifeStory } from '../suites/lives/life.ts';

/** One row. Figures have four digits that count, so that the kept file says no more than was measured. */
export interface ResultRow {
  readonly suite: string;
  /** Which part of the suite, where it has several. */
  readonly part?: string;
  /** Where and how it was called, in words. */
  readonly place: string;
  readonly engine: string;
  readonly role: Role;
  readonly durability: Durability;
  /** What is counted a second: `ops`, `entries`, `ranges`. */
  readonly unit: string;
  /** The median of the rounds. */
  readonly opsPerSecond: number;
  /** Operations a second of each round. */
  readonly rounds: readonly number[];
  /** Microseconds of a call; of the mean of a group, or of a wave in flight, where calls are timed together. */
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
  readonly max: number;
  readonly verified: boolean;
  /** Failed requests, of a server suite. */
  readonly errors?: number;
  /** How the load was made, or what a compaction made of the tables. */
  readonly note?: string;
  /** Of a life: how the store was over its steps. */
  readonly life?: readonly LifePoint[];
}

/** A sample of a life; null where it was not told. */
export type LifePoint = readonly [
  steps: number,
  perSecond: number,
  p99_us: number,
  diskBytes: number | null,
  memoryBytes: number | null,
];

/** What the suites on Node and over HTTP write for each row. */
export interface ServerRow {
  readonly suite: string;
  readonly work?: string;
  readonly runtime: string;
  readonly engine: string;
  readonly version?: string;
  readonly durability: Durability;
  readonly loop?: string;
  readonly connections: number;
  readonly opsPerSecond: number;
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
  readonly max: number;
  readonly errors: number;
  readonly verified: boolean;
  readonly rounds: readonly number[];
  readonly note?: string | undefined;
  readonly life?: LifeStory | undefined;
}

const PLACES: Readonly<Record<Access, string>> = {
  worker: 'in the worker',
  page: 'page, awaited',
  inflight: 'page, in flight',
};

/** Of a row of the browser. */
export function fromBrowser(row: Row): ResultRow {
  const { suite, engine, role, access, durability, unit, verified } = row;
  const part = partOf(row);
  const note = noteOf(row);
  // Of one tab that calls alone, who it is belongs to the engine: peers have no leader.
  const who = row.tabs?.load === 'alone' && row.tabs.role !== 'tab' ? ` (${row.tabs.role})` : '';
  return {
    ...{ suite, ...(part === undefined ? {} : { part }), place: PLACES[access], engine: engine + who },
    ...{ role, durability, unit, ...figuresOf(row), verified },
    ...(note === undefined ? {} : { note }),
    ...lifeOf(row),
  };
}

/** The same row for who judges lives. */
export function lifeRowOf(row: ServerRow) {
  return { ...row, role: roleOf(row.engine), part: row.work, place: row.runtime, unit: 'steps' } as const;
}

/** Of a row of a suite on Node or over HTTP. */
export function fromServer(row: ServerRow): ResultRow {
  const { suite, work, runtime, engine, durability, connections, loop, verified, errors, note } = row;
  const by = connections > 1 ? `, ${connections} ${loop === 'calls' ? 'in flight' : 'connections'}` : '';
  const how = loop === 'open' ? ', at a fixed rate' : '';
  return {
    ...{ suite, ...(work === undefined ? {} : { part: work }), place: `${runtime}${by}${how}`, engine },
    ...{
      role: roleOf(engine),
      durability,
      unit: row.life === undefined ? 'ops' : 'steps',
      ...figuresOf(row),
      verified,
      errors,
    },
    ...(note === undefined ? {} : { note }),
    ...lifeOf(row),
  };
}

function partOf({ phase, tabs }: Row): string | undefined {
  if (tabs === undefined) return phase;
  const { count, call, load, role } = tabs;
  const others = count === 1 ? '1 tab' : `${count} tabs`;
  if (load === 'alone') return `${others}, ${call}, one calls`;
  return `${others}, ${call}, all call${role === 'all' ? '' : ` (the part of the ${role})`}`;
}

/** What an engine of the suites on Node or over HTTP stands for. */
export function roleOf(engine: string): Role {
  if (engine.startsWith('varve')) return 'varve';
  return /^(bare|floor)/.test(engine) ? 'floor' : 'peer';
}

function lifeOf({ life }: { readonly life?: LifeStory | undefined }): Pick<ResultRow, 'life'> {
  if (life === undefined) return {};
  const told = (figure: number | undefined): number | null => (figure === undefined ? null : four(figure));
  const points = life.samples.map(({ steps, stepsPerSecond, p99, disk, memoryBytes }): LifePoint => {
    return [steps, four(stepsPerSecond), four(p99), told(disk?.bytes), told(memoryBytes)];
  });
  return { life: points };
}

type Figures = Pick<ResultRow, 'opsPerSecond' | 'rounds' | 'p50' | 'p95' | 'p99' | 'max'>;

function figuresOf({ opsPerSecond, rounds, p50, p95, p99, max }: Figures): Figures {
  return {
    opsPerSecond: four(opsPerSecond),
    rounds: rounds.map(four),
    ...{ p50: four(p50), p95: four(p95), p99: four(p99), max: four(max) },
  };
}

function four(figure: number): number {
  return Number(figure.toPrecision(4));
}

/** How a group of rows is called. */
export function groupName({ suite, part, place }: Pick<ResultRow, 'suite' | 'part' | 'place'>): string {
  return `${suite}${part === undefined ? '' : `, ${part}`} (${place})`;
}

/** The rows in groups that did the same work, in the order in which the groups came. */
export function groupsOf(rows: readonly ResultRow[]): ResultRow[][] {
  const groups = new Map<string, ResultRow[]>();
  for (const row of rows) {
    const key = groupName(row);
    groups.set(key, [...(groups.get(key) ?? []), row]);
  }
  return [...groups.values()];
}
