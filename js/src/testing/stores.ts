/**
 * Whole stores on the storage: what the engine makes of it, through `varve` and `varve/sync`.
 *
 * Invariant: whatever the parts before this one do not think of, a store that flushes, merges, closes and reopens may
 * stumble over; `check` then reads all of it again.
 */

import { open } from '../index.ts';
import { isSettling } from '../storage/device.ts';
import type { Store } from '../store/store.ts';
import { open as openSync, type SyncStore } from '../sync.ts';
import type { Key } from '../types.ts';
import { expectBytes, expectEqual, expectRejected } from './assert.ts';
import { type Clause, pattern, type Subject } from './subject.ts';

/** Enough for memtables to be flushed and merged with the smallest budget of memory. */
const ENTRIES = 6000;
const MEMORY_BYTES = 1 << 20;
/** Sets that are made in one turn. */
const TURN_SETS = 200;

/** A store without promises; one with them where the storage answers later. */
type AnyStore = SyncStore<Key, Uint8Array> | Store<Key, Uint8Array>;

async function openStore(subject: Subject): Promise<AnyStore> {
  const { storage, options } = subject;
  const given = { storage, wasm: options.wasm, memory: MEMORY_BYTES, wait: 0 };
  const device = await storage.open('store', { wait: 0 });
  const isLater = isSettling(device);
  await device.closeAll();
  return isLater ? open<Key, Uint8Array>('store', given) : openSync<Key, Uint8Array>('store', given);
}

/** Writes every key twice, waiting for room where a synchronous turn would run out of spare slots. */
async function fill(store: AnyStore, from = 0): Promise<void> {
  const sets: unknown[] = [];
  for (let i = 0; i < ENTRIES * 2; i++) {
    const number = (i * 7919) % ENTRIES;
    sets.push(store.set(from + number, pattern(from + number, 200 + (number % 300))));
    if (sets.length < TURN_SETS) continue;
    await Promise.all(sets.splice(0));
    if ('room' in store) await store.room();
  }
  await Promise.all(sets);
}

async function verify(subject: Subject, store: AnyStore, entries: number): Promise<void> {
  expectEqual(await store.count(), entries, 'how many entries the store has');
  for (let number = 0; number < entries; number += 7) {
    const value = (await store.get(number)) ?? new Uint8Array(0);
    expectBytes(value, pattern(number, 200 + ((number % ENTRIES) % 300)), `the value of ${number}`);
  }
  const { problems } = await store.check({ tools: subject.options.tools });
  expectEqual(problems, [], 'what a check of the store finds');
}

/** Closes the store, also when a test fails in the middle of it. */
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
      expectEqual([store.storage.kind, store.recovery.state], [subject.storage.kind, 'new'], 'what the opening tells');
      await closing(store, async () => {
        await fill(store);
        await verify(subject, store, ENTRIES);
      });
      const again = await openStore(subject);
      expectEqual(again.recovery.state, 'clean', 'the state of a store that was closed');
      await closing(again, async () => {
        await fill(again, ENTRIES);
        await again.compact();
        await verify(subject, again, 2 * ENTRIES);
      });
    },
  },
  {
    name: 'a store is used through promises, and by one opener at a time',
    async run(subject) {
      const { storage, options } = subject;
      const db = await open('store', { storage, wasm: options.wasm, wait: 0 });
      await closing(db, async () => {
        await Promise.all(Array.from({ length: 200 }, (_, i) => db.set(['key', i], { i }, { durability: 'strict' })));
        const second = open('store', { storage: await subject.other(), wasm: options.wasm, wait: 0 });
        await expectRejected(second, 'VARVE_LOCKED', 'opening a store that is open');
        expectEqual(await db.get(['key', 150]), { i: 150 }, 'a value');
        await db.deleteRange({ prefix: ['key'] });
      });
      const again = await open('store', { storage, wasm: options.wasm, wait: 0 });
      await closing(again, async () => expectEqual(await again.count(), 0, 'entries after deleting all'));
    },
  },
];

export const strictClauses: readonly Clause[] = [
  {
    name: 'strict writes survive a loss of power, and what is found is a prefix of what was written',
    async run(subject) {
      const store = await openStore(subject);
      await fill(store);
      let strict = 0;
      const sets: unknown[] = [];
      for (let i = 0; i < 300; i++) {
        const isStrict = i % 10 === 0;
        sets.push(store.set(['late', i], pattern(i + 1, 50), { durability: isStrict ? 'strict' : 'relaxed' }));
        if (isStrict) strict = i + 1;
      }
      await Promise.all(sets);
      await subject.options.losePower?.(subject.storage);
      // What it had open is gone; closing it only ends its timers.
      await store.close().catch(() => undefined);
      const again = await openStore(subject);
      await closing(again, async () => {
        const late: unknown[] = [];
        for await (const key of again.keys({ prefix: ['late'] })) late.push((key as number[])[1]);
        expectEqual(
          late,
          Array.from({ length: Math.max(strict, late.length) }, (_, i) => i),
          'the late keys',
        );
        expectEqual((await again.count()) - late.length, ENTRIES, 'the keys written before them');
        const { problems } = await again.check({ tools: subject.options.tools });
        expectEqual(problems, [], 'what a check of the store finds');
      });
    },
  },
];
