/**
 * The synchronous half of a device: reading, writing, appending, cutting and flushing slots.
 *
 * Invariant: each test names one thing that the engine relies on.
 */

import type { ManagedDevice } from '../storage/device.ts';
import { expect, expectBytes, expectEqual, expectRefused } from './assert.ts';
import { type Clause, pattern, put } from './subject.ts';

/** Every call on a slot. */
export function callsOn(device: ManagedDevice, slot: number): [name: string, call: () => unknown][] {
  return [
    ['size', () => device.size(slot)],
    ['read', () => device.read(slot, new Uint8Array(1), 0)],
    ['write', () => device.write(slot, new Uint8Array(1), 0)],
    ['flush', () => device.flush(slot)],
    ['truncate', () => device.truncate(slot, 0)],
  ];
}

export const slotClauses: readonly Clause[] = [
  {
    name: 'a new store has open slots that contain only zeros, four at least',
    async run(subject) {
      const device = await subject.open();
      expect(device.count() >= 4, `a new store has ${device.count()} slots: two manifests and two logs need four.`);
      expect(device.count() <= device.slotsMax, `${device.count()} slots are more than slotsMax, ${device.slotsMax}.`);
      for (let slot = 0; slot < device.count(); slot++) {
        expectEqual(device.isOpen(slot), true, `whether slot ${slot} of a new store is open`);
        await subject.expectNew(device, slot);
      }
    },
  },
  {
    name: 'written bytes are read back, from any place, and a gap before them reads as zeros',
    async run(subject) {
      const device = await subject.open();
      const bytes = pattern(1, 10_000);
      put(device, 2, bytes, 777);
      expectEqual(device.size(2), 10_777, 'the size behind a write at 777');
      expectBytes(await subject.part(device, 2, 0, 777), new Uint8Array(777), 'the gap');
      for (const [at, length] of [
        [0, 10_000],
        [1, 1],
        [4095, 2],
        [4096, 4096],
        [9999, 1],
      ] as const) {
        expectBytes(
          await subject.part(device, 2, 777 + at, length),
          bytes.subarray(at, at + length),
          `bytes from ${at}`,
        );
      }
    },
  },
  {
    name: 'a read that passes the end is short by what is not there, and leaves the rest of the buffer alone',
    async run(subject) {
      const device = await subject.open();
      put(device, 0, pattern(2, 100), 0);
      const into = new Uint8Array(60).fill(255);
      expectEqual(
        await subject.read(device, () => device.read(0, into, 80)),
        20,
        'the count of a read that ends 40 bytes behind the end',
      );
      expectBytes(into.subarray(0, 20), pattern(2, 100).subarray(80), 'what was there');
      expectBytes(into.subarray(20), new Uint8Array(40).fill(255), 'the buffer behind what was there');
      expectEqual(await subject.read(device, () => device.read(0, into, 100)), 0, 'the count of a read at the end');
      expectEqual(
        await subject.read(device, () => device.read(0, into, 1_000_000)),
        0,
        'the count of a read far behind the end',
      );
      expectEqual(
        await subject.read(device, () => device.read(0, new Uint8Array(0), 5)),
        0,
        'the count of a read of nothing',
      );
    },
  },
  {
    name: 'overwriting changes those bytes only',
    async run(subject) {
      const device = await subject.open();
      const expected = pattern(3, 9000);
      put(device, 1, expected, 0);
      for (const [at, length] of [
        [0, 10],
        [4090, 20],
        [8999, 1],
        [5000, 3000],
      ] as const) {
        const bytes = pattern(at + 7, length);
        put(device, 1, bytes, at);
        expected.set(bytes, at);
      }
      expectEqual(device.size(1), 9000, 'the size after overwriting');
      expectBytes(await subject.contents(device, 1), expected, 'the slot after overwriting');
    },
  },
  {
    name: 'appending pieces of all lengths gives the whole',
    async run(subject) {
      const device = await subject.open();
      const whole = pattern(4, 200_000);
      let at = 0;
      for (let length = 1; at < whole.length; length = (length * 7 + 3) % 9001) {
        const piece = whole.subarray(at, at + length);
        put(device, 3, piece, at);
        at += piece.length;
        expectEqual(device.size(3), at, 'the size after an append');
      }
      expectBytes(await subject.contents(device, 3), whole, 'the slot after appends');
    },
  },
  {
    name: 'a write takes the bytes at the call: the caller may change its buffer after the call',
    async run(subject) {
      const device = await subject.open();
      const buffer = pattern(5, 30_000);
      const view = buffer.subarray(10_001, 20_002);
      put(device, 0, view, 0);
      buffer.fill(0);
      await subject.committed(device);
      expectBytes(
        await subject.contents(device, 0),
        pattern(5, 30_000).subarray(10_001, 20_002),
        'a view of a larger buffer',
      );
      const again = await subject.reopen(device);
      expectBytes(
        await subject.contents(again, 0),
        pattern(5, 30_000).subarray(10_001, 20_002),
        'the same after reopening',
      );
    },
  },
  {
    name: 'a read gives bytes to keep: later writes do not change them',
    async run(subject) {
      const device = await subject.open();
      put(device, 0, pattern(6, 5000), 0);
      const kept = await subject.part(device, 0, 0, 5000);
      put(device, 0, pattern(7, 5000), 0);
      expectBytes(kept, pattern(6, 5000), 'what was read before the overwrite');
      kept.fill(0);
      expectBytes(
        await subject.part(device, 0, 0, 5000),
        pattern(7, 5000),
        'the slot after the reader changed its buffer',
      );
    },
  },
  {
    name: 'a slot that is cut ends there, and does not give its old bytes back when it grows again',
    async run(subject) {
      const device = await subject.open();
      put(device, 0, pattern(8, 10_000), 0);
      device.truncate(0, 3000);
      expectEqual(device.size(0), 3000, 'the size after cutting');
      expectEqual(
        await subject.read(device, () => device.read(0, new Uint8Array(10_000), 0)),
        3000,
        'the count of a read after cutting',
      );
      put(device, 0, pattern(9, 10), 8000);
      expectBytes(await subject.part(device, 0, 0, 3000), pattern(8, 10_000).subarray(0, 3000), 'what was kept');
      expectBytes(await subject.part(device, 0, 3000, 5000), new Uint8Array(5000), 'the bytes behind the cut');
      device.truncate(0, 0);
      device.truncate(0, 6000);
      expectBytes(await subject.contents(device, 0), new Uint8Array(6000), 'a slot that was emptied and extended');
    },
  },
  {
    name: 'slots keep their bytes apart, whatever the order of calls',
    async run(subject) {
      const device = await subject.open();
      const slots = device.count();
      for (let slot = 0; slot < slots; slot++) device.truncate(slot, 0);
      const sizes = Array.from({ length: slots }, () => 0);
      for (let round = 0; round < 40; round++) {
        for (let step = 0; step < slots; step++) {
          const slot = (step * 5 + round) % slots;
          const at = sizes[slot] ?? 0;
          const length = 1 + ((round * 31 + slot * 17) % 900);
          put(device, slot, pattern(slot + 1, at + length).subarray(at), at);
          sizes[slot] = at + length;
          if ((round + slot) % 7 === 0) device.flush(slot);
        }
      }
      for (let slot = 0; slot < slots; slot++) {
        expectBytes(await subject.contents(device, slot), pattern(slot + 1, sizes[slot] ?? 0), `slot ${slot}`);
      }
    },
  },
  {
    name: 'a flush changes nothing that can be read, and may find nothing to do',
    async run(subject) {
      const device = await subject.open();
      device.flush(0);
      put(device, 0, pattern(10, 5000), 0);
      device.flush(0);
      device.flush(0);
      expectBytes(await subject.contents(device, 0), pattern(10, 5000), 'the slot after flushes');
    },
  },
  {
    name: 'a slot that there is none of is closed, and refuses every call',
    async run(subject) {
      const device = await subject.open();
      for (const slot of [device.count(), device.slotsMax + 7]) {
        expectEqual(device.isOpen(slot), false, `isOpen of slot ${slot}`);
        for (const [name, call] of callsOn(device, slot)) expectRefused(call, 'closed', `${name} of no slot`);
      }
    },
  },
  {
    name: 'a file larger than 32 bits of offset can be written and read, or as large as the storage reports that it takes',
    async run(subject) {
      const far = subject.options.farBytes ?? 16 << 20;
      const device = await subject.open();
      put(device, 1, pattern(11, 100_000), far - 50_000);
      expectEqual(device.size(1), far + 50_000, 'the size of a large slot');
      expectBytes(
        await subject.part(device, 1, far - 50_000, 100_000),
        pattern(11, 100_000),
        'bytes across the border',
      );
      expectBytes(await subject.part(device, 1, 0, 10), new Uint8Array(10), 'the start of a large slot');
      put(device, 1, pattern(12, 10), 0);
      put(device, 1, pattern(13, 10), far + 50_000);
      expectBytes(await subject.part(device, 1, far + 50_000, 10), pattern(13, 10), 'an append behind the border');
      expectBytes(
        await subject.part(device, 1, far, 10),
        pattern(11, 100_000).subarray(50_000, 50_010),
        'after writing the start',
      );
      device.truncate(1, far + 1);
      const again = await subject.reopen(device);
      expectEqual(again.size(1), far + 1, 'the size of a large slot after cutting and reopening');
      expectBytes(
        await subject.part(again, 1, far, 10),
        pattern(11, 100_000).subarray(50_000, 50_001),
        'its last byte',
      );
    },
  },
];
