/**
 * `npm run bench -- cloudflare`: rows billed, and time, of sets in a Durable Object on the workerd of miniflare.
 *
 * Invariant: every way has an object of its own in a folder on the disk. Rows of Varve are those that its statements wrote until
 * no flush or compaction was due; an alarm, one row for each flush or so, is not in them.
 */

import { tmpdir } from 'node:os';
import { Miniflare } from 'miniflare';
import { command, inFolder } from '../command.ts';
import { bundledWorker, workerOptions } from '../workerd.ts';
import type { Load } from './object.ts';

/** The load whose keys are read afterwards. */
const READ_LOAD: Load = { count: 100_000, perTurn: 100, isBatch: false, valueBytes: 100 };
/** The loads, by their titles in the table. */
const LOADS: Readonly<Record<string, Load>> = {
  '1 set a turn': { count: 10_000, perTurn: 1, isBatch: false, valueBytes: 100 },
  '100 sets a turn': READ_LOAD,
  'a batch of 100 a turn': { ...READ_LOAD, isBatch: true },
  '100 sets a turn, 20 B values': { ...READ_LOAD, valueBytes: 20 },
};
const GETS = 20_000;

/** Calls a method of an object; resolves with its result and the milliseconds it took. */
type Call = (
  binding: 'STORES' | 'PLAIN',
  object: string,
  method: string,
  ...args: unknown[]
) => Promise<{ result: number; ms: number }>;

function callerOf(miniflare: Miniflare): Call {
  return async (binding, object, method, ...args) => {
    const begin = performance.now();
    const path = `http://bench/${binding}/${object}/${method}`;
    const response = await miniflare.dispatchFetch(path, { method: 'POST', body: JSON.stringify(args) });
    const { result, error } = (await response.json()) as { result: number; error?: string };
    if (error !== undefined) throw new Error(`${method} of ${object}: ${error}`);
    return { result, ms: performance.now() - begin };
  };
}

function printRow(...cells: (string | number)[]): void {
  console.log(`| ${cells.map((cell) => cell.toLocaleString('en-US')).join(' | ')} |`);
}

const tenths = (figure: number): number => Math.round(figure * 10) / 10;

async function sets(call: Call): Promise<void> {
  printRow(
    'rows written per 1,000 sets',
    'Varve',
    'of these while loading',
    'put of key-value',
    'INSERT without rowid',
  );
  printRow('---', '---:', '---:', '---:', '---:');
  for (const [index, [title, load]] of Object.entries(LOADS).entries()) {
    const object = `sets-${index}`;
    const before = (await call('STORES', object, 'rows')).result;
    const loaded = await call('STORES', object, 'load', load);
    while (!(await call('STORES', object, 'isIdle')).result) await new Promise((resolve) => setTimeout(resolve, 50));
    const rows = (await call('STORES', object, 'rows')).result - before;
    const keyValues = await call('PLAIN', `kv-${index}`, 'loadKeyValues', load);
    const inserts = await call('PLAIN', `rows-${index}`, 'loadRows', load);
    const written = [rows, loaded.result, keyValues.result, inserts.result];
    printRow(title, ...written.map((count) => tenths((count * 1000) / load.count)));
    const us = ({ ms }: { ms: number }): number => Math.round((ms / load.count) * 1000);
    printRow(`${title}: us a set`, us(loaded), '', us(keyValues), us(inserts));
  }
}

async function reads(call: Call): Promise<void> {
  const { count } = READ_LOAD;
  const us = ({ ms }: { ms: number }, operations: number): number => tenths((ms * 1000) / operations);
  const varve = await call('STORES', 'sets-1', 'read', count, GETS);
  const keyValues = await call('PLAIN', 'kv-1', 'readKeyValues', count, GETS);
  const rows = await call('PLAIN', 'rows-1', 'readRows', count, GETS);
  console.log('');
  printRow('us', 'Varve', 'key-value', 'SELECT');
  printRow('---', '---:', '---:', '---:');
  printRow(`get, of ${count.toLocaleString('en-US')} keys`, ...[varve, keyValues, rows].map((one) => us(one, GETS)));
  printRow('scan, an entry', us(await call('STORES', 'sets-1', 'scan'), count), '', '');
  const bytes = await Promise.all([
    call('STORES', 'sets-1', 'bytes'),
    call('PLAIN', 'kv-1', 'bytes'),
    call('PLAIN', 'rows-1', 'bytes'),
  ]);
  printRow('database, MB', ...bytes.map(({ result }) => tenths(result / 1e6)));
}

async function wakes(call: Call): Promise<void> {
  // The object ends before it can answer.
  await call('STORES', 'sets-1', 'end').catch(() => undefined);
  const { result: rows, ms } = await call('STORES', 'sets-1', 'rows');
  console.log(`\nA construction of the object with that store: ${rows} rows written, ${Math.round(ms)} ms.`);
}

await command(() =>
  inFolder(tmpdir(), async (folder) => {
    const script = await bundledWorker('durable-object', 'object.ts');
    const miniflare = new Miniflare(workerOptions(script, { STORES: 'StoreObject', PLAIN: 'PlainObject' }, folder));
    try {
      for (const part of [sets, reads, wakes]) await part(callerOf(miniflare));
    } finally {
      await miniflare.dispose();
    }
  }),
);
