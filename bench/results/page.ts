/**
 * docs/results.md: where Varve is slower first, then missed targets and a table for each suite, Varve beside the best peer.
 * The same in short for the README, and as data.
 *
 * Invariant: every figure comes from docs/results.json.gz, which has all rows; nothing is rounded in Varve's favour.
 */

import {
  bestPeers,
  type Comparison,
  comparisonsOf,
  countText,
  intervalText,
  ratioText,
  slowerOf,
} from '../core/comparison.ts';
import { bytes, duration, rate } from '../core/figures.ts';
import { caseName, casesOf, groupsBy, placeText, type Row, spreadOf } from '../core/row.ts';
import { filled, type Line, markdownOf, markdownTable, storageTable, type Table } from '../core/tables.ts';
import { TARGET_COLUMNS } from '../core/targets.ts';
import { CHART } from './chart.ts';
import { commitsOf, type PlanNote, type Results } from './results.ts';

/** Varve beside every peer that is like it. */
export function comparisonsIn({ rows }: Pick<Results, 'rows'>): Comparison[] {
  return comparisonsOf(casesOf(rows));
}

/** The whole page. */
export function pageText(results: Results): string {
  const comparisons = comparisonsIn(results);
  const unverified = results.rows
    .filter(({ verified }) => !verified)
    .map((row) => `${caseName(row)} ${row.engine}: not verified`);
  const problems = [...results.problems, ...unverified];
  const missed = results.targets.filter(({ reached }) => reached === false);
  const judged = results.targets.filter(({ reached }) => typeof reached === 'boolean').length;
  const slower = slowerOf(comparisons);
  return `${[
    '# Results',
    'Made by `npm run bench -- results`; do not edit it. All rows of all engines are in [results.json.gz](results.json.gz). ' +
      '[bench/README.md](../bench/README.md) says what is measured and how, [benchmarks.md](benchmarks.md) has native and older runs.',
    provenance(results),
    ...(problems.length === 0 ? [] : ['## Problems', problems.map((text) => `- ${text}`).join('\n')]),
    '## Where Varve is slower than a peer',
    `Varve is **${countText(comparisons)}**, with the whole 95% interval. The worst come first; [slower.md](slower.md) says why.`,
    ...(slower.length === 0 ? [] : [markdownTable(slowerTable(slower))]),
    `![Varve beside the fastest peer, in times its rate](results/${CHART})`,
    '## Targets that were missed',
    `${missed.length} of ${judged}.`,
    ...(missed.length === 0 ? [] : [markdownTable({ columns: TARGET_COLUMNS, lines: missed })]),
    '## Every suite',
    'Each row of Varve beside the quickest peer that is like it. "Varve is" is the geometric mean of the ratios of the rounds; rates are medians. ' +
      'Percentiles are of a call, of the mean of a group of calls too short for the timer, or of 100 calls in flight.',
    ...suiteTables(results.rows, comparisons).map(markdownOf),
    ...(results.storage.length === 0 ? [] : [markdownOf(storageTable(results.storage))]),
    '## What was compared',
    enginesText(results),
  ].join('\n\n')}\n`;
}

function slowerTable(slower: readonly Comparison[]): Pick<Table, 'columns' | 'lines'> {
  const lines = slower.map(({ varve, peer, ...ratio }): Line => {
    const rates = [rate(varve.opsPerSecond), peer.engine, rate(peer.opsPerSecond)];
    return { cells: [caseName(varve), varve.engine, ...rates, ratioText(ratio.ratio), intervalText(ratio)] };
  });
  return { columns: ['case', 'Varve', 'a second', 'peer', 'a second', 'Varve is', '95% interval'], lines };
}

const COLUMNS = [
  'part',
  'where',
  'Varve',
  'durability',
  'a second',
  'spread',
  'p50',
  'p99',
  'best peer',
  'a second',
  'p99',
  'Varve is',
  'note',
];

/** A table for each suite: a line for each row of Varve. */
function suiteTables(rows: readonly Row[], comparisons: readonly Comparison[]): Table[] {
  const best = new Map(bestPeers(comparisons).map((one) => [one.varve, one]));
  return groupsBy(rows, ({ suite }) => suite).map((group) => {
    const own = group.filter(({ role }) => role === 'varve');
    const lines = own.map((row): Line => {
      const beside = best.get(row);
      const peer = beside && [
        beside.peer.engine,
        rate(beside.peer.opsPerSecond),
        duration(beside.peer.p99),
        ratioText(beside.ratio),
      ];
      const a_second = `${rate(row.opsPerSecond)}${row.unit === 'ops' ? '' : ` ${row.unit}`}`;
      const spread = row.rounds.length < 2 ? '' : `${(spreadOf(row) * 100).toFixed(0)}%`;
      const note = [
        ...(row.verified ? [] : ['NOT VERIFIED']),
        ...(row.errors ? [`${row.errors} errors`] : []),
        ...(row.note ? [row.note] : []),
      ];
      const figures = [a_second, spread, duration(row.p50), duration(row.p99)];
      const head = [row.phase ?? '', placeText(row.access), row.engine, row.durability];
      return { cells: [...head, ...figures, ...(peer ?? ['', '', '', '']), note.join('; ')] };
    });
    return filled({ title: group[0]?.suite ?? '', columns: COLUMNS, lines });
  });
}

