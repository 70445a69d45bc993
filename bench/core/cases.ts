/**
 * The cases of a run: what can be compared, which is one suite through one access in one phase.
 *
 * Invariant: the rows of a case did the same work in interleaved rounds. Rows of several tabs are no case: their tables
 * are their own (tabs/report.ts).
 */

import type { Access } from './engine.ts';
import { ACCESSES } from './options.ts';
import type { Row } from './rows.ts';
import { CHOICES } from './workloads.ts';

/** One case with its rows. */
export interface Case {
  /** Names the case among those of any run. */
  readonly key: string;
  readonly suite: string;
  readonly access: Access;
  readonly phase: string | undefined;
  /** What the case does, for people. */
  readonly title: string;
  readonly rows: readonly Row[];
}

/** The ways in, in few words. */
export const ACCESS_WORDS: Readonly<Record<Access, string>> = {
  worker: 'worker',
  page: 'page, awaited',
  inflight: 'page, 100 in flight',
};

/** The ways in, in titles. */
export const ACCESS_TITLES: Readonly<Record<Access, string>> = {
  worker: 'in the worker',
  page: 'from the page, awaited',
  inflight: 'from the page, 100 in flight',
};

/** The cases of a run, in the order of the suites. A saved run can have suites that are not there any more. */
export function casesOf(rows: readonly Row[]): Case[] {
  const single = rows.filter(({ tabs }) => tabs === undefined);
  const suites = new Set([...CHOICES.map(({ name }) => name), ...single.map(({ suite }) => suite)]);
  return ACCESSES.flatMap((access) => [...suites].flatMap((suite) => casesIn(single, suite, access)));
}

function casesIn(rows: readonly Row[], suite: string, access: Access): Case[] {
  const found = rows.filter((row) => row.suite === suite && row.access === access);
  const about = CHOICES.find(({ name }) => name === suite)?.title;
  const title = `${suite}${about === undefined ? '' : `: ${about}`}, ${ACCESS_TITLES[access]}`;
  return [...new Set(found.map(({ phase }) => phase))].map((phase) => ({
    key: [suite, access, phase ?? ''].join('|'),
    suite,
    access,
    phase,
    title: phase === undefined ? title : `${title}, ${phase}`,
    rows: found.filter((row) => row.phase === phase),
  }));
}

/** A case in few words: `scan (worker)`. */
export function nameOf({
  suite,
  access,
  phase,
}: Pick<Row, 'suite' | 'access'> & { readonly phase?: string | undefined }): string {
  return `${suite}${phase === undefined ? '' : `, ${phase}`} (${ACCESS_WORDS[access]})`;
}

/** Names a row among those of any run: the same in two runs when they did the same work. */
export function rowKey(row: Row): string {
  const { suite, access, phase, engine, durability, tabs } = row;
  const inTabs = tabs === undefined ? '' : [tabs.count, tabs.call, tabs.role, tabs.load, tabs.place].join(' ');
  return [suite, access, phase ?? '', engine, durability, inTabs].join('|');
}
