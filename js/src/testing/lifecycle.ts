/**
 * The asynchronous half of a device and the adapter: growing, lending, closing, reopening, one opener at a time, names.
 *
 * Invariant: each test names one thing that the host of the engine relies on.
 */

import { expect, expectBytes, expectEqual, expectRefused, expectRejected } from './assert.ts';
import { callsOn } from './slots.ts';
import { type Clause, pattern, put } from './subject.ts';

/** Names that may cause problems in a file system. */
const NAMES = ['notes', 'a/b', '..', '.', 'Ünïcødé', '100%', "it's (1)*!~", ' x ', 'con', 'x'.repeat(200)];

/** Within this time a waiting caller would have continued, in milliseconds. */
const PAUSE_MS = 30;

/** After this time no caller that was asked to stop should still wait, in milliseconds. */
const LONG_MS = 20_000;

/** A wait that is longer than that. */
const WAIT_MS = 3 * LONG_MS;

/** The result of a promise, unless it takes too long. */
export async function soon<T>(awaited: Promise<T>): Promise<T | 'still waiting'> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<'still waiting'>((resolve) => {
    timer = setTimeout(() => resolve('still waiting'), LONG_MS);
  });
  return Promise.race([awaited, late]).finally(() => clearTimeout(timer));
}

const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, PAUSE_MS));

export const deviceClauses: readonly Clause[] = [
  {
    name: 'growing adds open, empty slots; two growths at once never make the same one',
    async run(subject) {
      const device = await subject.open();
      const first = device.count();
      const added = await Promise.all([device.grow(3), device.grow(2)]);
      expectEqual([...added, device.count()], [3, 2, first + 5], 'slots added by each growth, and then there');
      for (let slot = first; slot < first + 5; slot++) {
        expectEqual([device.isOpen(slot), device.size(slot)], [true, 0], `new slot ${slot}: open, size`);
        put(device, slot, pattern(slot, 100), 0);
      }
      for (let slot = first; slot < first + 5; slot++)
        expectBytes(await subject.contents(device, slot), pattern(slot, 100), `${slot}`);
    },
  },
  {
    name: 'growing ends at slotsMax, and returns how far it came',
    async run(subject) {
      const device = await subject.open();
      const left = device.slotsMax - device.count();
      const added = await device.grow(left + 10);
      expect(added <= left, `${added} slots were added where slotsMax leaves ${left}.`);
      if (added === left) expectEqual(await device.grow(1), 0, 'slots added when there are slotsMax');
    },
  },
  {
    name: 'a slot that was released refuses every call, until it is taken back with its bytes',
    async run(subject) {
      const device = await subject.open();
      put(device, 1, pattern(1, 5000), 0);
      device.release(1);
      expectEqual([device.isOpen(1), device.isOpen(0)], [false, true], 'isOpen of the released slot and of another');
      for (const [name, call] of callsOn(device, 1)) expectRefused(call, 'closed', `${name} of a released slot`);
      await device.retake(1);
      await device.retake(1);
      expectEqual(device.isOpen(1), true, 'isOpen of the slot that was taken back');
      expectBytes(await subject.contents(device, 1), pattern(1, 5000), 'the slot that was taken back');
    },
  },
  {
    name: 'a store opens again with its slots, their bytes and their sizes, flushed or not',
    async run(subject) {
      const device = await subject.open();
      await device.grow(2);
      const count = device.count();
      put(device, count - 1, pattern(2, 5000), 0);
      device.flush(count - 1);
      put(device, count - 1, pattern(3, 1000), 5000);
      put(device, 0, pattern(4, 70_000), 0);
      device.truncate(0, 66_000);
      put(device, 1, pattern(5, 300), 100_000);
      const again = await subject.reopen(device);
      expect(again.count() >= count, `${again.count()} slots after reopening instead of ${count}.`);
      expectEqual([again.size(0), again.size(1), again.size(2)], [66_000, 100_300, 0], 'sizes after reopening');
      expectBytes(await subject.contents(again, 0), pattern(4, 70_000).subarray(0, 66_000), 'a slot that was cut');
      const last = await subject.contents(again, count - 1);
      expectBytes(last.subarray(0, 5000), pattern(2, 5000), 'what was flushed');
      expectBytes(last.subarray(5000), pattern(3, 1000), 'what was not flushed, and closed properly');
    },
  },
  {
    name: 'a closed device refuses every call, grows no more, and closes twice',
    async run(subject) {
      const device = await subject.open();
      put(device, 0, pattern(6, 10), 0);
      const slots = device.count();
      await device.closeAll();
      for (const slot of [0, slots - 1]) {
        expectEqual(device.isOpen(slot), false, `isOpen of slot ${slot} of a closed device`);
        for (const [name, call] of callsOn(device, slot)) expectRefused(call, 'closed', `${name} of a closed device`);
      }
      expectEqual(await device.grow(1), 0, 'slots added to a closed device');
      await device.closeAll();
    },
  },
  {
    name: 'closing while slots are created leaves a store that opens',
    async run(subject) {
      const device = await subject.open();
      put(device, 0, pattern(7, 10), 0);
      const growing = device.grow(4).catch(() => 0);
      await device.closeAll();
      await growing;
      const again = await subject.open();
      expectBytes(await subject.contents(again, 0), pattern(7, 10), 'slot 0');
      for (let slot = 0; slot < again.count(); slot++) expect(again.isOpen(slot), `slot ${slot} is not open.`);
    },
  },
];

