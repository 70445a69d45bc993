/** Versions of installed npm packages, for what a benchmark tells of its peers. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The version of an installed package; `..` is Varve itself. The command runs in the repository's folder. */
export function versionOf(name: string): string {
  const text = readFileSync(join(process.cwd(), 'node_modules', name, 'package.json'), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}
