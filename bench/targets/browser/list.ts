/** The text of `--list`: what can be run, and beside what. */

import { standardPlan } from '../../core/options.ts';
import { CHOICES } from '../../core/workloads.ts';
import { ENGINES } from '../../peers/list.ts';

/** Suites and engines, one a line; `*` marks what `--quick` runs. */
export function listText(): string {
  const quick = standardPlan('quick');
  const mark = (names: readonly string[], name: string): string => (names.includes(name) ? '*' : ' ');
  return [
    'Suites (* in a quick run)',
    ...CHOICES.map(({ name, title }) => `${mark(quick.suites, name)} ${name.padEnd(18)} ${title}`),
    '',
    'Engines (* in a quick run)',
    ...ENGINES.map(({ name, role, about, accesses }) => {
      return `${mark(quick.engines, name)} ${name.padEnd(22)} ${role.padEnd(6)} ${accesses.join(', ').padEnd(22)} ${about}`;
    }),
  ].join('\n');
}
