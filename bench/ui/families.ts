/**
 * The published workload that a suite comes from (bench/README.md has the table), for the picker of suites.
 *
 * Invariant: every suite that can be chosen is in one family, and a family without suites is none.
 */

import type { Choice, Family } from '../core/workloads.ts';

const TITLES: Readonly<Record<Family, string>> = {
  S0: 'S0: an LSM engine',
  S1: 'S1: a database behind requests',
  S2: 'S2: a concurrent ordered store',
  S3: 'S3: single operations',
  S4: 'S4: documents and durability',
  beyond: 'Beyond the five: YCSB, db_bench, several tabs',
};

/** Choices that belong together. */
export interface FamilyOfChoices {
  readonly title: string;
  readonly choices: readonly Choice[];
}

/** The choices by family, in the order given. */
export function familiesOf(choices: readonly Choice[]): FamilyOfChoices[] {
  const families = Object.entries(TITLES).map(([family, title]) => ({
    title,
    choices: choices.filter((choice) => choice.family === family),
  }));
  return families.filter((family) => family.choices.length > 0);
}
