/** `npm run bench -- scale`: millions of pairs in a worker of Chromium. */

import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import type { Page } from 'playwright';
import { table } from '../../core/table.ts';
import { SCALE_COLUMNS, scaleCells } from '../../suites/scale/cells.ts';
import type { ScaleEvent, ScaleRow } from '../../suites/scale/phases.ts';
import { ProgressLine } from './progress.ts';
import { drive, inBrowser } from './session.ts';

const HELP = `npm run bench -- scale [options]

  --pairs N          pairs of 32 + 32 bytes (default 2000000)
  --json FILE        writes what was measured as JSON
  --markdown FILE    writes the table that is printed
  --headed           shows the browser

Ctrl-C ends the run early, with the phases that are through.`;

function tableOf(pairs: number, rows: readonly ScaleRow[]): string {
  const [, ...titles] = SCALE_COLUMNS;
  return `${table([`${pairs} pairs, varve/synchronous`, ...titles], rows.map(scaleCells), [0, titles.length])}\n`;
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      pairs: { type: 'string', default: '2000000' },
      json: { type: 'string' },
      markdown: { type: 'string' },
      headed: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    console.log(HELP);
    return;
  }
  const rows: ScaleRow[] = [];
  const progress = new ProgressLine();
  const hear = (event: ScaleEvent): string | undefined => {
    if (event.type === 'progress') progress.tell(event.text);
    else progress.rest();
    if (event.type === 'row') {
      rows.push(event.row);
      console.log(`  ${event.row.phase}: ${event.row.seconds.toFixed(2)} s ${JSON.stringify(event.row.more)}`);
    }
    return event.type === 'ended' ? (event.error ?? '') : undefined;
  };
  const cancel = (page: Page): void => {
    page.click('#cancel').catch(({ message }: Error) => console.error(`The run could not be cancelled: ${message}`));
  };
  const failed = await inBrowser({ headed: values.headed, cancel }, (page, origin) =>
    drive<ScaleEvent, string>(page, `${origin}/bench/scale.html?pairs=${values.pairs}`, hear),
  );
  const text = `${tableOf(Number(values.pairs), rows)}${failed === '' ? '' : `\n${failed}\n`}`;
  console.log(`\n${text}`);
  if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(rows, undefined, 2)}\n`);
  if (values.markdown !== undefined) writeFileSync(values.markdown, text);
  if (failed !== '') throw new Error(failed);
}

try {
  await main();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
