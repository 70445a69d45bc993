/**
 * The flags of `npm run bench`, read and described.
 *
 * Invariant: what a run can be asked for is in the list of options alone (options.ts); each is a flag of its name here.
 * The flags that are added say where a run reports to and what it is compared with. What is not understood is never
 * passed over: it is told with the nearest name that is known.
 */

import { parseArgs } from 'node:util';
import { closest, distance } from 'fastest-levenshtein';
import { OPTIONS, type Option, planFrom } from '../../core/options.ts';
import type { Plan } from '../../core/plan.ts';

/** What a command line asks for. */
export interface Command {
  readonly help: boolean;
  readonly list: boolean;
  readonly headed: boolean;
  /** What is to be run, as parameters of an address; what is absent is as in the mode or the baseline. */
  readonly params: URLSearchParams;
  /** Only these beside Varve's engines. */
  readonly peers: readonly string[] | undefined;
  /** How often the whole is run, each time in a browser of its own. */
  readonly runs: number;
  readonly json: string | undefined;
  readonly markdown: string | undefined;
  /** The baseline to compare with. */
  readonly compare: string | undefined;
  /** The share by which a row may be slower. */
  readonly failOver: number;
  readonly saveBaseline: string | undefined;
  /** The folder for CPU profiles. */
  readonly profile: string | undefined;
}

interface Flag {
  readonly name: string;
  /** What stands behind it; nothing for a switch. */
  readonly value?: string;
  readonly about: string;
}

/** Flags that are a list in the address and can be given one by one here. */
const SINGULAR: Readonly<Record<string, string>> = { suite: 'suites', engine: 'engines' };

const OWN: readonly Flag[] = [
  {
    name: 'quick',
    about: 'The same as --mode quick. Without it everything runs beside every peer, which takes hours.',
  },
  { name: 'suite', value: 'NAME', about: 'Only this suite; may be given several times.' },
  { name: 'engine', value: 'NAME', about: 'Only this engine; may be given several times.' },
  { name: 'peers', value: 'LIST', about: 'Only these peers and floors beside Varve; "none" for Varve alone.' },
  { name: 'json', value: 'FILE', about: 'Writes the result as JSON.' },
  { name: 'markdown', value: 'FILE', about: 'Writes the tables that are printed.' },
  { name: 'runs', value: 'NUMBER', about: 'Runs the whole so often, each time in a new browser (1).' },
  {
    name: 'compare',
    value: 'FILE',
    about: 'Runs what this baseline was made of, and fails where Varve has become slower beside the same floors.',
  },
  { name: 'fail-over', value: 'SHARE', about: 'How much slower is still let pass: 10% (the standard) or 0.1.' },
  { name: 'save-baseline', value: 'FILE', about: 'Writes the ratios of the run as a baseline to compare with.' },
  { name: 'profile', value: 'FOLDER', about: 'Writes a CPU profile of each thread, and prints where the time went.' },
  { name: 'headed', about: 'Shows the browser.' },
  { name: 'list', about: 'Prints the suites and engines.' },
  { name: 'help', about: 'Prints this.' },
];

const FLAGS: readonly Flag[] = [...OPTIONS.map(flagOf), ...OWN];

/** Other flags than these have to be told apart by more than a few letters to be no slip of the finger. */
const SLIP_MAX = 0.5;

function flagOf({ name, kind, about, choices, unit, standard }: Option): Flag {
  const said = kind === 'choice' ? `${about} ${choices?.join(', ')}.` : about;
  const usual = standard === undefined || name === 'mode' ? '' : ` (${standard})`;
  const value = kind === 'list' ? 'LIST' : kind === 'number' ? (unit ?? 'number').toUpperCase() : 'NAME';
  return { name, ...(kind === 'flag' ? {} : { value }), about: `${said}${usual}` };
}

