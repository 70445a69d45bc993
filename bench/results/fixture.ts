/** Made-up runs for the tests of the results page: a browser's and a server's, as `--json` writes them. */

import { rowOf } from '../core/fixture.ts';
import type { Row } from '../core/row.ts';
import { sqliteWasm } from '../peers/sqlite-wasm.ts';
import type { SavedRun } from '../targets/browser/browser-run.ts';
import type { ServerResult } from '../targets/command.ts';
import { type Results, resultsOf } from './results.ts';

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
  row('open', 'varve-sync', 'varve', 50),
  row('open', 'sqlite-wasm', 'peer', 60),
  row('open', 'indexeddb', 'peer', 50.2),
];

const provenance = {
  machine: { processor: 'Fictional 9000', cores: 4, memoryBytes: 2 ** 34, system: 'Linux 6.1.0', node: '22.1.0' },
  load: 2.5,
  source: { commit: 'abcdef0123', clean: true },
};

export const browserRun: SavedRun = {
  ...provenance,
  environment: {
    date: '2026-01-02T03:04:05.000Z',
    userAgent: 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36',
    cores: 4,
    timerStepMicroseconds: 5,
    crossOriginIsolated: true,
  },
  plan: { mode: 'full', suites: [], engines: [], accesses: [], rounds: 5, seed: 1, scale: 1, custom: {} },
  rows: browserRows,
  storage: [],
  notes: [],
  problems: [],
  sizes: { wasm: 100_000, client: 15_000, sync: 30_000 },
};

export const serverRun: ServerResult = {
  ...provenance,
  date: '2026-01-02T04:00:00.000Z',
  versions: { deno: '2.0.0' },
  problems: [],
  rows: [
    row('write-rand', 'varve-sync', 'varve', 90_000, { access: 'node' }),
    row('write-rand', 'leveldb', 'peer', 180_000, { access: 'node', engineVersion: '1.4.1' }),
  ],
};

export const results: Results = resultsOf(
  [
    { browser: [browserRun], server: [] },
    { browser: [], server: [serverRun] },
  ],
  [{ ...sqliteWasm, about: 'SQLite in wasm.', url: 'https://sqlite.org/wasm' }],
  [],
);
