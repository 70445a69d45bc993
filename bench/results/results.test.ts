import { expect, test } from 'vitest';
import { ENVIRONMENT, planOf, rowOf } from '../core/fixture.ts';
import type { Row } from '../core/row.ts';
import { sqliteWasm } from '../peers/sqlite-wasm.ts';
import type { SavedRun } from '../targets/browser/browser-run.ts';
import type { ServerResult } from '../targets/command.ts';
import { pageFiles, problemsOf, readmeWith } from './files.ts';
import { comparisonsIn, headlinesOf, pageText, publishedOf } from './page.ts';
import { parseResults, parseRuns, resultsOf, resultsText } from './results.ts';

/** Rates of rounds that scatter a little; another shift gives another order. */
function about(rate: number, shift = 0): number[] {
  const shares = [1, 1.02, 0.98, 1.01, 0.99];
  return shares.map((_, round) => rate * (shares[(round + shift) % shares.length] as number));
}

const row = (suite: string, engine: string, role: Row['role'], rate: number, more: Partial<Row> = {}): Row => {
  return rowOf({ suite, engine, role, rounds: about(rate, role === 'varve' ? 0 : 2), ...more });
};

/** Varve ahead in reads, behind in opening, and far behind in deletes; one peer gave a wrong answer. */
const browserRows: readonly Row[] = [
  row('write-rand', 'varve-sync', 'varve', 400_000),
  row('write-rand', 'varve-sync-each', 'varve', 50_000),
  row('write-rand', 'sqlite-wasm', 'peer', 20_000, { engineVersion: '3.99.0' }),
  row('write-rand', 'sqlite-wasm-grouped', 'peer', 200_000),
  row('write-rand', 'opfs-append', 'floor', 60_000),
  row('read-rand-mem', 'varve-sync', 'varve', 1_500_000),
  row('read-rand-mem', 'sqlite-wasm', 'peer', 300_000),
  row('read-rand-mem', 'liar', 'peer', 9_000_000, { verified: false }),
  row('delete', 'varve-sync', 'varve', 10_000),
  row('delete', 'sqlite-wasm', 'peer', 40_000),
  row('open-cold', 'varve', 'varve', 50, { access: 'page' }),
  row('open-cold', 'sqlite-wasm', 'peer', 60, { access: 'page' }),
  row('open-cold', 'indexeddb', 'peer', 50.2, { access: 'page' }),
];

const provenance = {
  machine: { processor: 'Fictional 9000', cores: 4, memoryBytes: 2 ** 34, system: 'Linux 6.1.0', node: '22.1.0' },
  load: 2.5,
  source: { commit: 'abcdef0123', clean: true },
};

const browserRun: SavedRun = {
  ...provenance,
  environment: ENVIRONMENT,
  plan: planOf([], { mode: 'full', rounds: 5, custom: {} }),
  rows: browserRows,
  storage: [],
  notes: [],
  problems: [],
  sizes: { wasm: 100_000, client: 15_000, sync: 30_000 },
};

const serverRun: ServerResult = {
  ...provenance,
  date: '2026-01-02T04:00:00.000Z',
  versions: { deno: '2.0.0' },
  problems: [],
  rows: [
    row('write-rand', 'varve-sync', 'varve', 90_000, { access: 'node' }),
    row('write-rand', 'leveldb', 'peer', 180_000, { access: 'node', engineVersion: '1.4.1' }),
  ],
};

const results = resultsOf(
  [
    { browser: [browserRun], server: [] },
    { browser: [], server: [serverRun] },
  ],
  [{ ...sqliteWasm, about: 'SQLite in wasm.', url: 'https://sqlite.org/wasm' }],
);

const README = 'Before.\n\n<!-- results:begin -->\nold\n<!-- results:end -->\n\nAfter 7.\n';
const page = pageText(results);
const comparisons = comparisonsIn(results);

test('an unverified row is a problem of the page', () => {
  expect(page).toContain('- read-rand-mem (in the worker) liar: not verified');
});

test('the slower rows come first, the worst above', () => {
  expect(page).toContain('Varve is **slower in 3 of 7 comparisons with a peer**');
  expect(page.indexOf('0.25x')).toBeLessThan(page.indexOf('0.50x'));
});

test('the page names machine, browser, date, commit, runs and versions, and shortens figures', () => {
  expect(page).toContain('- Machine: Fictional 9000, 4 cores, 16.0 GiB of memory, Linux 6.1.0\n');
  expect(page).toContain('Chromium 140');
  const suites = 'write-rand, read-rand-mem, delete, open-cold';
  const run = ['2026-01-02', '`abcdef0123`', '2.5', 'full, 5 interleaved rounds, seed 1', suites];
  expect(page.replaceAll(/ +/g, ' ')).toContain(`| ${run.join(' | ')} |`);
  expect(page).toContain('- `sqlite-wasm` 3.99.0: SQLite in wasm. <https://sqlite.org/wasm>');
  expect(page).toContain('`leveldb` 1.4.1');
  expect(page).toContain('deno 2.0.0');
  expect(page).toMatch(
    /\| varve-sync +\| in the worker \| relaxed +\| +1\.50M \|.*\| sqlite-wasm +\| +300k \| +5\.00x \|/,
  );
});

