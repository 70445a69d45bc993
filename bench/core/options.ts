/**
 * Every option of a run, once: the flags of the command line and their help, the controls of the page and the address
 * are made of this list.
 *
 * Invariant: `planFrom(paramsOf(plan))` gives the plan again. What an address asks for and cannot be had is told in
 * words and left out, so that the rest of it still runs.
 */

import { ENGINES, FULL_ONLY } from '../peers/list.ts';
import type { Access } from './engine.ts';
import { type Custom, type Plan, ROUNDS } from './plan.ts';
import { CHOICES } from './workloads.ts';

/** One option. Its name is the flag (`--value-bytes`), the parameter of the address and the name of the control. */
export interface Option {
  readonly name: string;
  readonly kind: 'number' | 'choice' | 'list' | 'flag';
  readonly group: 'what' | 'size' | 'shape' | 'store' | 'run';
  readonly title: string;
  readonly about: string;
  readonly choices?: readonly string[];
  readonly min?: number;
  readonly max?: number;
  readonly step?: number;
  readonly unit?: string;
  /** What holds when the option is not given, in words or as its value. */
  readonly standard?: string;
}

/** In the order in which a run goes through them. */
export const ACCESSES: readonly Access[] = ['worker', 'page', 'inflight'];

const AS_SUITE = 'as the suite says';

/** Parameters of an address that are the page's own and no part of a plan. */
const NOT_OF_A_PLAN: ReadonlySet<string> = new Set(['auto']);

export const OPTIONS: readonly Option[] = [
  {
    name: 'mode',
    kind: 'choice',
    group: 'run',
    title: 'Length',
    about: 'quick: the quick suites with fewer calls and shorter rounds; full: every suite.',
    choices: ['quick', 'full'],
    standard: 'quick',
  },
  {
    name: 'suites',
    kind: 'list',
    group: 'what',
    title: 'Suites',
    about: 'Only these suites, in the order of the list.',
    choices: CHOICES.map(({ name }) => name),
    standard: 'those of the mode',
  },
  {
    name: 'engines',
    kind: 'list',
    group: 'what',
    title: 'Engines',
    about: 'Only these engines.',
    choices: ENGINES.map(({ name }) => name),
    standard: 'those of the mode',
  },
  {
    name: 'access',
    kind: 'list',
    group: 'what',
    title: 'Ways in',
    about: 'worker: calls inside the worker; page: awaited from the page; inflight: from the page, many at once.',
    choices: ACCESSES,
    standard: ACCESSES.join(','),
  },
  number('entries', 'size', 'Keys', 'Keys of the dataset.', { min: 1, max: 10_000_000, unit: 'keys' }),
  number('calls', 'size', 'Calls', 'Calls of a round.', { min: 1, max: 10_000_000, unit: 'calls' }),
  number('scale', 'size', 'Scale', 'A factor on the keys and calls of every suite.', {
    min: 0.01,
    max: 100,
    step: 0.01,
    standard: '1',
  }),
  number('key-bytes', 'shape', 'Key size', 'Characters of a string key.', { min: 12, max: 1024, unit: 'bytes' }),
  number('value-bytes', 'shape', 'Value size', 'Bytes of a value.', { min: 4, max: 1_048_576, unit: 'bytes' }),
  choice('key-kind', 'shape', 'Kind of key', 'Strings that count up, scattered strings, or [string, number] tuples.', [
    'sequential',
    'random',
    'tuple',
  ]),
  choice(
    'distribution',
    'shape',
    'Distribution',
    'How the keys of calls are drawn; zipfian is scrambled, theta 0.99.',
    ['uniform', 'zipfian', 'latest', 'sequential'],
  ),
  number('read-ratio', 'shape', 'Share of reads', 'Reads among the calls of a mix.', { min: 0, max: 1, step: 0.01 }),
  number('memory-bytes', 'store', 'Memory', 'What Varve may use for memtables and cache.', {
    min: 1_048_576,
    max: 1_073_741_824,
    unit: 'bytes',
    standard: 'as Varve chooses',
  }),
  choice('durability', 'store', 'Durability', 'The level that writes reach before they are acknowledged.', [
    'memory',
    'relaxed',
    'strict',
  ]),
  choice(
    'storage',
    'store',
    'Storage',
    'Where Varve keeps its files.',
    ['opfs', 'indexeddb', 'memory'],
    'as the engine says',
  ),
  number('threads', 'run', 'Callers', 'Callers at once in the page, or calls in flight.', {
    min: 1,
    max: 10_000,
    unit: 'callers',
  }),
  number('rounds', 'run', 'Rounds', 'Interleaved rounds; the row shows their median.', {
    min: 1,
    max: 101,
    standard: String(ROUNDS),
  }),
  number('round-ms', 'run', 'Length of a round', 'A round ends after so long, also when calls are left.', {
    min: 20,
    max: 60_000,
    unit: 'milliseconds',
    standard: '120 quick, 2000 full',
  }),
  number('seed', 'run', 'Seed', 'Every dataset and every order of calls follows from it.', {
    min: 0,
    max: 0xffff_ffff,
    standard: '1',
  }),
];

type Bounds = Pick<Option, 'min' | 'max' | 'step' | 'unit' | 'standard'>;

function number(name: string, group: Option['group'], title: string, about: string, bounds: Bounds): Option {
  return { name, kind: 'number', group, title, about, step: 1, standard: AS_SUITE, ...bounds };
}

