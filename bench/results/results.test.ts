import { expect, test } from 'vitest';
import { bestPeers, comparisonsOf, slowerOf } from '../core/comparison.ts';
import type { Row } from '../core/rows.ts';
import { chartsOf } from './charts.ts';
import { filesOf, problemsOf } from './files.ts';
import { browserRun, results, serverRun } from './fixture.ts';
import { pageText } from './page.ts';
import { parseResults, parseRuns, resultsOf, resultsText } from './results.ts';
import { groupsOf } from './row.ts';

const README = 'Before.\n\n<!-- results:begin -->\nold\n<!-- results:end -->\n\nAfter 7.\n';
const page = pageText(results, chartsOf(results));

test('the page says first where Varve is slower, the worst first, with intervals', () => {
  const headings = [...page.matchAll(/^## (.*)$/gm)].map(([, title]) => title);
  expect(headings.slice(0, 4)).toEqual([
    'Problems',
    'Where Varve is slower than a peer',
    'Targets that were missed',
    'Varve beside the best peer',
  ]);
  const section = page.slice(page.indexOf('## Where'), page.indexOf('## Targets'));
  expect(section).toContain('In 4 of 7 comparisons with a peer');
  const [sure = '', within = ''] = section.split('Within the scatter:');
  const rows = (text: string) => [...text.matchAll(/^\| (\S.*?) +\| varve-sync .*\| +([\d.]+x) \| +(\S[^|]*) \|$/gm)];
  expect(rows(sure).map(([, suite, ratio]) => [suite, ratio])).toEqual([
    ['delete (in the worker)', '0.25x'],
    ['write-rand, random writes (node)', '0.50x'],
    ['open (in the worker)', '0.83x'],
  ]);
  // 50.0 beside 50.2 is slower, and not rounded away, but the rounds lie farther apart.
  expect(rows(within).map(([, suite, ratio]) => [suite, ratio])).toEqual([['open (in the worker)', '0.996x']]);
  expect(section).toMatch(/ 0\.25x \| 0\.24x to 0\.26x \|/);
});

test('the page says how it was measured, and which suites how where they were not measured alike', () => {
  const runsIn = (text: string) => /^- Runs: (.*)$/m.exec(text)?.[1];
  expect(runsIn(page)).toBe('full, 5 interleaved rounds, seed 1');
  const small = { ...browserRun.plan, scale: 0.2, custom: { round_ms: 200 } };
  const rows = [{ ...(browserRun.rows[0] as Row), suite: 'scan' }];
  const both = resultsOf([{ browser: [browserRun, { ...browserRun, plan: small, rows }], server: [] }], [], []);
  expect(runsIn(pageText(both, chartsOf(both)))).toBe(
    'full, 5 interleaved rounds, seed 1 (write-rand, read-rand-mem, delete, open); full, 5 interleaved rounds of at most 200 ms, seed 1, scale 0.2 (scan)',
  );
});

test('like is compared with like, and what was not verified with nothing', () => {
  const pairs = comparisonsOf(groupsOf(results.rows)).map(({ varve, peer }) => [
    varve.suite,
    varve.engine,
    peer.engine,
  ]);
  expect(pairs).toContainEqual(['write-rand', 'varve-sync', 'sqlite-wasm-grouped']);
  expect(pairs).toContainEqual(['write-rand', 'varve-sync-each', 'sqlite-wasm']);
  expect(pairs).not.toContainEqual(['write-rand', 'varve-sync', 'sqlite-wasm']);
  expect(pairs.flat()).not.toContain('liar');
  expect(page).toContain('read-rand-mem (in the worker) liar: not verified');
});

test('the best peer is the one that leaves Varve the least', () => {
  const best = bestPeers(comparisonsOf(groupsOf(results.rows))).find(({ varve }) => varve.suite === 'open');
  expect(best?.peer.engine).toBe('sqlite-wasm');
  expect(slowerOf(comparisonsOf(groupsOf(results.rows))).map(({ ratio }) => Number(ratio.toFixed(2)))).toEqual([
    0.25, 0.5, 0.83, 1,
  ]);
});

test('where mean and medians disagree, Varve counts as slower', () => {
  const rows = results.rows.map((row) => {
    return row.suite === 'open' && row.role === 'varve'
      ? { ...row, opsPerSecond: 40, rounds: [40, 40, 40, 400, 400] }
      : row;
  });
  const [found] = slowerOf(comparisonsOf(groupsOf(rows))).filter(
    ({ varve, ratio }) => varve.suite === 'open' && ratio > 1,
  );
  expect(found?.peer.engine).toBe('sqlite-wasm');
  const section = pageText({ ...results, rows }, []).split('## Targets')[0] ?? '';
  expect(section.slice(section.indexOf('Within the scatter:'))).toContain('open (in the worker)');
});

test('the page tells machine, browser, date, commit and versions, and writes figures short', () => {
  expect(page).toContain('Fictional 9000, 4 cores, 16.0 GiB of memory, Linux 6.1.0; load average 2.5 at the end');
  expect(page).toContain('Chrome/140.0.0.0');
  expect(page).toContain('Date: 2026-01-02. Commit: `abcdef0123`\n');
  expect(page).toContain('[`sqlite-wasm`](https://sqlite.org/wasm) 3.99.0: SQLite in wasm.');
  expect(page).toContain('`leveldb` 1.4.1');
  expect(page).toContain('deno 2.0.0');
  expect(page).toMatch(/\| varve-sync +\| relaxed +\| +1\.50M \| +4\.0% \|/);
});

test('the data reads back as it was written, and gives the same page', () => {
  const again = parseResults(resultsText(results));
  expect(again).toEqual(results);
  expect(pageText(again, chartsOf(again))).toBe(page);
});

test('a chart has every engine with its figure, and no colour of one theme alone', () => {
  const charts = chartsOf(results);
  expect(charts.map(({ file }) => file)).toEqual([
    'headlines.svg',
    'overview.svg',
    'write-rand-in-the-worker.svg',
    'read-rand-mem-in-the-worker.svg',
  ]);
  const [headlines, overview, writes] = charts;
  expect(headlines?.svg).toContain('>5.00x: 1.50M/s, sqlite-wasm 300k/s</text>');
  expect(overview?.svg).toContain('class="slower"');
  for (const text of ['varve-sync-each', 'sqlite-wasm-grouped', '400k', 'prefers-color-scheme:dark']) {
    expect(writes?.svg).toContain(text);
  }
});

test('a life has a chart over its steps for each place, Node among them, and its targets are judged there', () => {
  const samples = [100, 60, 50].map((stepsPerSecond, i) => ({
    ...{ steps: (i + 1) * 10_000, at_ms: i, stepsPerSecond, p99: 5, disk: { files: 3, bytes: 5e6 } },
  }));
  const life = { planned: 30, samples, livingBytes: 2e5 };
  const lived = { ...(browserRun.rows[0] as Row), suite: 'queue', life, note: '30 of 30 steps' };
  const peer = { ...lived, engine: 'sqlite-wasm', role: 'peer' } as const;
  const [onNode] = serverRun.rows as [(typeof serverRun.rows)[number]];
  const browser = { ...browserRun, rows: [lived, peer] };
  const server = { ...serverRun, rows: [{ ...onNode, suite: 'queue', work: 'a queue', life, note: '30 of 30 steps' }] };
  const both = resultsOf([{ browser: [browser], server: [server] }], [], []);
  const charts = chartsOf(both).filter(({ file }) => file.endsWith('-life.svg'));
  expect(charts.map(({ file }) => file)).toEqual(['queue-in-the-worker-life.svg', 'queue-node-life.svg']);
  const [worker] = charts;
  expect([...(worker?.svg.matchAll(/<polyline class="(\w+)"/g) ?? [])].map(([, role]) => role)).toEqual(
    // Rate, p99 and disk: nobody tells what is in memory.
    ['varve', 'peer', 'varve', 'peer', 'varve', 'peer'],
  );
  expect(worker?.svg).toContain('>sqlite-wasm</text>');
  expect(worker?.svg).not.toContain('in memory');
  const text = pageText(both, charts);
  expect(text).toMatch(
    /\| queue: slowest window, of the first: worst, varve-sync \(node\) +\|.* 0\.50x .* at least 0\.70x \| +no \|/,
  );
  expect(text).toContain('30 of 30 steps');
  expect(parseResults(resultsText(both))).toEqual(both);
});

test('the README gets its figures between the markers, and nothing else is touched', () => {
  const readme = filesOf(results, () => README).get('README.md') ?? '';
  expect(readme.startsWith('Before.\n\n<!-- results:begin -->\n**Varve is slower in 3 of 7 comparisons')).toBe(true);
  expect(readme.endsWith('<!-- results:end -->\n\nAfter 7.\n')).toBe(true);
  expect(readme).toContain('(docs/results/headlines.svg)');
  expect(() => filesOf(results, () => 'no markers')).toThrow('README.md has no <!-- results:begin -->');
});

test('the check finds a figure that was edited, and a file that no run gives', () => {
  const files = filesOf(results, () => README);
  const read = (path: string) => files.get(path);
  const charts = chartsOf(results).map(({ file }) => file);
  expect(problemsOf(read, charts)).toEqual([]);
  for (const path of ['docs/results.md', 'README.md']) {
    const edited = (name: string) => (name === path ? read(name)?.replace('0.25x', '1.25x') : read(name));
    expect(problemsOf(edited, charts)).toEqual([`${path} is not what docs/results.json gives.`]);
  }
  expect(problemsOf((path) => (path.endsWith('old.svg') ? '<svg/>' : read(path)), [...charts, 'old.svg'])).toEqual([
    'docs/results/old.svg belongs to no run: docs/results.json does not give it.',
  ]);
});

test('without a run the README says so, and a page that was left behind is told', () => {
  const empty = filesOf(undefined, () => README).get('README.md');
  const read = (path: string) => (path === 'README.md' ? empty : undefined);
  expect(problemsOf(read, [])).toEqual([]);
  expect(problemsOf((path) => (path === 'docs/results.md' ? 'old' : read(path)), [])).toHaveLength(1);
});

test('suites that were measured at different commits are named with theirs', () => {
  const [first] = browserRun.rows;
  const later: typeof browserRun = {
    ...browserRun,
    rows: [{ ...(first as (typeof browserRun.rows)[number]), suite: 'multi-tab' }],
    failovers: [
      {
        engine: 'varve',
        cause: 'close',
        place: 'tab',
        tabs: 3,
        hasLeader: true,
        pauses_ms: [7, 9],
        fromCommand_ms: [20, 30],
      },
    ],
    source: { commit: 'fedcba9876', clean: true },
  };
  const joined = resultsOf([{ browser: [browserRun, later], server: [] }], [], []);
  const text = pageText(joined, []);
  const suites = [...new Set(browserRun.rows.map(({ suite }) => suite))].join(', ');
  expect(text).toContain(`Commit: \`abcdef0123\` (${suites}); \`fedcba9876\` (multi-tab)\n`);
  expect(text).toMatch(
    /### multi-tab: the leader is gone, 2 others write\n\n.*\n.*\n\| varve +\| its tab is closed +\| +1 \| +8\.0/,
  );
  expect(filesOf(joined, () => README).get('README.md')).toContain('commit `abcdef0123` and `fedcba9876`.');
});

test('runs that do not belong together are refused, and files that are none', () => {
  const other = { ...browserRun, machine: { ...browserRun.machine, cores: 8 } };
  const gather = (...browser: (typeof browserRun)[]) => resultsOf([{ browser, server: [] }], [], []);
  expect(() => gather(browserRun, other)).toThrow('different machines');
  expect(() => gather(browserRun, { ...browserRun, source: { commit: 'other', clean: true } })).toThrow(
    'write-rand was measured at different commits',
  );
  expect(() => gather()).toThrow('needs a run of the browser');
  expect(() => parseRuns('x.json', '{}')).toThrow('x.json is no result of the benchmark');
  expect(parseRuns('x.json', JSON.stringify(serverRun)).server).toHaveLength(1);
  expect(parseRuns('x.json', JSON.stringify([browserRun, browserRun])).browser).toHaveLength(2);
});