test('the data reads back as it was written, and gives the same page', () => {
  const again = parseResults(resultsText(results));
  expect(again).toEqual(results);
  expect(pageText(again)).toBe(page);
});

test('the chart has every bar with its figures, and no colour of one theme alone', () => {
  const chart = headlinesOf(comparisons);
  expect(chart).toContain('>5.00x: 1.50M/s, sqlite-wasm 300k/s</text>');
  for (const text of ['class="slower"', 'in a worker: write a value', 'prefers-color-scheme:dark'])
    expect(chart).toContain(text);
});

test('the page of the benchmark shows everyday tasks, in words, and where Varve is slower', () => {
  const { groups, count, slowest, where } = publishedOf(results);
  expect(
    groups.map(({ name, bars }) => [name, ...bars.map(({ text, look }) => `${look ?? 'faster'}: ${text}`)]),
  ).toEqual([
    ['Open a store and read one value', 'slower: 1.20x slower than SQLite', 'unclear: 0.996x IndexedDB, within noise'],
    ['In a worker: read a value', 'faster: 5.00x as fast as SQLite'],
    ['In a worker: write a value', 'faster: 2.50x as fast as SQLite'],
  ]);
  expect(count).toBe('slower in 3 of 7 comparisons with a peer');
  const cases = slowest.lines.map(({ cells }) => cells[0]).join();
  expect(cases).toBe('delete (in the worker),write-rand (node),open-cold (from the page, awaited)');
  expect(where).toContain('4 cores, Chromium 140, 2026-01-02.');
});

test('the README gets its figures between the markers, and nothing else is touched', () => {
  const readme = readmeWith(README, results);
  expect(readme.startsWith('Before.\n\n<!-- results:begin -->\n**Varve is slower in 3 of 7 comparisons')).toBe(true);
  expect(readme.endsWith('<!-- results:end -->\n\nAfter 7.\n')).toBe(true);
  expect(readme).toContain('(docs/results/headlines.svg)');
  expect(() => readmeWith('no markers', results)).toThrow('README.md has no <!-- results:begin -->');
});

test('the check finds a figure that was edited', () => {
  const files = pageFiles(results).set('README.md', readmeWith(README, results));
  const read = (path: string) => files.get(path) as string;
  expect(problemsOf(results, read)).toEqual([]);
  for (const path of ['docs/results.md', 'README.md']) {
    const edited = (name: string) => (name === path ? read(name).replace('0.25x', '1.25x') : read(name));
    expect(problemsOf(results, edited)).toEqual([`${path} is not what docs/results.json.gz gives.`]);
  }
});

test('a later run replaces the rows of its suites in their place, and all others are kept', () => {
  const [first] = browserRun.rows as [Row];
  const plan = { ...browserRun.plan, scale: 0.2, custom: { round_ms: 200 } };
  const source = { commit: 'later', clean: true };
  const rows = [{ ...first, suite: 'multi-tab' }, Object.assign({}, first, { opsPerSecond: 1 })];
  const later = { ...browserRun, plan, source, rows };
  const both = resultsOf([{ browser: [later], server: [] }], [], results);
  const rates = both.rows.filter(({ suite, access }) => suite === 'write-rand' && access === 'worker');
  expect(rates.map(({ opsPerSecond }) => opsPerSecond)).toEqual([1]);
  expect(both.rows).toHaveLength(results.rows.length - 5 + 2);
  const cells = pageText(both).replaceAll(/ +/g, ' ');
  expect(cells).toContain(
    '| `abcdef0123` | 2.5 | full, 5 interleaved rounds, seed 1 | read-rand-mem, delete, open-cold |',
  );
  const how = 'full, 5 interleaved rounds of at most 200 ms, seed 1, scale 0.2';
  expect(cells).toContain(`| \`later\` | 2.5 | ${how} | multi-tab, write-rand |`);
  expect(resultsOf([{ browser: [{ ...browserRun, source }], server: [] }], [], results).runs).toHaveLength(2);
});

test('runs that do not belong together are refused, and files that are none', () => {
  const other = { ...browserRun, machine: { ...browserRun.machine, cores: 8 } };
  const gather = (...browser: (typeof browserRun)[]) => resultsOf([{ browser, server: [] }], []);
  expect(() => gather(browserRun, other)).toThrow('different machines');
  expect(() => gather()).toThrow('needs a run of the browser');
  expect(() => parseRuns('x.json', '{}')).toThrow('x.json is no result of the benchmark');
  expect(parseRuns('x.json', JSON.stringify(serverRun)).server).toHaveLength(1);
  expect(parseRuns('x.json', JSON.stringify([browserRun, browserRun])).browser).toHaveLength(2);
});
