/**
 * The flags of `npm run bench`, read and described.
 *
 * Invariant: a run's options are in the list of options alone (core/options.ts); each is a flag of its name here. The flags
 * that are added say where a run reports to and what it is compared with. An unknown name is never passed over: the error
 * has the nearest one that is known.
 */

import { parseArgs } from 'node:util';
import { closest, distance } from 'fastest-levenshtein';
import { OPTIONS, type Option, planFrom, standardPlan } from '../../core/options.ts';
import type { Plan } from '../../core/plan.ts';
import { suites } from '../../core/suite.ts';
import { ENGINES } from '../../peers/all.ts';
import '../../suites/browser.ts';

/** The flags beside the options, with the value that they want (none: a switch). */
const OWN = {
  quick: ['', 'The same as --mode quick. Without it everything runs beside every peer, which takes hours.'],
  suite: ['NAME', 'Only this suite; may be given several times.'],
  engine: ['NAME', 'Only this engine; may be given several times.'],
  peers: ['LIST', 'Only these peers and floors beside Varve; "none" for Varve alone.'],
  json: ['FILE', 'Writes the result as JSON.'],
  markdown: ['FILE', 'Writes the tables that are printed.'],
  runs: ['NUMBER', 'Runs the whole so often, each time in a new browser (1).'],
  compare: [
    'FILE',
    'Runs what this baseline was made of, and fails where Varve has become slower beside the same floors.',
  ],
  'fail-over': ['SHARE', 'How much slower is still let pass: 10% (the standard) or 0.1.'],
  'save-baseline': ['FILE', 'Writes the ratios of the run as a baseline to compare with.'],
  profile: ['FOLDER', 'Writes a trace of every thread, for DevTools, Perfetto or speedscope.'],
  headed: ['', 'Shows the browser.'],
  list: ['', 'Prints the suites and engines.'],
  help: ['', 'Prints this.'],
} as const;

type Own = keyof typeof OWN;

/** Flags that are a list in the address and can be given one by one here. */
const SINGULAR: Readonly<Record<string, string>> = { suite: 'suites', engine: 'engines', peers: 'engines' };
const NOUNS: Readonly<Record<string, string>> = { suites: 'suite', engines: 'engine', access: 'access' };
/** A name that differs by more than this share of its letters is no slip of the finger. */
const SLIP_MAX = 0.5;
const SEE_HELP = '`npm run bench -- --help` lists what there is.';

export interface Command {
  /** The plan as parameters of an address; an absent one is as in the mode or the baseline. */
  readonly params: URLSearchParams;
  /** Only these beside Varve's engines. */
  readonly peers: readonly string[] | undefined;
  /** Runs of the whole, each in a browser of its own. */
  readonly runs: number;
  /** The share by which a row may be slower. */
  readonly failOver: number;
  /** A flag's last value; empty for a switch, undefined when it was not given. */
  last(flag: Own): string | undefined;
}

/** Reads a command line. Throws a sentence for what it does not understand. */
export function parseFlags(args: readonly string[]): Command {
  const wanted = new Map<string, string>([
    ...OPTIONS.map(({ name }) => [name, 'VALUE'] as const),
    ...Object.entries(OWN).map(([name, [value]]) => [name, value] as const),
  ]);
  const kinds = [...wanted].map(([name, value]) => [name, { type: value === '' ? 'boolean' : 'string' }] as const);
  const options = Object.fromEntries(kinds) as Record<string, { type: 'boolean' | 'string' }>;
  const { tokens } = parseArgs({ args: [...args], strict: false, tokens: true, options });
  const given = new Map<string, string[]>();
  for (const token of tokens) {
    if (token.kind === 'positional') throw new Error(`"${token.value}" stands where a flag was expected. ${SEE_HELP}`);
    if (token.kind !== 'option') continue;
    const { name, value } = token;
    const want = wanted.get(name);
    if (want === undefined) throw new Error(unknown('flag', name, [...wanted.keys()], '--'));
    if (want !== '' && value === undefined) throw new Error(`--${name} wants a value: --${name} ${want}.`);
    if (want === '' && value !== undefined) throw new Error(`--${name} takes no value.`);
    given.set(name, [...(given.get(name) ?? []), value ?? '']);
  }
  const last = (name: string): string | undefined => given.get(name)?.at(-1);
  const peers = given.get('peers')?.join(',');
  if (peers !== undefined) checkNames(optionOf('engines'), peers);
  return {
    params: paramsIn(given),
    peers: peers?.split(',').filter((name) => name !== '' && name !== 'none'),
    runs: countOf('runs', last('runs') ?? '1', 20),
    failOver: shareOf(last('fail-over') ?? '10%'),
    last,
  };
}

