/** Encrypted exports: what is in them, what opens them, and what is refused. */

import { readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { EngineHost } from '../../js/src/engine/engine-host.ts';
import { keySlots } from '../../js/src/engine/key-slots.ts';
import type { Store } from '../../js/src/store/store.ts';
import { SyncStore } from '../../js/src/synchronous/store.ts';
import type { Key } from '../../js/src/types.ts';
import { wasm } from './support/engine.ts';
import { boundaries, bytesOf, chunks, contents, newStore } from './support/exports.ts';
import { closedAfterTest } from './support/stores.ts';

const wrongKey = { code: 'VARVE_KEY', message: expect.stringContaining('The key is wrong') };
const corrupt = { code: 'VARVE_CORRUPT' };

const encryption = { key: new Uint8Array(32).fill(7) };
const another = { encryption: { key: new Uint8Array(32).fill(8) } };

async function store(): Promise<Store<Key, unknown>> {
  return closedAfterTest(await newStore());
}

/** A store of several blocks. */
async function large(count = 2000): Promise<Store<Key, unknown>> {
  const db = await store();
  await db.setMany(Array.from({ length: count }, (_, i): [Key, unknown] => [['n', i], `canary ${i} `.repeat(40)]));
  return db;
}

test('it has no key and no value in plain text, and comes back as it was', async () => {
  const db = await large();
  await db.set('gone in 2100', 'canary', { expiresAt: 4_102_444_800_000 });
  const exported = await bytesOf(db.export({ encryption }));
  expect(boundaries(exported).length).toBeGreaterThan(4);
  expect(Buffer.from(exported).includes('canary')).toBe(false);
  expect(Buffer.from(exported).includes('gone in 2100')).toBe(false);
  const other = await store();
  const report = await other.import(chunks(exported, 999), { encryption });
  expect(report).toEqual({ entries: 2001, bytes: exported.length, resumedAt: 0 });
  expect(await contents(other)).toStrictEqual(await contents(db));
  // Neither the key nor the position of equal blocks can be seen from two exports of the same store.
  const again = await bytesOf(db.export({ encryption }));
  const [, slots, first] = boundaries(exported) as [number, number, number];
  expect(again.subarray(slots, first)).not.toEqual(exported.subarray(slots, first));
});

test('the same from a synchronous store, and from an empty one', async () => {
  const host = await EngineHost.open('encrypted', { keySlots, storage: 'memory', wasm });
  const db = new SyncStore<Key, unknown>(host, {}, undefined);
  const empty = await bytesOf(db.export({ encryption }));
  const other = await store();
  expect(await other.import(chunks(empty, 100), { encryption })).toMatchObject({ entries: 0 });
  db.set('a', 1);
  await other.import(db.export({ encryption }), { encryption });
  expect(await other.get('a')).toBe(1);
  await expect(db.import(other.export(another), { encryption, merge: true })).rejects.toMatchObject(wrongKey);
  await db.import(other.export(another), { ...another, merge: true });
  await db.close();
});

test('another key, no key, a key for a plain export, and a wrong form are refused, and nothing is changed', async () => {
  const db = await large(10);
  const exported = await bytesOf(db.export({ encryption }));
  const other = await store();
  const encrypted = { code: 'VARVE_KEY', message: expect.stringContaining('is encrypted') };
  await expect(other.import(chunks(exported, 1000), another)).rejects.toMatchObject(wrongKey);
  await expect(other.import(chunks(exported, 1000))).rejects.toMatchObject(encrypted);
  const plain = { code: 'VARVE_KEY', message: expect.stringContaining('is not encrypted') };
  await expect(other.import(db.export(), { encryption })).rejects.toMatchObject(plain);
  const invalid = { code: 'VARVE_INVALID_ARGUMENT' };
  for (const wrong of [{ key: 'text' }, {}, 'text', { key: encryption.key, kind: 1 }] as never[]) {
    await expect(other.import(chunks(exported, 1000), { encryption: wrong })).rejects.toMatchObject(invalid);
    await expect(bytesOf(db.export({ encryption: wrong }))).rejects.toMatchObject(invalid);
  }
  expect(await other.count()).toBe(0);
});

test('the bytes of a key may be overwritten after the call', async () => {
  const db = await large(10);
  const [key, same] = [new Uint8Array(32).fill(7), new Uint8Array(32).fill(7)];
  const exporting = db.export({ encryption: { key } });
  key.fill(0);
  const other = await store();
  const importing = other.import(exporting, { encryption: { key: same } });
  same.fill(0);
  expect(await importing).toMatchObject({ entries: 10 });
});

test('an interrupted import goes on where it was, with the key only', async () => {
  const db = await large();
  const exported = await bytesOf(db.export({ encryption }));
  const [, , , half] = boundaries(exported) as [number, number, number, number];
  const other = await store();
  await expect(other.import(chunks(exported.subarray(0, half + 5), 1000), { encryption })).rejects.toMatchObject(
    corrupt,
  );
  const asked: number[] = [];
  const source = (offset: number): AsyncIterable<Uint8Array> => {
    asked.push(offset);
    return chunks(exported.subarray(offset), 1000);
  };
  await expect(other.import(source)).rejects.toMatchObject({ code: 'VARVE_KEY' });
  await expect(other.import(source, another)).rejects.toMatchObject(wrongKey);
  const report = await other.import(source, { encryption });
  expect(report).toEqual({ entries: 2000, bytes: exported.length, resumedAt: half });
  expect(asked).toEqual([half, 0, 0, half]);
  expect(await contents(other)).toStrictEqual(await contents(db));
});

describe('damage', () => {
  test('at any byte is refused, and leaves only whole blocks', { timeout: 60_000 }, async () => {
    const db = await store();
    await db.setMany([['a', 1], ['b', 2]]); // biome-ignore format: two entries
    const exported = await bytesOf(db.export({ encryption }));
    const other = await store();
    for (let at = 0; at < exported.length; at++) {
      const copy = exported.slice();
      copy[at]! ^= 1 << (at % 8);
      const code = expect.stringMatching(/VARVE_(CORRUPT|KEY)/);
      await expect(other.import(chunks(copy, 5000), { encryption, merge: true })).rejects.toMatchObject({ code });
      expect([0, 2]).toContain(await other.count());
    }
  });

  test('of a writer without the key, who makes the digests anew, is refused', async () => {
    const db = await large();
    const exported = await bytesOf(db.export({ encryption }));
    const blocks = split(exported);
    const [header, slots, first, second, ...rest] = blocks as [Block, Block, Block, Block, ...Block[]];
    const end = rest.at(-1)!;
    const changed = { ...first, body: first.body.slice() };
    changed.body[100]! ^= 1;
    const wrong: Block[][] = [
      [header, slots, changed, second, ...rest],
      [header, slots, second, first, ...rest],
      [header, slots, first, second, end],
      [header, slots, first, first, second, ...rest],
      [header, slots, { ...first, entries: first.entries + 1 }, second, ...rest],
      [{ ...header, body: header.body.map((byte, i) => (i === 32 ? 9 : byte)) }, slots, first, second, ...rest],
      [header, slots, { ...first, entries: first.entries % 2 ** 31 }, second, ...rest],
    ];
    for (const forged of wrong) {
      const other = await store();
      await expect(other.import(chunks(await linked(forged), 5000), { encryption })).rejects.toMatchObject(corrupt);
    }
    expect(await linked(blocks)).toEqual(exported);
  });
});

interface Block {
  readonly entries: number;
  readonly body: Uint8Array;
}

/** The header (40 B, as a body) and the blocks of an export. */
function split(bytes: Uint8Array): Block[] {
  const view = new DataView(bytes.buffer);
  const at = boundaries(bytes);
  const blocks = at.slice(0, -1).map((start, i) => ({
    entries: view.getUint32(start + 4, true),
    body: bytes.slice(start + 16, at[i + 1]! - 32),
  }));
  return [{ entries: 0, body: bytes.slice(0, 40) }, ...blocks];
}

/** The bytes of blocks whose digests are right. */
async function linked([header, ...blocks]: readonly Block[]): Promise<Uint8Array> {
  const hash = async (...parts: Uint8Array[]): Promise<Uint8Array> =>
    new Uint8Array(await crypto.subtle.digest('SHA-256', Buffer.concat(parts)));
  let digest = await hash(header!.body);
  const parts = [header!.body, digest];
  for (const { entries, body } of blocks) {
    const head = new Uint8Array(new Uint32Array([body.length, entries]).buffer);
    const check = (await hash(digest, head)).subarray(0, 8);
    digest = await hash(digest, head, check, body);
    parts.push(head, check, body, digest);
  }
  return new Uint8Array(Buffer.concat(parts));
}

describe('the golden file', () => {
  const file = new URL('golden/export-encrypted-v2.varve', import.meta.url);
  const entries: [Key, unknown][] = [
    [Uint8Array.of(0, 255), Uint8Array.of(1, 2, 3)],
    [['note', 42], { title: 'Silt', tags: ['lake', 1n] }],
  ];

  // `VARVE_BLESS=1 npx vitest run export-encrypted`, for a new format version only.
  test.runIf(process.env['VARVE_BLESS'] !== undefined)('is written anew', async () => {
    const db = await store();
    await db.setMany(entries);
    writeFileSync(file, await bytesOf(db.export({ encryption })));
  });

  test('opens with its key, and has the entries that it was made of', async () => {
    const db = await store();
    await db.import(chunks(new Uint8Array(readFileSync(file)), 100), { encryption });
    expect(await contents(db)).toStrictEqual(entries.map(([key, value]) => [key, value, undefined]));
  });
});
