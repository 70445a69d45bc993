/**
 * The parts that the programs that serve a store share: their argument, their one line of output, and their end.
 *
 * Invariant: a program says one line, the JSON of a `Said`, when it answers requests, and ends when its standard input does:
 * so none is left behind, however the benchmark that started it ended.
 */

import process from 'node:process';
import type { Durability } from 'varve';

/** The argument of a program: JSON. */
export interface Told {
  /** The folder for the store's files. */
  readonly directory: string;
  /** The level of writes that name none; a Durable Object knows only `strict`. */
  readonly durability: Durability;
}

/** The line that a program writes. */
export interface Said {
  readonly url: string;
  /** The runtime and what serves in it, with versions. */
  readonly versions: string;
}

export function told(): Told {
  return JSON.parse(process.argv[2] ?? '{}') as Told;
}

/** Says where the program answers. */
export function say(said: Said): void {
  process.stdout.write(`${JSON.stringify(said)}\n`);
}

/** Resolves when standard input ends: the benchmark is done with the program, or is gone. */
export function dismissed(): Promise<void> {
  return new Promise((resolve) => void process.stdin.once('close', resolve).once('end', resolve).resume());
}
