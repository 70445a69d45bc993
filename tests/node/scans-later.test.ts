// Scans whose bytes come later. Each scan returns the same as a model, with limits and in reverse, whichever bytes are missing.

import 'fake-indexeddb/auto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Key, open, type ScanOptions, type Store } from '../../js/src/index.ts';
import { open as openInline } from '../../js/src/inline.ts';
import { ChunkAdapter } from './support/chunk-adapter.ts';
import { randomFrom, wasm } from './support/engine.ts';
import { type Note, note, notesOf } from './support/notes.ts';

/** Many times the bytes that memory and the device keep, so that every scan has to fetch. */
const ENTRIES = 4000;
const MEMORY = 1 << 20;
const TIMEOUT = { timeout: 120_000 };

const random = randomFrom(3);
const noise = Uint8Array.from({ length: 16_384 }, () => random(256));
const hex = Array.from({ length: 2500 }, () => random(16).toString(16)).join('');

/** A value that begins with a mark and does not compress. */
function bytesOf(i: number): Uint8Array {
  const value = noise.slice((i * 37) % 8192, ((i * 37) % 8192) + 1000);
  new DataView(value.buffer).setUint32(0, i);
  return value;
}

type Opener = () => Promise<Store<Key, unknown>>;
type Entry = [Key, unknown];
type View = Pick<Store<Key, unknown>, 'entries' | 'keys' | 'values' | 'count'>;

const adapter = new ChunkAdapter();
const openers: [string, Opener][] = [
  ['varve, over an adapter', () => open('later', { storage: adapter, wasm, memoryBytes: MEMORY })],
  ['varve/inline, over IndexedDB', () => openInline('later', { storage: 'indexeddb', wasm, memoryBytes: MEMORY })],
];

const scans: ScanOptions<Key>[] = [];
for (const reverse of [false, true]) {
  for (const limit of [undefined, 1, 1000, 3999]) {
    for (const range of [{}, { gte: 500, lt: 3300 }]) scans.push({ ...range, reverse, limit });
  }
}

function expected(model: ReadonlyMap<number, Uint8Array>, options: ScanOptions<Key>): Entry[] {
  const { gte = 0, lt = Number.POSITIVE_INFINITY, reverse = false, limit } = options as Record<string, never>;
  const entries = [...model].filter(([key]) => key >= gte && key < lt).sort(([a], [b]) => a - b);
  if (reverse) entries.reverse();
  return entries.slice(0, limit);
}

async function expectScans(view: View, model: ReadonlyMap<number, Uint8Array>): Promise<void> {
  for (const options of scans) {
    const wanted = expected(model, options);
    const found: Entry[] = [];
    for await (const [key, value] of view.entries(options)) found.push([key, value]);
    const text = JSON.stringify(options);
    expect(
      found.map(([key]) => key),
      text,
    ).toEqual(wanted.map(([key]) => key));
    expect(found.every(([, value], i) => Buffer.compare(value as Uint8Array, wanted[i]?.[1] as Uint8Array) === 0)).toBe(
      true,
    );
  }
  for (const options of [{ limit: 2500 }, { limit: 2500, reverse: true }]) {
    const keys: Key[] = [];
    for await (const key of view.keys(options)) keys.push(key);
    expect(keys).toEqual(expected(model, options).map(([key]) => key));
  }
  expect(await view.count()).toBe(model.size);
  expect(await view.count({ gte: 500, lt: 3300 })).toBe(expected(model, { gte: 500, lt: 3300 }).length);
}

