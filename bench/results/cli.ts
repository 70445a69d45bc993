/**
 * `npm run bench -- results --from FILE,FILE`: builds the results page, its charts and the README's figures from runs
 * that `--json` wrote. Without `--from` scripts/results.mjs measures first and hands over the files.
 *
 * Invariant: nothing is measured here.
 */

import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { root } from '../../scripts/tools.mjs';
import { ENGINES } from '../peers/list.ts';
import { filesOf, pageFiles } from './files.ts';
import { parseRuns, type Runs, resultsOf } from './results.ts';

const HELP = `npm run bench -- results [flags]

  --from LIST     Builds the page from these files, which --json wrote, instead of measuring.
  --out FILE      Where the page goes (docs/results.md, and then the README's figures as well); data and charts go beside it.
  --quick         Measures the quick suites only.
  --rounds N      Interleaved rounds of the browser's suites (5).
  --help          Prints this.`;

/** Tells what every file holds, in the order of the list. */
function read(list: string): Runs[] {
  return list.split(',').map((file) => parseRuns(file, readFileSync(file, 'utf8')));
}

function write(folder: string, files: ReadonlyMap<string, string>): void {
  for (const [path, text] of files) {
    const file = join(folder, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
}

/** Charts of a run before are gone, as the check wants. */
function removeCharts(folder: string): void {
  try {
    for (const name of readdirSync(folder)) if (name.endsWith('.svg')) rmSync(join(folder, name));
  } catch {
    // There were none.
  }
}

function main(): void {
  const { values } = parseArgs({
    options: {
      from: { type: 'string' },
      out: { type: 'string' },
      // What scripts/results.mjs could not measure.
      problem: { type: 'string', multiple: true, default: [] },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    console.log(HELP);
    return;
  }
  if (values.from === undefined) throw new Error(`--from is missing.\n\n${HELP}`);
  const notes = ENGINES.map(({ name, about, url }) => ({ name, about, ...(url === undefined ? {} : { url }) }));
  const results = resultsOf(read(values.from), notes, values.problem);
  const standard = join(root, 'docs', 'results.md');
  const page = resolve(values.out ?? standard);
  removeCharts(join(dirname(page), 'results'));
  if (page === standard) {
    write(
      root,
      filesOf(results, (path) => readFileSync(join(root, path), 'utf8')),
    );
  } else {
    const files = [...pageFiles(results)].map(([path, text]) => {
      const name = path.replace(/^docs\//, '');
      return [name === 'results.md' ? page.slice(dirname(page).length + 1) : name, text] as const;
    });
    write(dirname(page), new Map(files));
  }
  console.log(`Wrote ${page} from ${results.rows.length} rows.`);
}

try {
  main();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