function choice(
  name: string,
  group: Option['group'],
  title: string,
  about: string,
  choices: readonly string[],
  standard = AS_SUITE,
): Option {
  return { name, kind: 'choice', group, title, about, choices, standard };
}

/** What a mode runs when nothing else is asked for. */
export function standardPlan(mode: Plan['mode']): Plan {
  const full = mode === 'full';
  return {
    mode,
    suites: CHOICES.filter(({ quick, asked }) => (full ? asked !== true : quick)).map(({ name }) => name),
    engines: ENGINES.map(({ name }) => name).filter((name) => full || !FULL_ONLY.includes(name)),
    accesses: ACCESSES,
    rounds: ROUNDS,
    seed: 1,
    scale: 1,
    custom: {},
  };
}

/** Custom choices by the option that sets them. */
const CUSTOM = {
  entries: 'entries',
  calls: 'calls',
  'key-bytes': 'keyBytes',
  'value-bytes': 'valueBytes',
  'key-kind': 'keyKind',
  distribution: 'distribution',
  'read-ratio': 'readRatio',
  'memory-bytes': 'memoryBytes',
  durability: 'durability',
  storage: 'storage',
  threads: 'threads',
  'round-ms': 'round_ms',
} as const satisfies Readonly<Record<string, keyof Custom>>;

/** Reads a plan; every unknown name, and every figure that cannot be, is a problem in words and left out. */
export function planFrom(params: URLSearchParams): { plan: Plan; problems: string[] } {
  const reader = new Reader(params);
  const standard = standardPlan(reader.choice('mode') === 'full' ? 'full' : 'quick');
  const custom: Record<string, string | number> = {};
  for (const [name, field] of Object.entries(CUSTOM)) {
    const value = optionNamed(name).kind === 'number' ? reader.number(name) : reader.choice(name);
    if (value !== undefined) custom[field] = value;
  }
  const accesses = reader.list('access');
  const plan: Plan = {
    mode: standard.mode,
    suites: reader.list('suites') ?? standard.suites,
    engines: reader.list('engines') ?? standard.engines,
    accesses: accesses === undefined ? ACCESSES : ACCESSES.filter((access) => accesses.includes(access)),
    rounds: reader.number('rounds') ?? standard.rounds,
    seed: reader.number('seed') ?? standard.seed,
    scale: reader.number('scale') ?? standard.scale,
    // Each field was read as what its option says it is.
    custom: custom as Custom,
  };
  return { plan, problems: reader.problems };
}

/** The shortest address that gives this plan again. */
export function paramsOf(plan: Plan): URLSearchParams {
  const params = new URLSearchParams();
  const standard = standardPlan(plan.mode);
  const set = (name: string, value: string, usual: string): void => {
    if (value !== usual) params.set(name, value);
  };
  set('mode', plan.mode, 'quick');
  set('suites', plan.suites.join(), standard.suites.join());
  set('engines', plan.engines.join(), standard.engines.join());
  set('access', plan.accesses.join(), standard.accesses.join());
  for (const name of ['rounds', 'seed', 'scale'] as const) set(name, String(plan[name]), String(standard[name]));
  for (const [name, field] of Object.entries(CUSTOM)) {
    const value = plan.custom[field];
    if (value !== undefined) params.set(name, String(value));
  }
  return params;
}

function optionNamed(name: string): Option {
  const option = OPTIONS.find((known) => known.name === name);
  if (option === undefined) throw new Error(`There is no option ${name}.`);
  return option;
}

/** Reads parameters as their options say, and keeps what is wrong with them. */
class Reader {
  readonly #params: URLSearchParams;
  readonly problems: string[] = [];

  constructor(params: URLSearchParams) {
    this.#params = params;
    for (const name of new Set(params.keys())) {
      if (NOT_OF_A_PLAN.has(name) || OPTIONS.some((option) => option.name === name)) continue;
      this.problems.push(`There is no option "${name}".`);
    }
  }

  choice(name: string): string | undefined {
    const text = this.#params.get(name);
    const { choices = [] } = optionNamed(name);
    if (text === null || choices.includes(text)) return text ?? undefined;
    this.problems.push(`"${text}" is no ${name}: choose one of ${choices.join(', ')}.`);
    return undefined;
  }

  /** Names in the order of the option; an empty list is one that was asked for. */
  list(name: string): string[] | undefined {
    const text = this.#params.get(name);
    if (text === null) return undefined;
    const asked = text.split(',').filter((item) => item !== '' && item !== 'none');
    const { choices = [] } = optionNamed(name);
    for (const item of asked) {
      if (!choices.includes(item)) this.problems.push(`There is no "${item}" among the ${name}.`);
    }
    return choices.filter((item) => asked.includes(item));
  }

  number(name: string): number | undefined {
    const text = this.#params.get(name);
    if (text === null) return undefined;
    const { min = -Infinity, max = Infinity, step = 1 } = optionNamed(name);
    const value = text.trim() === '' ? Number.NaN : Number(text);
    const isWhole = step < 1 || Number.isInteger(value);
    if (value >= min && value <= max && isWhole) return value;
    const kind = step < 1 ? 'a number' : 'a whole number';
    this.problems.push(`The option ${name} must be ${kind} from ${min} to ${max}, and is "${text}".`);
    return undefined;
  }
}
