/**
 * `npm run bench -- cloudflare`: rows billed, and time, of sets in a Durable Object on the workerd of miniflare.
 *
 * Invariant: every way has an object of its own in a folder on the disk. Rows of Varve are what its statements wrote until no
 * flush or compaction was due; an alarm, one row for each flush or so, is not in them.
 */

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'esbuild';
import { Miniflare } from 'miniflare';
import type { Load } from './object.ts';

const dist = join(process.cwd(), 'dist');

/** The load whose keys are read afterwards. */
const READ_LOAD: Load = { count: 100_000, perTurn: 100, isBatch: false, valueBytes: 100 };
/** The loads, by what they are called in the table. */
const LOADS: [string, Load][] = [
  ['1 set a turn', { count: 10_000, perTurn: 1, isBatch: false, valueBytes: 100 }],
  ['100 sets a turn', READ_LOAD],
  ['a batch of 100 a turn', { count: 100_000, perTurn: 100, isBatch: true, valueBytes: 100 }],
  ['100 sets a turn, 20 B values', { count: 100_000, perTurn: 100, isBatch: false, valueBytes: 20 }],
];
const GETS = 20_000;

async function bundled(): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [join(process.cwd(), 'bench', 'targets', 'durable-object', 'object.ts')],
    bundle: true,
    write: false,
    format: 'esm',
    conditions: ['workerd'],
    external: ['cloudflare:*', '*.wasm'],
    alias: { 'varve/cloudflare': join(dist, 'cloudflare.js') },
    logLevel: 'error',
  });
  return outputFiles[0]?.text ?? '';
}

/** A running workerd. */
class Bench {
  readonly #miniflare: Miniflare;

  constructor(script: string, folder: string) {
    this.#miniflare = new Miniflare({
      modules: [
        { type: 'ESModule', path: 'worker.js', contents: script },
        { type: 'CompiledWasm', path: 'varve.wasm', contents: readFileSync(join(dist, 'varve.wasm')) },
      ],
      compatibilityDate: '2026-04-01',
      durableObjects: {
        STORES: { className: 'StoreObject', useSQLite: true },
        PLAIN: { className: 'PlainObject', useSQLite: true },
      },
      durableObjectsPersist: folder,
    });
  }

  /** Calls a method of an object; gives its result and the milliseconds it took. */
  async call(binding: 'STORES' | 'PLAIN', object: string, method: string, ...args: unknown[]) {
    const begin = performance.now();
    const body = JSON.stringify(args);
    const path = `http://bench/${binding}/${object}/${method}`;
    const response = await this.#miniflare.dispatchFetch(path, { method: 'POST', body });
    const { result, error } = (await response.json()) as { result?: unknown; error?: string };
    if (error !== undefined) throw new Error(`${method} of ${object}: ${error}`);
    return { result: result as number, ms: performance.now() - begin };
  }

  async settled(object: string): Promise<void> {
    while (!(await this.call('STORES', object, 'isIdle')).result)
      await new Promise((resolve) => setTimeout(resolve, 50));
  }

  stop(): Promise<void> {
    return this.#miniflare.dispose();
  }
}

function line(cells: (string | number)[]): void {
  const shown = cells.map((cell) => (typeof cell === 'number' ? cell.toLocaleString('en-US') : cell));
  console.log(`| ${shown.join(' | ')} |`);
}

function perThousand(rows: number, count: number): number {
  return Math.round((rows / count) * 10_000) / 10;
}

async function sets(bench: Bench): Promise<void> {
  line(['rows written per 1,000 sets', 'Varve', 'of these while loading', 'put of key-value', 'INSERT without rowid']);
  line(['---', '---:', '---:', '---:', '---:']);
  for (const [index, [name, load]] of LOADS.entries()) {
    const object = `sets-${index}`;
    const before = (await bench.call('STORES', object, 'rows')).result;
    const loaded = await bench.call('STORES', object, 'load', load);
    await bench.settled(object);
    const rows = (await bench.call('STORES', object, 'rows')).result - before;
    const keyValues = await bench.call('PLAIN', `kv-${index}`, 'loadKeyValues', load);
    const inserts = await bench.call('PLAIN', `rows-${index}`, 'loadRows', load);
    const cells = [rows, loaded.result, keyValues.result, inserts.result].map((n) => perThousand(n, load.count));
    line([name, ...cells]);
    const us = [loaded.ms, keyValues.ms, inserts.ms].map((ms) => Math.round((ms / load.count) * 1000));
    line([`${name}: us a set`, us[0] ?? 0, '', us[1] ?? 0, us[2] ?? 0]);
  }
}

async function reads(bench: Bench): Promise<void> {
  const { count } = READ_LOAD;
  const varve = await bench.call('STORES', 'sets-1', 'read', count, GETS);
  const keyValues = await bench.call('PLAIN', 'kv-1', 'readKeyValues', count, GETS);
  const rows = await bench.call('PLAIN', 'rows-1', 'readRows', count, GETS);
  const us = (ms: number) => Math.round((ms / GETS) * 10_000) / 10;
  console.log('');
  line(['us', 'Varve', 'key-value', 'SELECT']);
  line(['---', '---:', '---:', '---:']);
  line([`get, of ${count.toLocaleString('en-US')} keys`, us(varve.ms), us(keyValues.ms), us(rows.ms)]);
  const scan = await bench.call('STORES', 'sets-1', 'scan');
  line(['scan, an entry', Math.round((scan.ms / count) * 10_000) / 10, '', '']);
  const bytes = await Promise.all([
    bench.call('STORES', 'sets-1', 'bytes'),
    bench.call('PLAIN', 'kv-1', 'bytes'),
    bench.call('PLAIN', 'rows-1', 'bytes'),
  ]);
  line(['database, MB', ...bytes.map(({ result }) => Math.round(result / 1e5) / 10)]);
}

async function wakes(bench: Bench): Promise<void> {
  await bench.call('STORES', 'sets-1', 'end');
  const { result: rows, ms } = await bench.call('STORES', 'sets-1', 'rows');
  console.log(`\nA construction of the object with that store: ${rows} rows written, ${Math.round(ms)} ms.`);
}

const folder = mkdtempSync(join(tmpdir(), 'varve-bench-'));
const bench = new Bench(await bundled(), folder);
try {
  await sets(bench);
  await reads(bench);
  await wakes(bench);
} finally {
  await bench.stop();
  rmSync(folder, { recursive: true, force: true });
}
