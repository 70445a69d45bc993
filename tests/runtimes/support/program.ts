// What the programs that run in server runtimes share: what they are told, and how they say things.

import { writeSync } from 'node:fs';
import * as process from 'node:process';

/** What the test told the program: the directory of its stores, and more. */
export function told<T extends object>(): T & { directory: string } {
  return JSON.parse(process.argv[2] ?? '{}') as T & { directory: string };
}

/** Says a line. It has left the process when this returns: a kill right after it takes nothing back. */
export function say(line: string): void {
  const bytes = new TextEncoder().encode(`${line}\n`);
  for (let at = 0; at < bytes.length; ) at += writeSync(1, bytes, at);
}