/** Machine, browser, date and commit, in a list. */
function provenance(results: Results): string {
  const { machine, load, browser, source, plans, versions, sizes } = results;
  const tree = source.clean ? '' : ', with changes that were not committed';
  const commits = [...commitsOf(results)].map(
    ([commit, suites]) => `\`${commit}\`${suites.length === 0 ? '' : ` (${suites.join(', ')})`}`,
  );
  const told = Object.entries(versions).map(([name, version]) => `; ${name} ${version}`);
  return [
    `- Machine: ${machine.processor}, ${machine.cores} cores, ${bytes(machine.memoryBytes)} of memory, ${machine.system}; load average ${load} at the end of a run, the run included`,
    `- Browser: ${browser}, headless, persistent profile; Node ${machine.node}${told.join('')}`,
    `- Date: ${daysOf(results)}. Commit: ${commits.join('; ')}${tree}`,
    `- Runs: ${plansText(plans)}`,
    `- Sizes after gzip: engine ${bytes(sizes.wasm)}, \`varve\` ${bytes(sizes.client)}, \`varve/synchronous\` ${bytes(sizes.sync)}`,
  ].join('\n');
}

function daysOf({ dates }: Results): string {
  return [...new Set(dates.map((date) => date.slice(0, 10)))].join(', ');
}

/** How it was measured; which suites, where not all were measured alike. */
function plansText(plans: readonly PlanNote[]): string {
  const textOf = ({ mode, rounds, seed, scale, custom }: PlanNote): string => {
    const round = custom.round_ms === undefined ? '' : ` of at most ${custom.round_ms} ms`;
    return `${mode}, ${rounds} interleaved rounds${round}, seed ${seed}${scale === 1 ? '' : `, scale ${scale}`}`;
  };
  const groups = groupsBy(plans, textOf).map((group) => {
    const suites = [...new Set(group.flatMap((plan) => plan.suites))];
    return { text: textOf(group[0] as PlanNote), suites: suites.join(', ') };
  });
  return groups.map(({ text, suites }) => (groups.length === 1 ? text : `${text} (${suites})`)).join('; ');
}

function enginesText({ engines }: Results): string {
  return engines
    .map(({ name, about, version, url }) => {
      const title = url === undefined ? `\`${name}\`` : `[\`${name}\`](${url})`;
      return `- ${title}${version === undefined ? '' : ` ${version}`}${about ? `: ${about}` : ''}`;
    })
    .join('\n');
}

/** The part of the README that has figures. */
export function readmeText(results: Results | undefined): string {
  if (results === undefined) {
    return 'No run is kept here yet: `npm run bench -- results` makes one, and writes its figures here.';
  }
  const { machine, browser } = results;
  const comparisons = comparisonsIn(results);
  const [worst] = slowerOf(comparisons);
  const gap =
    worst === undefined
      ? ''
      : ` The largest gap is ${caseName(worst.varve)} of \`${worst.varve.engine}\`:\n` +
        `${ratioText(worst.ratio)} the rate of ${worst.peer.engine}. See [all of them](docs/results.md) and [the reasons](docs/slower.md).`;
  const commits = [...commitsOf(results).keys()].map((commit) => `\`${commit}\``).join(' and ');
  return [
    `**Varve is ${countText(comparisons)}.**${gap}`,
    `![Varve beside the fastest peer, in times its rate](docs/results/${CHART})`,
    `${machine.processor}, ${machine.cores} cores, ${browser}, ${daysOf(results).slice(0, 10)}, commit ${commits}.\n` +
      'Same durability, every answer verified, medians of interleaved rounds.',
  ].join('\n\n');
}

/** The same as data: the count, and each row of Varve beside its best peer. */
export function summaryText(results: Results): string {
  const { dates, machine, browser, source } = results;
  const comparisons = comparisonsIn(results);
  const best = bestPeers(comparisons).map(({ varve, peer, ratio, low, high }) => {
    const four = (figure: number): number => Number(figure.toPrecision(4));
    const interval = Number.isFinite(high) ? { low: four(low), high: four(high) } : {};
    const figures = {
      perSecond: varve.opsPerSecond,
      peerPerSecond: peer.opsPerSecond,
      ratio: four(ratio),
      ...interval,
    };
    return { case: caseName(varve), varve: varve.engine, peer: peer.engine, ...figures };
  });
  const head = {
    dates,
    machine,
    browser,
    source,
    slower: slowerOf(comparisons).length,
    comparisons: comparisons.length,
  };
  const lines = best.map((line) => `    ${JSON.stringify(line)}`);
  return `${JSON.stringify(head, undefined, 2).slice(0, -2)},\n  "best": [\n${lines.join(',\n')}\n  ]\n}\n`;
}
