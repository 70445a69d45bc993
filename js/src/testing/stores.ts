/**
 * Whole stores on the storage: tests how the engine works with it, through `varve` and `varve/synchronous`.
 *
 * Invariant: a store that flushes, merges, closes and reopens may find faults that the other parts do not test for; `check` then
 * reads all of it again. On a storage that commits later the same is done through `varve` alone, 200 writes at a time: a
 * synchronous store is refused there, which is a clause too.
 */

import { open, type Store } from '../index.ts';
import { nextTurn } from '../runtime/turn.ts';
import { open as openSync, type SyncStore } from '../synchronous.ts';
import type { Key, WriteOptions } from '../types.ts';
import { expectBytes, expectEqual, expectRejected } from './assert.ts';
import { type Clause, pattern, type Subject } from './subject.ts';

/** Enough entries for memtables to be flushed and merged with the smallest memory budget. */
const ENTRIES = 6000;
const MEMORY_BYTES = 1 << 20;
/** In every value of an encrypted store. */
const CANARY = 'canary 3f9a';

/** The common interface of both kinds of stores. A synchronous store returns its results directly. */
type WholeStore = {
  readonly db: SyncStore<Key, Uint8Array> | Store<Key, Uint8Array>;
  /** Writes. Returns a promise that resolves when the write is acknowledged, or undefined if it is acknowledged already. */
  set(key: Key, value: Uint8Array, options?: WriteOptions): Promise<unknown> | undefined;
  /** Resolves in a later turn, when all pending writes are done. */
  turn(): Promise<void>;
};

async function openStore(subject: Subject): Promise<WholeStore> {
  const { storage, options } = subject;
  const settings = { storage, wasm: options.wasm, memoryBytes: MEMORY_BYTES, lockTimeout: 0 };
  if (!options.deferred) {
    const db = await openSync<Key, Uint8Array>('store', settings);
    const set = (...write: Parameters<WholeStore['set']>): undefined => void db.set(...write);
    return { db, set, turn: nextTurn };
  }
  const db = await open<Key, Uint8Array>('store', settings);
  let writing: Promise<unknown>[] = [];
  return {
    db,
    set(key, value, how) {
      const write = db.set(key, value, how);
      // A test that does not wait for the write checks the remaining entries instead.
      write.catch(() => undefined);
      writing.push(write);
      return write;
    },
    async turn() {
      const all = writing;
      writing = [];
      await Promise.all(all);
    },
  };
}

/** Writes every key twice. */
async function fill(store: WholeStore, from = 0): Promise<void> {
  for (let i = 0; i < ENTRIES * 2; i++) {
    const number = (i * 7919) % ENTRIES;
    store.set(from + number, pattern(from + number, 200 + (number % 300)));
    if (i % 200 === 0) await store.turn();
  }
  await store.turn();
}

async function verify(subject: Subject, { db }: WholeStore, entries: number): Promise<void> {
  expectEqual(await db.count(), entries, 'how many entries the store has');
  for (let number = 0; number < entries; number += 7) {
    const value = (await db.get(number)) ?? new Uint8Array(0);
    expectBytes(value, pattern(number, 200 + ((number % ENTRIES) % 300)), `the value of ${number}`);
  }
  const { problems } = await db.check({ tools: subject.options.tools });
  expectEqual(problems, [], 'what a check of the store finds');
}

/** Runs `work` and then closes the store, also if a test fails in the middle of it. */
async function closing<T>(store: { close(): Promise<void> }, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } finally {
    await store.close();
  }
}