function optionOf(name: string): Option {
  return OPTIONS.find((option) => option.name === name) as Option;
}

function paramsIn(given: ReadonlyMap<string, readonly string[]>): URLSearchParams {
  const params = new URLSearchParams();
  for (const [flag, values] of given) {
    const option = flag === 'peers' ? undefined : optionOf(SINGULAR[flag] ?? flag);
    if (option === undefined) continue;
    const before = option.kind === 'list' ? params.get(option.name) : null;
    const text = [...(before === null ? [] : [before]), ...(option.kind === 'list' ? values : values.slice(-1))].join();
    checkNames(option, text);
    params.set(option.name, text);
  }
  if (given.has('quick')) params.set('mode', 'quick');
  return params;
}

function checkNames({ name, kind, choices }: Option, text: string): void {
  const known = choices?.();
  for (const item of kind === 'list' ? text.split(',') : [text]) {
    if (known === undefined || item === '' || item === 'none' || known.includes(item)) continue;
    throw new Error(unknown(NOUNS[name] ?? name, item, known));
  }
}

function unknown(what: string, name: string, known: readonly string[], prefix = ''): string {
  const nearest = closest(name, [...known]);
  const isSlip = distance(name, nearest) <= Math.max(1, nearest.length * SLIP_MAX);
  const all = known.map((one) => prefix + one).join(', ');
  const hint = isSlip ? `the nearest is ${prefix}${nearest}.` : `there are ${all}.`;
  return `There is no ${what} "${prefix}${name}": ${hint} ${SEE_HELP}`;
}

function countOf(name: string, text: string, max: number): number {
  const value = Number(text);
  if (Number.isInteger(value) && value >= 1 && value <= max) return value;
  throw new Error(`--${name} must be a whole number from 1 to ${max}, and is "${text}".`);
}

function shareOf(text: string): number {
  const share = text.endsWith('%') ? Number(text.slice(0, -1)) / 100 : Number(text);
  if (text.trim() !== '' && share >= 0 && share < 1) return share;
  throw new Error(`--fail-over must be a share such as 10% or 0.1, and is "${text}".`);
}

/** The plan that parameters ask for. Throws what is wrong with them. */
export function planOf(params: URLSearchParams): Plan {
  const { plan, problems } = planFrom(params);
  if (problems.length > 0) throw new Error(`${problems.join('\n')}\n${SEE_HELP}`);
  return plan;
}

export function helpText(): string {
  const options = OPTIONS.map(({ name, kind, about, choices, standard }) => {
    const text = kind === 'choice' ? `${about} ${choices?.().join(', ')}.` : about;
    return [name, kind === 'list' ? 'LIST' : kind === 'number' ? 'NUMBER' : 'NAME', `${text} (${standard})`] as const;
  });
  const own = Object.entries(OWN).map(([name, [value, about]]) => [name, value, about] as const);
  return [
    'npm run bench -- [flags]',
    '',
    'Without flags every suite runs beside every peer.',
    '',
    ...[...options, ...own].map(([name, value, about]) => `${`  --${name} ${value}`.padEnd(26)} ${about}`),
    '',
    'Other benchmarks: npm run bench -- NAME, where NAME is one of scale, micro, fs, http, deno-kv, cloudflare, results.',
    'bench/README.md says what each measures.',
  ].join('\n');
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
