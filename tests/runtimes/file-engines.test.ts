// The behaviour that every engine of the comparison on Node (bench/targets/fs) must share, on real files; Varve as it ships.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { Engine, Session } from '../../bench/core/engine.ts';
import type { Key } from '../../bench/core/generator.ts';
import { PEERS, varveEngines } from '../../bench/targets/fs/engines.ts';

const ENGINES: Readonly<Record<string, (directory: string) => Engine | undefined | Promise<Engine>>> = {
  'varve-sync': (directory) => varveEngines(directory)[0],
  varve: (directory) => varveEngines(directory)[1],
  ...PEERS,
};
const LEVELS = ['relaxed', 'strict'] as const;
const CASES = Object.keys(ENGINES).flatMap((name) => LEVELS.map((level) => [name, level] as const));

const bytes = (...values: number[]): Uint8Array => Uint8Array.of(...values);

async function range(session: Session, from: Key | undefined, limit: number): Promise<unknown[]> {
  const found: unknown[] = [];
  await session.range(from, limit, { take: (key, value) => void found.push([key, [...value]]) });
  return found;
}

test.each(CASES)(
  '%s, %s: written entries are read in order, also when the store is opened again',
  async (name, durability) => {
    const directory = mkdtempSync(join(tmpdir(), 'varve-engines-'));
    onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
    const engine = (await ENGINES[name]?.(directory)) as Engine;
    const options = { durability, valueBytes: 2 };
    const session = await engine.open('store', options);
    await session.set('b', bytes(2));
    await session.set('b', bytes(2, 2));
    await session.batch({ keys: ['d', 'a', 'c'], values: [bytes(4), bytes(1), bytes(3)] });
    await session.delete('d');
    await session.set('e', bytes(5));
    await session.deleteRange?.('d', 'f');
    if (session.kind === 'sync') session.commit();
    await session.settle('tables', 3);
    expect([...((await session.get('b')) ?? [])]).toEqual([2, 2]);
    expect(await session.get('d')).toBe(undefined);
    const right = [
      ['a', [1]],
      ['b', [2, 2]],
      ['c', [3]],
    ];
    expect(await range(session, 'b', 1)).toEqual(right.slice(1, 2));
    expect(await range(session, 'aa', 10)).toEqual(right.slice(1));
    await session.close();
    const again = await engine.open('store', options);
    expect(await range(again, undefined, 10)).toEqual(right);
    await again.close();
    expect((await engine.disk?.('store'))?.bytes).toBeGreaterThan(0);
    await engine.remove('store');
    expect((await engine.disk?.('store'))?.files).toBe(0);
  },
);
