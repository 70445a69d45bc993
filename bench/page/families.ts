/**
 * Which published workload a suite comes from (bench/README.md has the table), for the picker of suites.
 *
 * Invariant: every suite that can be chosen is in one family; one that no line names is among the others.
 */

/** Suites that belong together. */
export interface Family {
  readonly title: string;
  readonly suites: readonly string[];
}

const FAMILIES: readonly { readonly title: string; readonly names: RegExp }[] = [
  { title: 'S0: an LSM engine', names: /^(write|read|range|mixed)-[a-z0-9-]+$|^(load|compaction|scan|delete)$/ },
  { title: 'S1: a database behind requests', names: /^(txn|http-.+)$/ },
  { title: 'S2: a concurrent ordered store', names: /^(scale|scale-txn|concurrent)$/ },
  { title: 'S3: single operations', names: /^(micro.*|tuple-.+|set-4k|get-4k)$/ },
  { title: 'S4: documents and durability', names: /^(documents?.*|durability|strict-set)$/ },
  { title: 'YCSB', names: /^ycsb-/ },
  { title: 'db_bench', names: /^(fill|read|seek|delete|over)[a-z]+$/ },
];

/** The suites of these names by family, in the order given. */
export function familiesOf(names: readonly string[]): Family[] {
  const familyOf = (name: string): string => FAMILIES.find((family) => family.names.test(name))?.title ?? 'Others';
  return [...FAMILIES.map(({ title }) => title), 'Others']
    .map((title) => ({ title, suites: names.filter((name) => familyOf(name) === title) }))
    .filter(({ suites }) => suites.length > 0);
}
