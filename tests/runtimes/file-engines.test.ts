// The behaviour that every engine of the comparison on Node (bench/fs) must share, on real files; Varve as it ships.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { FileEngine, FileStore, Pair } from '../../bench/targets/fs/engine.ts';
import { leveldb } from '../../bench/targets/fs/engines/leveldb.ts';
import { sqlite } from '../../bench/targets/fs/engines/sqlite.ts';
import { varve } from '../../bench/targets/fs/engines/varve.ts';
import { varveSync } from '../../bench/targets/fs/engines/varve-sync.ts';

const ENGINES: Readonly<Record<string, () => FileEngine | Promise<FileEngine>>> = {
  'varve-sync': varveSync,
  varve,
  sqlite,
  leveldb,
};
const LEVELS = ['relaxed', 'strict'] as const;
const CASES = Object.keys(ENGINES).flatMap((name) => LEVELS.map((level) => [name, level] as const));

function place(): string {
  const folder = mkdtempSync(join(tmpdir(), 'varve-engines-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, 'store');
}

const bytes = (...values: number[]): Uint8Array => Uint8Array.of(...values);
const plain = (pairs: readonly Pair[]) => pairs.map(([key, value]) => [key, [...value]]);

async function all(store: FileStore): Promise<Pair[]> {
  const pairs: Pair[] = [];
  for await (const [key, value] of store.all()) pairs.push([key, value]);
  return pairs;
}

test.each(CASES)('%s, %s: what was written is read, in order, also when it is opened again', async (name, level) => {
  const engine = (await ENGINES[name]?.()) as FileEngine;
  const directory = place();
  const store = await engine.open(directory, level);
  await store.set('b', bytes(2));
  await store.set('b', bytes(2, 2));
  await store.batch([
    ['d', bytes(4)],
    ['a', bytes(1)],
    ['c', bytes(3)],
  ]);
  await store.delete('d');
  await store.settle();
  expect([...((await store.get('b')) ?? [])]).toEqual([2, 2]);
  expect(await store.get('d')).toBe(undefined);
  const right = [
    ['a', [1]],
    ['b', [2, 2]],
    ['c', [3]],
  ];
  expect(plain(await store.range('b', 1))).toEqual(right.slice(1, 2));
  expect(plain(await store.range('aa', 10))).toEqual(right.slice(1));
  await store.close();
  const again = await engine.open(directory, level);
  expect(plain(await all(again))).toEqual(right);
  await again.close();
});
