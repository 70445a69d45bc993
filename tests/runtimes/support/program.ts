// Shared by the programs that run in server runtimes: their parameters, and how they print lines.

import { writeSync } from 'node:fs';
import * as process from 'node:process';

/** The parameters from the test: the directory of the program's stores, and more. */
export function parameters<T extends object>(): T & { directory: string } {
  return JSON.parse(process.argv[2] ?? '{}') as T & { directory: string };
}

/** Prints a line. It has left the process when this returns: a kill right after it cannot undo it. */
export function say(line: string): void {
  const bytes = new TextEncoder().encode(`${line}\n`);
  for (let at = 0; at < bytes.length; ) at += writeSync(1, bytes, at);
}