export const adapterClauses: readonly Clause[] = [
  {
    name: 'a store has one opener: a second one is VARVE_LOCKED, and the first continues',
    async run(subject) {
      const device = await subject.open();
      put(device, 0, pattern(1, 100), 0);
      const other = await subject.other();
      await expectRejected(subject.open('store', other), 'VARVE_LOCKED', 'opening a store that is open');
      await expectRejected(subject.open('store', other, PAUSE_MS), 'VARVE_LOCKED', 'opening it with a short wait');
      await expectRejected(other.delete('store', { lockTimeout: 0 }), 'VARVE_LOCKED', 'deleting a store that is open');
      put(device, 0, pattern(1, 200).subarray(100), 100);
      expectBytes(await subject.contents(device, 0), pattern(1, 200), 'the slot of the first opener');
    },
  },
  {
    name: 'one that waits gets the store, and all its bytes, when it is closed and not before',
    async run(subject) {
      const device = await subject.open();
      let isClosed = false;
      const waiting = subject.open('store', await subject.other(), 20_000).then((second) => {
        expect(isClosed, 'a store was opened before its first opener had closed it.');
        return second;
      });
      waiting.catch(() => undefined);
      await pause();
      put(device, 0, pattern(2, 5000), 0);
      isClosed = true;
      await device.closeAll();
      expectBytes(await subject.contents(await waiting, 0), pattern(2, 5000), 'what the second opener reads');
    },
  },
  {
    name: 'a signal ends the waiting',
    async run(subject) {
      const device = await subject.open();
      const controller = new AbortController();
      const waiting = (await subject.other()).open('store', { lockTimeout: WAIT_MS, signal: controller.signal });
      const ended = waiting.then(
        (second) => second.closeAll().then(() => 'opened'),
        () => 'refused',
      );
      setTimeout(() => controller.abort(), PAUSE_MS);
      expectEqual(await soon(ended), 'refused', 'a waiting that was aborted');
      await device.closeAll();
      await (await subject.open()).closeAll();
    },
  },
  {
    name: 'of several that open at once one has the store at a time',
    async run(subject) {
      let holders = 0;
      const other = await subject.other();
      await Promise.all(
        Array.from({ length: 6 }, async (_, i) => {
          const device = await subject.open('store', i % 2 === 0 ? subject.storage : other, 30_000);
          expectEqual(++holders, 1, 'how many have the store open');
          const seen = device.size(0);
          put(device, 0, pattern(3, seen + 10).subarray(seen), seen);
          await pause();
          holders--;
          await device.closeAll();
        }),
      );
      expectBytes(await subject.contents(await subject.open(), 0), pattern(3, 60), 'what they appended in turns');
    },
  },
  {
    name: 'stores of different names share nothing, whatever the names',
    async run(subject) {
      for (const [i, name] of NAMES.entries()) {
        const device = await subject.open(name);
        expectEqual(device.size(0), 0, `the size of a slot of the new store ${name}`);
        put(device, 0, pattern(i + 1, 100 + i), 0);
        if (i % 2 === 0) await device.closeAll();
      }
      await subject.end();
      expectEqual((await subject.storage.list()).sort(), [...NAMES].sort(), 'the list of stores');
      for (const [i, name] of NAMES.entries()) {
        expectBytes(await subject.contents(await subject.open(name), 0), pattern(i + 1, 100 + i), `the store ${name}`);
      }
    },
  },
  {
    name: 'a store that was deleted is gone from the list, and empty when it is made again; others stay',
    async run(subject) {
      expectEqual(await subject.storage.list(), [], 'the list where there are no stores');
      expectEqual(await subject.storage.delete('one', { lockTimeout: 0 }), false, 'deleting what is not there');
      expectEqual(await subject.storage.list(), [], 'the list after that');
      for (const name of ['one', 'two']) {
        const device = await subject.open(name);
        put(device, 0, pattern(4, 100), 0);
        device.flush(0);
        await device.closeAll();
      }
      expectEqual(await subject.storage.delete('one', { lockTimeout: 0 }), true, 'deleting what is there');
      expectEqual(await (await subject.other()).list(), ['two'], 'the list after deleting');
      expectEqual(await subject.storage.delete('one', { lockTimeout: 0 }), false, 'deleting it again');
      const again = await subject.open('one');
      for (let slot = 0; slot < again.count(); slot++) await subject.expectNew(again, slot);
      expectBytes(await subject.contents(await subject.open('two'), 0), pattern(4, 100), 'the other store');
    },
  },
];
