// Collections over a storage that fills up and loses power: documents and indexes stay in step, and nothing acknowledged is lost.

import { expect, test } from 'vitest';
import { inlineEngine } from '../../js/src/server/inline.ts';
import { openStore } from '../../js/src/store/open.ts';
import type { Store } from '../../js/src/store/store.ts';
import { LossyStorage } from '../../js/src/testing.ts';
import type { Key } from '../../js/src/types.ts';
import { wasm } from './support/engine.ts';
import { expectKept, type Note, type Notes, note, notesOf } from './support/notes.ts';

const BODY = 'x'.repeat(2000);

async function opened(storage: LossyStorage): Promise<{ db: Store<Key, unknown>; notes: Notes }> {
  const options = { storage, wasm, memoryBytes: 2 ** 20, durability: 'strict' } as const;
  const db = await openStore<Key, unknown>('lossy', options, () => inlineEngine(storage));
  return { db, notes: notesOf(db) };
}

test('a full storage refuses a document with all of its entries', async () => {
  const storage = new LossyStorage();
  const { db, notes } = await opened(storage);
  await notes.ready();
  storage.setRoom(200_000);
  const kept: Note[] = [];
  let refused = 0;
  for (let id = 0; refused < 3 && id < 2000; id++) {
    const one = note(id, { tags: ['a', BODY], folder: BODY, aliases: [`${id}`] });
    try {
      await notes.insert(one);
      kept.push(one);
    } catch (error) {
      expect(error).toMatchObject({ code: 'VARVE_STORAGE_FULL' });
      refused++;
    }
  }
  expect([kept.length > 0, refused]).toStrictEqual([true, 3]);
  await expectKept(db, kept);
  storage.setRoom(undefined);
  const late = note(5000, { tags: ['a'] });
  await notes.insert(late);
  await expectKept(db, [...kept, late]);
  await db.close();
});

test('a loss of power leaves documents and entries as they were at one read point', async () => {
  const storage = new LossyStorage();
  let { db, notes } = await opened(storage);
  const model = new Map<number, Note>();
  for (let life = 0; life < 4; life++) {
    for (let i = 0; i < 12; i++) {
      const id = i % 7;
      const next = note(id, { title: `${life} ${i} ${id}`, tags: [`${life}`, `${i % 3}`], edited: new Date(i) });
      model.set(id, next);
      await notes.put(next);
    }
    if (life === 2) {
      await notes.delete(3);
      model.delete(3);
    }
    // It was under way when this happened: it is done as a whole, or not at all.
    const last = note(100 + life, { tags: ['under way'], folder: 'f' });
    const pending = notes.insert(last).catch(() => undefined);
    storage.losePower();
    await pending;
    await db.close().catch(() => undefined);
    ({ db, notes } = await opened(storage));
    if (await notes.has(last.id)) model.set(last.id, last);
    await expectKept(db, model.values());
  }
  await db.close();
});
