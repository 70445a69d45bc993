/**
 * Input that is too large is refused, before it reaches the engine where this can be known, and the store continues: values, batches,
 * answers. The same is true where the engine gets no more memory, for any request.
 */

import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { files } from '../../js/src/fs.ts';
import { open as openInline } from '../../js/src/inline.ts';
import { open as openSync } from '../../js/src/synchronous.ts';
import { wasm } from './support/engine.ts';
import { limitedEngine } from './support/limited-wasm.ts';

vi.setConfig({ testTimeout: 60_000 });

const MIB = 2 ** 20;
const VALUE_BYTES_MAX = 128 * MIB;

const tooLong = { code: 'VARVE_INVALID_VALUE', message: expect.stringContaining('128 MiB') };
const tooMany = { code: 'VARVE_INVALID_ARGUMENT', message: expect.stringContaining('256 MiB') };
const noMemory = { code: 'VARVE_INVALID_ARGUMENT', message: expect.stringContaining('no memory') };

let directory: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'varve-large-'));
});

afterAll(() => rm(directory, { recursive: true }));

/** The same calls on each kind of store: a synchronous one throws, which is a rejection here. */
const kinds = {
  'inline, in memory': () => openInline('large', { wasm, storage: 'memory' }),
  'inline, in files': () => openInline('inline', { wasm, storage: files(directory) }),
  'synchronous, in memory': () => openSync('large', { wasm, storage: 'memory', compactor: false }),
  'synchronous, in files': () => openSync('sync', { wasm, storage: files(directory), compactor: false }),
};

describe.each(Object.entries(kinds))('%s', (_, open) => {
  test('values and batches beyond the limits are refused, whatever they are made of', async () => {
    const db = await open();
    const bytes = new Uint8Array(VALUE_BYTES_MAX);
    await expect((async () => db.set('bytes', bytes))()).rejects.toMatchObject(tooLong);
    await expect((async () => db.set('text', 'x'.repeat(VALUE_BYTES_MAX)))()).rejects.toMatchObject(tooLong);
    await expect((async () => db.set('object', { bytes }))()).rejects.toMatchObject(tooLong);
    await expect((async () => db.batch().set('in a batch', bytes))()).rejects.toMatchObject(tooLong);
    const large = bytes.subarray(0, 100 * MIB);
    const entries = [1, 2, 3].map((key) => [key, large] as [number, Uint8Array]);
    await expect((async () => db.setMany(entries))()).rejects.toMatchObject(tooMany);
    await db.set('small', 1);
    expect(await db.count()).toBe(1);
    await db.close();
  });
});

test('the longest value goes in and comes out', async () => {
  const db = await openSync('longest', { wasm, storage: 'memory', compactor: false });
  const value = new Uint8Array(VALUE_BYTES_MAX - 1).fill(7, -1);
  db.set('longest', value, { durability: 'strict' });
  expect((db.get('longest') as Uint8Array).length).toBe(value.length);
  await db.compact();
  const [found] = [...db.values()] as [Uint8Array];
  expect([found.length, found.at(-1)]).toEqual([value.length, 7]);
  await db.close();
});

test('many answers of one turn come in several frames; one answer that is too long is refused', async () => {
  const db = await openInline('answers', { wasm, storage: 'memory' });
  const value = new Uint8Array(16 * MIB).fill(3, -1);
  await db.set('large', value);
  await db.set('small', 1);
  const turn = Array.from({ length: 10 }, () => db.get('large').then((found) => (found as Uint8Array).length));
  expect(new Set(await Promise.all([...turn, db.get('small')]))).toEqual(new Set([value.length, 1]));
  const many = Array.from({ length: 10 }, () => 'large');
  expect((await db.getMany(many)).length).toBe(10);
  await expect(db.getMany([...many, ...many])).rejects.toMatchObject(tooMany);
  expect(await db.get('small')).toBe(1);
  await db.close();
});

describe('an engine whose memory cannot grow beyond 32 MiB', () => {
  const options = { wasm: limitedEngine(readFileSync(wasm), 32 * MIB), storage: 'memory', memoryBytes: MIB } as const;
  const value = new Uint8Array(MIB).fill(5);

  test('refuses a value that it has no room for, and continues: synchronous', async () => {
    const db = await openSync('limited', { ...options, compactor: false });
    expect(() => db.set('large', new Uint8Array(40 * MIB))).toThrow(expect.objectContaining(noMemory));
    // It fits once, but not a second time.
    expect(() => db.set('large', new Uint8Array(16 * MIB))).toThrow(expect.objectContaining(noMemory));
    db.set('small', 1, { durability: 'strict' });
    expect([...db.keys()]).toEqual(['small']);
    await db.close();
  });

  test('refuses a frame or an answer that it has no room for, and continues', async () => {
    const db = await openInline('limited', options);
    for (let key = 0; key < 12; key++) await db.set(key, value);
    await expect(db.set('large', new Uint8Array(40 * MIB))).rejects.toMatchObject(noMemory);
    await expect(db.set('large', new Uint8Array(16 * MIB))).rejects.toMatchObject(noMemory);
    const keys = Array.from({ length: 12 }, (_, key) => key);
    await expect(db.getMany([...keys, ...keys, ...keys])).rejects.toMatchObject(noMemory);
    const found = await Promise.all(keys.map((key) => db.get(key)));
    expect(found.map((one) => (one as Uint8Array).length)).toEqual(keys.map(() => value.length));
    let seen = 0;
    for await (const one of db.values()) seen += (one as Uint8Array).length;
    expect(seen).toBe(12 * value.length);
    await expect(db.setMany([...keys, ...keys].map((key) => [key, value]))).rejects.toMatchObject(noMemory);
    await db.set('small', 1);
    expect(await db.get('small')).toBe(1);
    await db.close();
  });
});
