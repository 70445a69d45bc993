/** What `--json` writes: the result of a run with everything that a reader must know about where it was made. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CLOSURES, sizesOf } from '../../../scripts/sizes.mjs';
import { bytes } from '../../core/figures.ts';
import type { Result } from '../../core/report.ts';
import { table } from '../../core/table.ts';
import { loadNow, type Machine, machine, type Source, source } from '../machine.ts';
import type { Run } from './browser-run.ts';
import type { ProcessorTime } from './processor.ts';
import { SITE } from './session.ts';

/** Sizes after gzip, in bytes, of what a page loads. */
export interface Sizes {
  readonly wasm: number;
  readonly client: number;
  readonly sync: number;
}

/** A run as it is kept in a file. */
export interface SavedRun extends Result {
  readonly machine: Machine;
  /** Programs that wanted to run, on average over the last minute of the run, its own included. */
  readonly load: number;
  readonly source: Source;
  readonly sizes: Sizes;
  readonly processor: readonly ProcessorTime[];
}

/** Adds to a run what the page cannot know. */
export function savedRun({ result, processor }: Run): SavedRun {
  return { ...result, machine: machine(), load: loadNow(), source: source(), sizes: packageSizes(), processor };
}

/** Each with all that it loads at once. */
function packageSizes(): Sizes {
  const sizes = sizesOf(join(SITE, 'varve'), JSON.parse(readFileSync(CLOSURES, 'utf8')));
  const gzip = (file: string): number => sizes.find(({ name }) => name === file)?.gzip ?? Number.NaN;
  return { wasm: gzip('varve.wasm'), client: gzip('index.js'), sync: gzip('synchronous.js') };
}

/** The end of the report in Markdown: processor time, and sizes beside their budgets. */
export function closingText({ sizes, processor }: SavedRun): string {
  const kinds = [...new Set(processor.flatMap(({ seconds }) => Object.keys(seconds)))];
  const rows = processor.map(({ suite, access, seconds }) => [
    `${suite} (${access})`,
    ...kinds.map((kind) => (seconds[kind] ?? 0).toFixed(2)),
  ]);
  return [
    ...(rows.length === 0
      ? []
      : [
          '## Processor time',
          "Seconds of the browser's processes, all engines of a suite together, loading and verifying included.",
          table(['suite', ...kinds], rows),
        ]),
    '## Size after gzip',
    [
      `- varve.wasm: ${bytes(sizes.wasm)}, wanted 100 KiB`,
      `- varve: ${bytes(sizes.client)}, wanted 20 KiB`,
      `- varve/synchronous: ${bytes(sizes.sync)}`,
    ].join('\n'),
    '',
  ].join('\n\n');
}
