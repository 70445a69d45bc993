/**
 * `npm run bench -- results --from FILE,FILE`: makes the results page, its chart and the README's figures from runs that
 * `--json` wrote. Without `--from` scripts/results.mjs measures first.
 */

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { gzipSync } from 'node:zlib';
import { root } from '../../scripts/tools.mjs';
import { ENGINES } from '../peers/all.ts';
import { command, commandOf } from '../targets/command.ts';
import { DATA, pageFiles, readmeWith, readResults } from './files.ts';
import { parseRuns, resultsOf, resultsText } from './results.ts';

interface Flags {
  readonly from: string;
  readonly add?: true;
  readonly out?: string;
}

await command(async () => {
  const values = commandOf(
    'results',
    'Makes the results page, its chart and the figures of the README. Without --from it measures first, with the flags of the browser.',
  )
    .requiredOption('--from <list>', 'Builds the page from these files, which --json wrote, instead of measuring.')
    .option('--add', 'Keeps the suites that the page has and these files have not.')
    .option('--out <folder>', "Where the page and its data go (docs; then the README's figures are written as well).")
    .parse()
    .opts<Flags>();
  const runs = values.from.split(',').map((file) => parseRuns(file, readFileSync(file, 'utf8')));
  const out = resolve(values.out ?? join(root, 'docs'));
  const data = join(out, DATA.replace(/^docs\//, ''));
  const results = resultsOf(runs, ENGINES, values.add && readResults(data));
  const write = (file: string, content: string | Buffer): void => {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content);
  };
  for (const [path, text] of pageFiles(results)) write(join(out, path.replace(/^docs\//, '')), text);
  write(data, gzipSync(resultsText(results), { level: 9 }));
  if (values.out === undefined) {
    const readme = join(root, 'README.md');
    writeFileSync(readme, readmeWith(readFileSync(readme, 'utf8'), results));
  }
  console.log(`Wrote ${out} from ${results.rows.length} rows.`);
});
