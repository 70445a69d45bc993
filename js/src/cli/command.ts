/**
 * A command: its arguments, its options, its help. Parsing is that of `node:util`.
 *
 * Invariant: the help of a command is made from the same table that its arguments are parsed by.
 */

import { type ParseArgsConfig, parseArgs } from 'node:util';
import type { KeyRange } from '../types.ts';
import { wrong } from './exit.ts';
import type { Output } from './output.ts';
import { parseKeyText, shown } from './text.ts';

/** An option of a command. */
interface Option {
  /** The name of its value, in capitals; undefined for a flag without a value. */
  readonly value?: string;
  readonly help: string;
}

type Options = Readonly<Record<string, Option>>;

/** One command. */
export interface Command {
  readonly name: string;
  /** Its arguments; those in brackets can be left out, and the last one can be repeated if it ends with dots. */
  readonly usage: string;
  /** A summary of one line. */
  readonly summary: string;
  readonly options: Options;
  /** More lines for its help. */
  readonly notes?: readonly string[];
  /** Runs it; resolves with the exit code. */
  run(call: Call): Promise<number>;
}

/** A call of a command. */
export interface Call {
  readonly args: readonly string[];
  readonly flags: Flags;
  readonly output: Output;
  /** Aborts on Ctrl-C. */
  readonly signal: AbortSignal;
}

/** The options that every command has. */
const COMMON: Options = {
  json: { help: 'print JSON, for programs' },
  help: { help: 'show this help' },
};

/** The options of commands that open a store. */
export const STORE: Options = {
  values: { value: 'CODEC', help: "the store's codec of values: structured (default), json, utf8 or bytes" },
  'lock-timeout': { value: 'MS', help: 'how long to wait while another process has the store open (default 1000)' },
  'key-file': { value: 'FILE', help: 'the key of an encrypted store: 32 bytes, or a text that is its passphrase' },
};

/** The option of commands that write or read an export. */
export const EXPORT_KEY: Options = {
  'export-key-file': { value: 'FILE', help: 'varve: the key of an encrypted export, as with --key-file' },
};

/** The bounds of a range. */
export const RANGE: Options = {
  prefix: { value: 'KEY', help: 'only keys that begin with this list, or this text' },
  gt: { value: 'KEY', help: 'only keys after this one' },
  gte: { value: 'KEY', help: 'only this key and keys after it' },
  lt: { value: 'KEY', help: 'only keys before this one' },
  lte: { value: 'KEY', help: 'only this key and keys before it' },
};

/** The options that were given. */
export class Flags {
  readonly #values: Readonly<Record<string, string | boolean | undefined>>;

  constructor(values: Readonly<Record<string, string | boolean | undefined>>) {
    this.#values = values;
  }

  has(name: string): boolean {
    return this.#values[name] !== undefined;
  }

  text(name: string): string | undefined {
    return this.#values[name] as string | undefined;
  }

  /** An integer of at least `least`. */
  integer(name: string, least: number): number | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    const number = Number(text);
    if (!/^\d+$/.test(text) || number < least || !Number.isSafeInteger(number)) {
      throw wrong(`--${name} is an integer from ${least}, not ${shown(text)}.`);
    }
    return number;
  }

  /** One of a few words. */
  choice<T extends string>(name: string, choices: readonly T[]): T | undefined {
    const text = this.text(name);
    if (text !== undefined && !choices.includes(text as T)) {
      throw wrong(`--${name} is ${choices.slice(0, -1).join(', ')} or ${choices.at(-1)}, not ${shown(text)}.`);
    }
    return text as T | undefined;
  }

  /** The range that the options of `RANGE` describe. */
  range(): KeyRange {
    const range: Record<string, unknown> = {};
    for (const name of Object.keys(RANGE)) {
      const text = this.text(name);
      if (text !== undefined) range[name] = parseKeyText(text);
    }
    return range;
  }
}

/** Parses the arguments of a command. */
export function parse(command: Command, args: readonly string[]): { args: string[]; flags: Flags } {
  const options: NonNullable<ParseArgsConfig['options']> = {};
  for (const [name, { value }] of Object.entries({ ...command.options, ...COMMON })) {
    options[name] = { type: value === undefined ? 'boolean' : 'string' };
  }
  let parsed: { values: Record<string, unknown>; positionals: string[] };
  try {
    parsed = parseArgs({ args: [...args], options, allowPositionals: true });
  } catch (error) {
    // Node goes on with an example that fits no command here.
    const [sentence] = (error as Error).message.split('. ');
    throw wrong(`${sentence}. \`varve ${command.name} --help\` lists the options.`);
  }
  const flags = new Flags(parsed.values as Record<string, string | boolean | undefined>);
  if (!flags.has('help')) checkCount(command, parsed.positionals);
  return { args: parsed.positionals, flags };
}

function checkCount({ name, usage }: Command, args: readonly string[]): void {
  const names = usage.split(' ').filter((part) => part !== '');
  const least = names.filter((part) => !part.startsWith('[')).length;
  const most = usage.endsWith('...') || usage.endsWith('...]') ? Number.POSITIVE_INFINITY : names.length;
  if (args.length < least) throw wrong(`${names[args.length]} is missing. Usage: varve ${name} ${usage}`);
  if (args.length > most) throw wrong(`${shown(args[most]!)} is one argument too many. Usage: varve ${name} ${usage}`);
}

/** The help of one command. */
export function helpOf({ name, usage, summary, options, notes = [] }: Command): string {
  const rows = Object.entries({ ...options, ...COMMON }).map(([option, { value, help }]) => {
    return [`  --${option}${value === undefined ? '' : ` ${value}`}`, help] as const;
  });
  const width = Math.max(...rows.map(([option]) => option.length));
  return [
    `varve ${name} ${usage}`.trimEnd(),
    '',
    summary,
    ...notes,
    '',
    ...rows.map(([option, help]) => `${option.padEnd(width)}  ${help}`),
  ].join('\n');
}
