/**
 * Every option of a run, once: the flags of the command line and their help, the controls of the page and the address
 * are made of this list.
 *
 * Invariant: `planFrom(paramsOf(plan))` gives the plan again. An address can ask for a thing that is not there: that is reported in
 * words and left out, so that the rest of it still runs.
 */

import type { Access } from './engine.ts';
import { type Custom, type Plan, ROUNDS } from './plan.ts';
import { engines, suites } from './suite.ts';

/** One option. Its name is the flag (`--value-bytes`), the parameter of the address and the name of the control. */
export interface Option {
  readonly name: string;
  readonly kind: 'number' | 'choice' | 'list';
  readonly about: string;
  readonly choices?: () => readonly string[];
  readonly min?: number;
  readonly max?: number;
  readonly step?: number;
  /** In words or as its value: how it is when the option is not given. */
  readonly standard: string;
  readonly field?: keyof Custom;
}

export const ACCESSES: readonly Access[] = ['worker', 'page', 'inflight'];

const AS_SUITE = 'as the suite says';
/** Parameters of an address that are the page's own and no part of a plan. */
const NOT_OF_A_PLAN: ReadonlySet<string> = new Set(['auto']);

const list = (name: string, about: string, choices: () => readonly string[], standard: string): Option => {
  return { name, kind: 'list', about, choices, standard };
};
const choice = (name: string, field: keyof Custom, about: string, choices: readonly string[]): Option => {
  return { name, field, kind: 'choice', about, choices: () => choices, standard: AS_SUITE };
};
const number = (
  name: string,
  field: keyof Custom | undefined,
  about: string,
  [min, max, step = 1]: readonly number[],
  standard = AS_SUITE,
): Option => ({ name, ...(field && { field }), kind: 'number', about, min: min ?? 0, max: max ?? 0, step, standard });

const MODE = 'quick: the quick suites with fewer calls and shorter rounds; full: every suite.';
const WAYS = 'worker: calls inside the worker; page: awaited from the page; inflight: from the page, many at once.';
const ORDERS = 'How the keys of calls are drawn; zipfian is scrambled, theta 0.99.';

export const OPTIONS: readonly Option[] = [
  { name: 'mode', kind: 'choice', about: MODE, choices: () => ['quick', 'full'], standard: 'quick' },
  list('suites', 'Only these suites, in the order of the list.', () => namesOf(suites()), 'those of the mode'),
  list('engines', 'Only these engines.', () => namesOf(engines()), 'those of the mode'),
  list('access', WAYS, () => ACCESSES, ACCESSES.join(',')),
  number('entries', 'entries', 'Keys of the dataset.', [1, 1e7]),
  number('calls', 'calls', 'Calls of a round.', [1, 1e7]),
  number('scale', undefined, 'A factor on the keys and calls of every suite.', [0.01, 100, 0.01], '1'),
  number('value-bytes', 'valueBytes', 'Bytes of a value.', [4, 2 ** 20]),
  choice('distribution', 'distribution', ORDERS, ['uniform', 'zipfian', 'latest', 'sequential']),
  number('read-ratio', 'readRatio', 'Reads among the calls of a mix.', [0, 1, 0.01]),
  number('memory-bytes', 'memoryBytes', 'Bytes of memtables and cache of Varve.', [2 ** 20, 2 ** 30], 'its own'),
  choice('durability', 'durability', 'The level of an acknowledged write.', ['memory', 'relaxed', 'strict']),
  number('rounds', undefined, 'Interleaved rounds; the row shows their median.', [1, 101], String(ROUNDS)),
  number('round-ms', 'round_ms', 'The longest that a round may take.', [20, 60_000], '120 quick, 2000 full'),
  number('seed', undefined, 'Every dataset and every order of calls follows from it.', [0, 0xffff_ffff], '1'),
];

function namesOf(all: readonly { readonly name: string }[]): string[] {
  return all.map(({ name }) => name);
}

export function standardPlan(mode: Plan['mode']): Plan {
  const isFull = mode === 'full';
  return {
    mode,
    suites: namesOf(suites().filter(({ quick, asked }) => (isFull ? asked !== true : quick))),
    engines: namesOf(engines().filter(({ fullOnly }) => isFull || fullOnly !== true)),
    accesses: ACCESSES,
    rounds: ROUNDS,
    seed: 1,
    scale: 1,
    custom: {},
  };
}

/** Reads a plan; every unknown name, and every figure that cannot be, is a problem in words and left out. */
export function planFrom(params: URLSearchParams): { plan: Plan; problems: string[] } {
  const problems: string[] = [];
  const given: Record<string, string | number | string[]> = {};
  for (const [name, text] of params) {
    const option = OPTIONS.find((known) => known.name === name);
    if (option !== undefined) {
      const value = readOption(option, text, problems);
      if (value !== undefined) given[name] = value;
    } else if (!NOT_OF_A_PLAN.has(name)) problems.push(`There is no option "${name}".`);
  }
  const of = (isCustom: boolean) => {
    const own = OPTIONS.filter(({ name, field }) => name in given && (field !== undefined) === isCustom);
    return Object.fromEntries(own.map((option) => [keyOf(option), given[option.name]]));
  };
  // Each was read as its option says.
  const standard = standardPlan(given['mode'] === 'full' ? 'full' : 'quick');
  return { plan: { ...standard, ...of(false), custom: of(true) } as Plan, problems };
}

function readOption(option: Option, text: string, problems: string[]): string | number | string[] | undefined {
  const { name, kind, choices, min = 0, max = 0, step = 1 } = option;
  if (kind === 'number') {
    const value = text.trim() === '' ? Number.NaN : Number(text);
    if (value >= min && value <= max && (step < 1 || Number.isInteger(value))) return value;
    const number = step < 1 ? 'a number' : 'a whole number';
    problems.push(`The option ${name} must be ${number} from ${min} to ${max}, and is "${text}".`);
    return undefined;
  }
  const known = choices?.() ?? [];
  if (kind === 'choice') {
    if (known.includes(text)) return text;
    problems.push(`"${text}" is no ${name}: choose one of ${known.join(', ')}.`);
    return undefined;
  }
  // An empty list is one that was asked for.
  const asked = text.split(',').filter((item) => item !== '' && item !== 'none');
  for (const item of asked) if (!known.includes(item)) problems.push(`There is no "${item}" among the ${name}.`);
  return known.filter((item) => asked.includes(item));
}

function keyOf({ name, field }: Option): keyof Custom | keyof Plan {
  return field ?? (name === 'access' ? 'accesses' : (name as keyof Plan));
}

/** The value of an option in a plan; undefined of a custom choice that it does not make. */
export function valueIn(plan: Plan, option: Option): unknown {
  return ({ ...plan, ...plan.custom } as Readonly<Record<string, unknown>>)[keyOf(option)];
}

export function paramsOf(plan: Plan): URLSearchParams {
  const params = new URLSearchParams();
  for (const option of OPTIONS) {
    const value = valueIn(plan, option);
    const usual = option.name === 'mode' ? 'quick' : valueIn(standardPlan(plan.mode), option);
    if (String(value) !== String(usual)) params.set(option.name, String(value));
  }
  return params;
}
