/**
 * The flags of `npm run bench`, read and described.
 *
 * Invariant: a run's options are in the list of options alone (core/options.ts); each is a flag of its name here. The flags
 * that are added say where a run reports to and what it is compared with.
 */

import { type Command, InvalidArgumentError, Option } from 'commander';
import { OPTIONS, planFrom, standardPlan } from '../../core/options.ts';
import type { Plan } from '../../core/plan.ts';
import { suites } from '../../core/suite.ts';
import { ENGINES } from '../../peers/all.ts';
import '../../suites/browser.ts';
import { commandOf, joined, numberOf } from '../command.ts';

const SEE_HELP = '`npm run bench -- --list` prints the suites and engines.';

export interface Flags {
  readonly peers?: string;
  readonly json?: string;
  readonly markdown?: string;
  readonly runs: number;
  readonly compare?: string;
  readonly failOver: number;
  readonly saveBaseline?: string;
  readonly profile?: string;
  readonly list?: true;
}

const SINGULAR: Readonly<Record<string, string>> = { suites: '--suite, ', engines: '--engine, ' };

export function benchCommand(): Command {
  const command = commandOf('', 'Without flags every suite runs beside every peer.');
  for (const { name, kind, about, choices, standard } of OPTIONS) {
    const option = new Option(`${SINGULAR[name] ?? ''}--${name} <${kind}>`, `${about} (${standard})`);
    if (kind === 'choice') option.choices(choices?.() ?? []);
    command.addOption(kind === 'list' ? option.argParser(joined) : option);
  }
  return command
    .addOption(new Option('--quick', 'The same as --mode quick; everything takes hours.').implies({ mode: 'quick' }))
    .option('--peers <list>', 'Only these peers and floors beside Varve; "all", or "none" for Varve alone.', joined)
    .option('--json <file>', 'Writes the result as JSON.')
    .option('--markdown <file>', 'Writes the tables that are printed.')
    .option('--runs <number>', 'Runs the whole so often, always in a new browser.', (text) => numberOf('runs', text), 1)
    .option('--compare <file>', 'Runs what this baseline was made of, and fails where Varve has become slower.')
    .option('--fail-over <share>', 'How much slower is still let pass, such as 10% or 0.1.', shareOf, 0.1)
    .option('--save-baseline <file>', 'Writes the ratios of the run as a baseline to compare with.')
    .option('--profile <folder>', 'Writes a trace of every thread, for DevTools, Perfetto or speedscope.')
    .option('--list', 'Prints the suites and engines.')
    .addHelpText(
      'after',
      '\nOther benchmarks: npm run bench -- NAME, where NAME is one of scale, micro, fs, http, visit, results.\n' +
        'bench/README.md says what each measures.',
    );
}

/** The flags, and the plan as parameters of an address; an absent one is as in the mode or the baseline. */
export function parseFlags(args: readonly string[], command = benchCommand()) {
  const flags = command.parse(args, { from: 'user' }).opts<Flags>();
  const params = new URLSearchParams();
  for (const option of command.options) {
    const text: string | undefined = command.getOptionValue(option.attributeName());
    if (text !== undefined && OPTIONS.some(({ name }) => name === option.name())) params.set(option.name(), text);
  }
  if (flags.peers !== undefined) {
    const named = ENGINES.filter(({ role }) => role === 'varve' || flags.peers === 'all').map(({ name }) => name);
    params.set('engines', (flags.peers === 'all' ? named : [...named, flags.peers]).join());
  }
  return { flags, params };
}

function shareOf(text: string): number {
  const share = text.endsWith('%') ? Number(text.slice(0, -1)) / 100 : Number(text);
  if (text.trim() !== '' && share >= 0 && share < 1) return share;
  throw new InvalidArgumentError('It must be a share such as 10% or 0.1.');
}

export function planOf(params: URLSearchParams): Plan {
  const { plan, problems } = planFrom(params);
  if (problems.length > 0) throw new Error(`${problems.join('\n')}\n${SEE_HELP}`);
  return plan;
}

/** The text of `--list`: suites and engines, one a line; `*` marks what `--quick` runs. */
export function listText(): string {
  const quick = standardPlan('quick');
  const mark = (names: readonly string[], name: string): string => (names.includes(name) ? '*' : ' ');
  return [
    'Suites (* in a quick run)',
    ...suites().map(({ name, title }) => `${mark(quick.suites, name)} ${name.padEnd(18)} ${title}`),
    '',
    'Engines (* in a quick run)',
    ...ENGINES.map(({ name, role, about, accesses }) => {
      return `${mark(quick.engines, name)} ${name.padEnd(22)} ${role.padEnd(6)} ${accesses.join(', ').padEnd(22)} ${about}`;
    }),
  ].join('\n');
}