export const storeClauses: readonly Clause[] = [
  {
    name: 'a store is filled, flushed, merged, closed and opened again, and a check finds nothing',
    async run(subject) {
      const store = await openStore(subject);
      const { kind } = store.db.storage;
      expectEqual([kind, store.db.recovery.state], [subject.storage.kind, 'new'], 'the report of the opening');
      await closing(store.db, async () => {
        await fill(store);
        await verify(subject, store, ENTRIES);
      });
      const again = await openStore(subject);
      expectEqual(again.db.recovery.state, 'clean', 'the state of a store that was closed');
      await closing(again.db, async () => {
        await fill(again, ENTRIES);
        await again.db.compact();
        await verify(subject, again, 2 * ENTRIES);
      });
    },
  },
  {
    name: 'a store is used through promises, and by one opener at a time',
    async run(subject) {
      const { storage, options } = subject;
      const db = await open('store', { storage, wasm: options.wasm, lockTimeout: 0 });
      await closing(db, async () => {
        await Promise.all(Array.from({ length: 200 }, (_, i) => db.set(['key', i], { i }, { durability: 'strict' })));
        const second = open('store', { storage: await subject.other(), wasm: options.wasm, lockTimeout: 0 });
        await expectRejected(second, 'VARVE_LOCKED', 'opening a store that is open');
        expectEqual(await db.get(['key', 150]), { i: 150 }, 'a value');
        // Bun adds a charset to the types of texts.
        const view = db.at(['key']);
        const before = db.snapshot();
        await view.set(1, 'changed');
        const steps = view.keys();
        steps.seek(197);
        expectEqual(await steps.nextv(1), [197], 'the first key of a view from 197 on');
        expectEqual(await steps.toArray(), [198, 199], 'the keys after it');
        await steps.return?.();
        expectEqual(
          [await before.get(['key', 1]), await view.get(1)],
          [{ i: 1 }, 'changed'],
          'a value before and after',
        );
        before.close();
        // Bun adds a charset to the types of texts.
        await db.set('blob', { in: new Blob(['bytes'], { type: 'image/png' }) }, { durability: 'strict' });
        const { in: blob } = (await db.get('blob')) as { in: Blob };
        expectEqual([blob.type, await blob.text()], ['image/png', 'bytes'], 'a Blob in a value');
        await db.delete('blob');
        const asked = [1, 1].map(async () => (await db.delete(['key', 150], { existed: true })).existed);
        expectEqual(await Promise.all(asked), [true, false], 'whether a key was there, for two that delete it');
        const [tx, next] = [await db.begin({ exclusive: true }), db.begin({ exclusive: true })];
        tx.set('n', 1);
        await tx.commit();
        expectEqual(await (await next).get('n'), 1, 'what an exclusive transaction finds of the one before it');
        await (await next).rollback();
        await db.delete('n');
        await db.deleteRange({ prefix: ['key'] });
      });
      const again = await open('store', { storage, wasm: options.wasm, lockTimeout: 0 });
      await closing(again, async () => expectEqual(await again.count(), 0, 'entries after deleting all'));
    },
  },
  {
    name: 'a store is encrypted where it is, its key is changed, and nothing readable is left',
    async run(subject) {
      const { storage, options } = subject;
      const key = (seed: number): Uint8Array => new Uint8Array(32).fill(seed);
      const openWith = (seed?: number): Promise<Store<Key, string>> =>
        open('store', {
          storage,
          wasm: options.wasm,
          memoryBytes: MEMORY_BYTES,
          lockTimeout: 0,
          encryption: seed === undefined ? undefined : { key: key(seed) },
        });
      const addEntries = (db: Store<Key, string>, from: number): Promise<unknown> =>
        Promise.all(Array.from({ length: 300 }, (_, i) => db.set(from + i, `${CANARY} ${from + i}`)));

      const plain = await openWith();
      await closing(plain, () => addEntries(plain, 0));
      expectEqual((await slotsWith(subject, CANARY)) > 0, true, 'whether a plain store can be read');
      const encrypted = await openWith();
      await closing(encrypted, async () => {
        await encrypted.encrypt({ key: key(1) });
        await addEntries(encrypted, 300);
      });
      await expectRejected(openWith(), 'VARVE_KEY', 'opening an encrypted store without a key');
      await expectRejected(openWith(2), 'VARVE_KEY', 'opening an encrypted store with another key');
      const changed = await openWith(1);
      await closing(changed, async () => {
        await changed.changeEncryptionKey(key(1), key(2));
        await changed.rotateKey();
        await addEntries(changed, 600);
        await changed.compact();
      });
      await expectRejected(openWith(1), 'VARVE_KEY', 'opening a store with its old key');
      const again = await openWith(2);
      await closing(again, async () => {
        const values = await again.getMany([0, 300, 899]);
        expectEqual(
          values,
          [0, 300, 899].map((number) => `${CANARY} ${number}`),
          'values of the encrypted store',
        );
        expectEqual(await again.count(), 900, 'how many entries the encrypted store has');
        const { problems } = await again.check({ tools: options.tools });
        expectEqual(problems, [], 'what a check of the encrypted store finds');
      });
      expectEqual(await slotsWith(subject, CANARY), 0, 'slots in which a value can be read');
    },
  },
];

/** How many of the store's slots contain `bytes` as they are. */
async function slotsWith(subject: Subject, bytes: string): Promise<number> {
  const device = await subject.open();
  let found = 0;
  for (let slot = 0; slot < device.count(); slot++) {
    const contents = await subject.contents(device, slot);
    if (new TextDecoder('latin1').decode(contents).includes(bytes)) found++;
  }
  await device.closeAll();
  return found;
}

export const strictClauses: readonly Clause[] = [
  {
    name: 'strict writes survive a loss of power, and what is found is a prefix of what was written',
    async run(subject) {
      const store = await openStore(subject);
      await fill(store);
      let strict = 0;
      for (let i = 0; i < 300; i++) {
        const isStrict = i % 10 === 0;
        const written = store.set(['late', i], pattern(i + 1, 50), { durability: isStrict ? 'strict' : 'relaxed' });
        const acknowledged = (): void => {
          if (isStrict) strict = i + 1;
        };
        if (written === undefined) acknowledged();
        else written.then(acknowledged, () => undefined);
        // The last writes are still pending when the power is cut.
        if (written !== undefined && i % 40 === 39) await store.turn();
      }
      const promised = strict;
      await subject.options.losePower?.(subject.storage);
      // Its device no longer works; closing the store only ends its timers.
      await store.db.close().catch(() => undefined);
      const again = await openStore(subject);
      await closing(again.db, async () => {
        const late: (number | undefined)[] = [];
        for await (const key of again.db.keys({ prefix: ['late'] })) late.push((key as number[])[1]);
        expectEqual(
          late,
          Array.from({ length: Math.max(promised, late.length) }, (_, i) => i),
          'the late keys',
        );
        expectEqual((await again.db.count()) - late.length, ENTRIES, 'the keys written before them');
        const { problems } = await again.db.check({ tools: subject.options.tools });
        expectEqual(problems, [], 'what a check of the store finds');
      });
    },
  },
];