describe.each(openers)('%s', (_, opener) => {
  const model = new Map<number, Uint8Array>();
  let db: Store<Key, unknown>;

  beforeAll(async () => {
    db = await opener();
    for (let from = 0; from < ENTRIES; from += 500) {
      const batch = db.batch();
      for (let i = from; i < from + 500; i++) {
        const key = (i * 7919) % ENTRIES;
        model.set(key, bytesOf(i));
        batch.set(key, bytesOf(i));
      }
      await batch.commit();
    }
    await db.compact();
    // Deleted entries make scans look at more entries than they deliver.
    for (let key = 0; key < ENTRIES; key += 3) {
      model.delete(key);
      void db.delete(key);
    }
    await db.close();
    db = await opener();
  }, TIMEOUT.timeout);

  afterAll(() => db.close());

  test('scans, keys and counts', TIMEOUT, () => expectScans(db, model));

  test('in a snapshot that later writes do not change', TIMEOUT, async () => {
    const snapshot = db.snapshot();
    const then = new Map(model);
    await db.deleteRange({ gte: 1000, lt: 1200 });
    for (const key of model.keys()) if (key >= 1000 && key < 1200) model.delete(key);
    await expectScans(snapshot, then);
    await snapshot.close();
    expect(await db.count({ gte: 990, lt: 1210 })).toBe(expected(model, { gte: 990, lt: 1210 }).length);
  });

  test('in a transaction, own writes among them', TIMEOUT, async () => {
    await db.transaction(async (tx) => {
      for (const reverse of [false, true]) {
        for (const limit of [undefined, 1500]) {
          const keys: Key[] = [];
          for await (const [key] of tx.entries({ reverse, limit })) keys.push(key);
          expect(keys).toEqual(expected(model, { reverse, limit }).map(([key]) => key));
        }
      }
      tx.set(2.5, noise);
      model.set(2.5, noise);
      expect(await tx.count()).toBe(model.size);
    });
    expect(await db.count()).toBe(model.size);
  });

  test('in an export and in a query that is kept up to date', TIMEOUT, async () => {
    const live = db.live({ reverse: true, limit: 1500, as: 'keys' });
    const wanted = expected(model, { reverse: true, limit: 1500 }).map(([key]) => key);
    const stop = live.subscribe(() => undefined);
    await expect.poll(() => live.value, { timeout: 60_000 }).toEqual(wanted);
    stop();
    const target = await openInline<Key, unknown>('copy', { storage: 'memory', wasm });
    await target.import(db.export());
    expect(await target.count()).toBe(model.size);
    await target.close();
  });
});

test('documents are found by their key and by an index', TIMEOUT, async () => {
  const storage = new ChunkAdapter();
  const opened = () => open('notes', { storage, wasm, memoryBytes: MEMORY });
  let db = await opened();
  const all: Note[] = [];
  await notesOf(db).ready();
  for (let id = 0; id < 1200; id++) all.push(note(id, { title: `${id} ${hex.slice(id, id + 1200)}`, tags: ['all'] }));
  for (let from = 0; from < all.length; from += 200) await notesOf(db).insertMany(all.slice(from, from + 200));
  await db.compact();
  await db.close();
  db = await opened();
  const notes = notesOf(db);
  for (const reverse of [false, true]) {
    for (const limit of [undefined, 700]) {
      const ids = all.map(({ id }) => id);
      const wanted = (reverse ? ids.toReversed() : ids).slice(0, limit);
      const of = (found: readonly Note[]) => found.map(({ id }) => id);
      expect(of(await notes.find({ reverse, limit }).toArray())).toEqual(wanted);
      expect(of(await notes.find('tags', { gte: 'all', lte: 'all', reverse, limit }).toArray())).toEqual(wanted);
    }
  }
  await db.close();
});

test('changes of an earlier opening are reported, and none is lost', TIMEOUT, async () => {
  const storage = new ChunkAdapter();
  const opened = () => open('changes', { storage, wasm, memoryBytes: MEMORY, historyBytes: 64 << 20 });
  // In a storage that opens few files, history has few segments: all of these fit into it.
  const count = 600;
  let db = await opened();
  for (let i = 0; i < count; i++) void db.set(i, bytesOf(i));
  await db.compact();
  await db.close();
  db = await opened();
  const changes = db.changes({ since: 0 });
  for (let i = 0; i < count; i++) {
    expect((await changes.next()).value).toMatchObject({ type: 'set', key: i, sequence: i + 1 });
  }
  await changes.return?.();
  await db.close();
});
