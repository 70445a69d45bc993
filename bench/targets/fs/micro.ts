/**
 * `npm run bench -- micro`: single operations of the wasm build through `varve/synchronous`, in memory, in Node.
 *
 * Invariant: a row is the median of its rounds, after one that warms up. The same rows run in a browser as the suite `micro`.
 */

import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { median } from '../../core/latency.ts';
import { BURST, ROWS, Subject } from '../../suites/micro/rows.ts';

const HELP = `npm run bench -- micro [options]

  --rounds N         rounds (default 5)
  --markdown FILE    writes the table that is printed`;

/** A round of a row lasts at least so long. */
const ROUND_MS = 200;

interface Figures {
  readonly ns: number;
  /** Of the processor, all threads of the process. */
  readonly cpu_ns: number;
  /** What JavaScript's heap grew by for each operation; undefined when a collection came between. */
  readonly bytes: number | undefined;
}

/** One round of a row. */
async function roundOf(subject: Subject): Promise<Figures> {
  let ops = 0;
  let ms = 0;
  let cpu_us = 0;
  const growths: number[] = [];
  while (ms < ROUND_MS) {
    const before = process.memoryUsage();
    const started = performance.now();
    const working = process.cpuUsage();
    await subject.burst();
    ms += performance.now() - started;
    const { user, system } = process.cpuUsage(working);
    cpu_us += user + system;
    const after = process.memoryUsage();
    const growth = after.heapUsed + after.arrayBuffers - before.heapUsed - before.arrayBuffers;
    if (growth >= 0) growths.push(growth / BURST);
    ops += BURST;
  }
  return {
    ns: (ms * 1e6) / ops,
    cpu_ns: (cpu_us * 1e3) / ops,
    bytes: growths.length > 0 ? median(growths) : undefined,
  };
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      rounds: { type: 'string', default: '5' },
      markdown: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    console.log(HELP);
    return;
  }
  const lines = [
    '| wasm in Node, varve/synchronous in memory | ns | of the processor | bytes of heap | published, ns |',
    '| --- | --: | --: | --: | --: |',
  ];
  for (const row of ROWS) {
    const subject = await Subject.make(row);
    // One that warms up.
    const all: Figures[] = [];
    for (let round = 0; round <= Number(values.rounds); round++) all.push(await roundOf(subject));
    const rounds = all.slice(1);
    const grown = rounds.map(({ bytes }) => bytes).filter((bytes) => bytes !== undefined);
    const ns = median(rounds.map((round) => round.ns));
    const cpu_ns = median(rounds.map((round) => round.cpu_ns));
    const heap = grown.length > 0 ? Math.round(median(grown)) : '-';
    lines.push(`| ${row.title} | ${Math.round(ns)} | ${Math.round(cpu_ns)} | ${heap} | ${row.published} |`);
    console.log(lines.at(-1));
    await subject.close();
  }
  const text = `${lines.join('\n')}\n`;
  console.log(`\n${text}`);
  if (values.markdown !== undefined) writeFileSync(values.markdown, text);
}

try {
  await main();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