/** Reads a command line. Throws a sentence for what it does not understand. */
export function parseFlags(args: readonly string[]): Command {
  const { tokens } = parseArgs({ args: [...args], strict: false, tokens: true, options: optionsOf() });
  const given = new Map<string, string[]>();
  for (const token of tokens) {
    if (token.kind === 'positional') throw new Error(`"${token.value}" stands where a flag was expected. ${SEE_HELP}`);
    if (token.kind !== 'option') continue;
    const flag = FLAGS.find(({ name }) => name === token.name);
    if (flag === undefined)
      throw new Error(
        unknown(
          'flag',
          token.name,
          FLAGS.map(({ name }) => name),
          '--',
        ),
      );
    if (flag.value !== undefined && token.value === undefined) {
      throw new Error(`--${flag.name} wants a value: --${flag.name} ${flag.value}.`);
    }
    if (flag.value === undefined && token.value !== undefined) throw new Error(`--${flag.name} takes no value.`);
    given.set(flag.name, [...(given.get(flag.name) ?? []), token.value ?? '']);
  }
  const last = (name: string): string | undefined => given.get(name)?.at(-1);
  return {
    help: given.has('help'),
    list: given.has('list'),
    headed: given.has('headed'),
    params: paramsIn(given),
    peers: peersOf(given.get('peers')),
    runs: numberOf('runs', last('runs') ?? '1', 1, 20),
    json: last('json'),
    markdown: last('markdown'),
    compare: last('compare'),
    failOver: shareOf(last('fail-over') ?? '10%'),
    saveBaseline: last('save-baseline'),
    profile: last('profile'),
  };
}

const SEE_HELP = '`npm run bench -- --help` lists what there is.';

function optionsOf(): Record<string, { type: 'string' | 'boolean'; multiple: true }> {
  return Object.fromEntries(
    FLAGS.map(({ name, value }) => [name, { type: value === undefined ? 'boolean' : 'string', multiple: true }]),
  );
}

function paramsIn(given: ReadonlyMap<string, readonly string[]>): URLSearchParams {
  const params = new URLSearchParams();
  for (const [flag, values] of given) {
    const name = SINGULAR[flag] ?? flag;
    const option = OPTIONS.find((known) => known.name === name);
    if (option === undefined) continue;
    const before = params.get(name);
    const items = option.kind === 'list' ? [...(before === null ? [] : [before]), ...values] : values.slice(-1);
    params.set(name, items.join(','));
    checkNames(option, params.get(name) ?? '');
  }
  if (given.has('quick')) params.set('mode', 'quick');
  return params;
}

/** Refuses names that the option does not have. */
function checkNames({ name, kind, choices }: Option, text: string): void {
  if (choices === undefined) return;
  for (const item of kind === 'list' ? text.split(',') : [text]) {
    if (item === '' || (kind === 'list' && item === 'none') || choices.includes(item)) continue;
    throw new Error(unknown(NOUNS[name] ?? name, item, choices));
  }
}

const NOUNS: Readonly<Record<string, string>> = { suites: 'suite', engines: 'engine', access: 'way in' };

/** A sentence about a name that is not known. */
function unknown(what: string, name: string, known: readonly string[], prefix = ''): string {
  const nearest = closest(name, [...known]);
  const isSlip = distance(name, nearest) <= Math.max(1, nearest.length * SLIP_MAX);
  const hint = isSlip
    ? `the nearest is ${prefix}${nearest}.`
    : `there are ${known.map((one) => prefix + one).join(', ')}.`;
  return `There is no ${what} "${prefix}${name}": ${hint} ${SEE_HELP}`;
}

function peersOf(values: readonly string[] | undefined): readonly string[] | undefined {
  const engines = OPTIONS.find(({ name }) => name === 'engines');
  if (values === undefined || engines === undefined) return undefined;
  checkNames(engines, values.join(','));
  return values.flatMap((text) => text.split(',')).filter((name) => name !== '' && name !== 'none');
}

function numberOf(name: string, text: string, min: number, max: number): number {
  const value = Number(text);
  if (Number.isInteger(value) && value >= min && value <= max) return value;
  throw new Error(`--${name} must be a whole number from ${min} to ${max}, and is "${text}".`);
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

/** The text of `--help`. */
export function helpText(): string {
  const lines = FLAGS.map(({ name, value, about }) => {
    const head = `  --${name}${value === undefined ? '' : ` ${value}`}`;
    return `${head.padEnd(26)} ${about}`;
  });
  const others = 'scale, micro, fs, http, deno-kv, cloudflare, results';
  return [
    'npm run bench -- [flags]',
    '',
    'Without flags every suite runs beside every peer.',
    '',
    ...lines,
    '',
    `Other benchmarks: npm run bench -- NAME, where NAME is one of ${others}. bench/README.md says what each measures.`,
  ].join('\n');
}
