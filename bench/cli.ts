/**
 * `npm run bench`: serves the benchmark page, opens it in Chromium with a persistent profile, prints what it reports.
 *
 * The exit code is 0 when everything ran and was verified; a target that was missed is no failure.
 */

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { gzipSync } from 'node:zlib';
import { bytes, rate } from './figures.ts';
import { OPTIONS } from './options.ts';
import type { PageEvent } from './page.ts';
import type { Result } from './report.ts';
import { drive, inBrowser, SITE } from './session.ts';
import { offerTabs } from './tabs/browser.ts';
import { failoverLine } from './tabs/report.ts';
import { CHOICES } from './workloads.ts';

/** Flags that are made of the options alone; the others have names of their own here. */
const PLAIN = OPTIONS.filter(({ kind, name }) => kind !== 'list' && name !== 'mode');

const HELP = `npm run bench -- [options]

  --quick            the quick suites with fewer calls, a minute or two (default: everything, some twenty minutes)
  --suite NAME       only this suite; may be given several times
                     (${CHOICES.map(({ name }) => name).join(' ')})
  --access LIST      only these ways in: worker, page, inflight
  --peers LIST       only these peers and floors beside Varve; "none" for Varve alone
${optionLines()}
  --json FILE        writes the result as JSON
  --markdown FILE    writes the tables that are printed
  --headed           shows the browser`;

function optionLines(): string {
  return PLAIN.map(({ name, about, choices }) => {
    const values = choices === undefined ? '' : ` (${choices.join(', ')})`;
    return `  --${name.padEnd(16)} ${about}${values}`;
  }).join('\n');
}

const VARVE = ['varve-sync', 'varve-sync-each', 'varve', 'varve-indexeddb', 'varve-here-indexeddb'];

/** Sizes after gzip, in bytes, of what a page loads. */
function packageSizes(): { wasm: number; client: number; sync: number } {
  const size = (file: string): number => gzipSync(readFileSync(join(SITE, 'varve', file)), { level: 9 }).length;
  return { wasm: size('varve.wasm'), client: size('index.js'), sync: size('sync.js') };
}

interface Choice {
  quick: boolean;
  suite: string[] | undefined;
  access: string | undefined;
  peers: string | undefined;
  /** Values of the plain flags that were given. */
  plain: Readonly<Record<string, string>>;
}

/** The address of the page with the choice in it. */
function addressOf(origin: string, choice: Choice): string {
  const params = new URLSearchParams({ auto: '' });
  params.set('mode', choice.quick ? 'quick' : 'full');
  if (choice.suite !== undefined) params.set('suites', choice.suite.join(','));
  if (choice.access !== undefined) params.set('access', choice.access);
  if (choice.peers !== undefined) params.set('engines', [...VARVE, ...choice.peers.split(',')].join(','));
  for (const [name, value] of Object.entries(choice.plain)) params.set(name, value);
  return `${origin}/bench/?${params}`;
}

/** What a run ends with. */
interface Outcome {
  readonly result: Result;
  readonly markdown: string;
}

/** Prints what the page tells; answers with its result. */
function hear(event: PageEvent): Outcome | undefined {
  if (event.type === 'row') {
    const { row } = event;
    const share = row.verified ? '' : '  NOT VERIFIED';
    const { tabs } = row;
    const who = tabs === undefined ? '' : `, ${tabs.count} tabs, ${tabs.role} ${tabs.call}`;
    const name = `${row.suite} (${row.access}${who}) ${row.engine}`;
    console.log(
      `  ${name.padEnd(tabs === undefined ? 46 : 60)} ${rate(row.opsPerSecond).padStart(7)} ${row.unit}/s${share}`,
    );
  }
  if (event.type === 'failover') console.log(`  ${failoverLine(event.failover)}`);
  if (event.type === 'problem') console.log(`  ! ${event.text}`);
  if (event.type === 'progress' && process.stdout.isTTY) {
    process.stdout.write(`\r\u001b[K${event.done}/${event.total} ${event.text}\r`);
  }
  return event.type === 'ended' ? event : undefined;
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      quick: { type: 'boolean', default: false },
      suite: { type: 'string', multiple: true },
      access: { type: 'string' },
      peers: { type: 'string' },
      ...Object.fromEntries(PLAIN.map(({ name }) => [name, { type: 'string' as const }])),
      json: { type: 'string' },
      markdown: { type: 'string' },
      headed: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    console.log(HELP);
    return 0;
  }
  const unknown = values.suite?.find((name) => CHOICES.every((suite) => suite.name !== name));
  if (unknown !== undefined) throw new Error(`There is no suite ${unknown}.\n\n${HELP}`);
  const { result, markdown } = await inBrowser(values.headed, async (page, origin) => {
    await offerTabs(page);
    const { quick, suite, access, peers } = values;
    const given: Readonly<Record<string, unknown>> = values;
    const plain = Object.fromEntries(
      PLAIN.flatMap(({ name }) => (given[name] === undefined ? [] : [[name, String(given[name])]])),
    );
    const address = addressOf(origin, { quick, suite, access, peers, plain });
    return drive<PageEvent, Outcome>(page, address, hear);
  });
  const sizes = packageSizes();
  const text = `${markdown}\n## Size after gzip\n\n- varve.wasm: ${bytes(sizes.wasm)}, wanted 100 KiB\n- varve: ${bytes(sizes.client)}, wanted 20 KiB\n- varve/sync: ${bytes(sizes.sync)}\n`;
  console.log(`\n${text}`);
  if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify({ ...result, sizes }, undefined, 2)}\n`);
  if (values.markdown !== undefined) writeFileSync(values.markdown, text);
  return verdict(result);
}

function verdict({ rows, problems }: Result): number {
  const unverified = rows.filter(({ verified }) => !verified);
  if (rows.length > 0 && unverified.length === 0 && problems.length === 0) return 0;
  console.error(`${rows.length} rows, ${unverified.length} not verified, ${problems.length} problems.`);
  return 1;
}

try {
  process.exitCode = await main();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
