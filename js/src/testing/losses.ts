/**
 * Tests which bytes a storage may lose, and how it reports that it is full.
 *
 * Invariant: after a power cut every byte is the flushed one or one written after it, and the flushed bytes are there. If a part
 * of a write does not fit, its count or an error of kind `full` reports that. It is never silent.
 */

import { type ManagedDevice, SlotError } from '../storage/device.ts';
import { expect, expectBytes, expectEqual } from './assert.ts';
import { type Clause, pattern, put } from './subject.ts';

/** Throws unless each byte of a slot is the flushed or the written one, and the slot is at least as long as the flushed bytes. */
function expectEither(found: Uint8Array, slot: number, flushed: Uint8Array, written: Uint8Array): void {
  expect(found.length >= flushed.length, `slot ${slot} lost ${flushed.length - found.length} bytes that were flushed.`);
  for (let i = 0; i < found.length; i++) {
    const options = [flushed[i] ?? 0, written[i] ?? 0];
    expect(options.includes(found[i] ?? -1), `byte ${i} of slot ${slot} was never written there.`);
  }
}

export const powerClauses: readonly Clause[] = [
  {
    name: 'flushed bytes survive a loss of power; each other byte is the old one or the new one',
    async run(subject) {
      const device = await subject.open();
      put(device, 0, pattern(1, 20_000), 0);
      device.flush(0);
      const written = pattern(1, 20_000);
      written.set(pattern(2, 9000), 4000);
      put(device, 0, written.subarray(4000, 13_000), 4000);
      put(device, 0, pattern(3, 5000), 20_000);
      put(device, 1, pattern(4, 5000), 0);
      await subject.committed(device);
      const after = await subject.losePower();
      const all = new Uint8Array(25_000);
      all.set(written);
      all.set(pattern(3, 5000), 20_000);
      expectEither(await subject.contents(after, 0), 0, pattern(1, 20_000), all);
      expectEither(await subject.contents(after, 1), 1, new Uint8Array(0), pattern(4, 5000));
    },
  },
  {
    name: 'a flush is done when it returns: nothing later has to happen for it',
    async run(subject) {
      let device = await subject.open();
      for (let round = 1; round <= 5; round++) {
        put(device, round % 4, pattern(round, 1000 * round), 0);
        device.flush(round % 4);
        await subject.committed(device);
        device = await subject.losePower();
        expectBytes(
          await subject.part(device, round % 4, 0, 1000 * round),
          pattern(round, 1000 * round),
          `the flush of round ${round}`,
        );
      }
    },
  },
  {
    name: 'flushes keep their order: where the later one is found, the earlier one is',
    async run(subject) {
      const device = await subject.open();
      const [table, manifest] = [2, 3];
      for (let round = 1; round <= 8; round++) {
        put(device, table, pattern(round, 3000), 0);
        device.flush(table);
        put(device, manifest, Uint8Array.of(round), 0);
        if (round < 8) device.flush(manifest);
      }
      await subject.committed(device);
      const after = await subject.losePower();
      const [named = 0] = await subject.part(after, manifest, 0, 1);
      expect(named === 7 || named === 8, `the manifest is that of round ${named}, but that of 7 was flushed.`);
      expectBytes(
        await subject.contents(after, table),
        pattern(8, 3000),
        'the table, flushed before the manifest was written',
      );
    },
  },
  {
    name: 'a slot that was created, written and flushed is there after a loss of power',
    async run(subject) {
      const device = await subject.open();
      const slot = device.count();
      await device.grow(1);
      put(device, slot, pattern(5, 10_000), 0);
      device.flush(slot);
      await subject.committed(device);
      const after = await subject.losePower();
      expect(after.count() > slot, `slot ${slot} is not there any more.`);
      expectBytes(await subject.contents(after, slot), pattern(5, 10_000), `slot ${slot}`);
    },
  },
  {
    name: 'a slot that was cut and flushed does not give its old bytes back',
    async run(subject) {
      const device = await subject.open();
      put(device, 0, pattern(6, 10_000), 0);
      device.flush(0);
      device.truncate(0, 2000);
      put(device, 0, pattern(7, 10), 5000);
      device.flush(0);
      await subject.committed(device);
      const expected = new Uint8Array(5010);
      expected.set(pattern(6, 10_000).subarray(0, 2000));
      expected.set(pattern(7, 10), 5000);
      expectBytes(await subject.contents(await subject.losePower(), 0), expected, 'the slot');
    },
  },
  {
    name: 'a holder that lost its power keeps nobody out',
    async run(subject) {
      await subject.open();
      await (await subject.losePower()).closeAll();
    },
  },
];

/** Writes bytes that may not fit; returns how many bytes the device reports as written. */
function offer(device: ManagedDevice, slot: number, bytes: Uint8Array, at: number): number {
  try {
    return device.write(slot, bytes, at);
  } catch (error) {
    expect(error instanceof SlotError && error.kind === 'full', `a full storage throws ${String(error)}.`);
    return 0;
  }
}

export const roomClauses: readonly Clause[] = [
  {
    name: 'a full storage reports it: by a count that is short, or an error of kind full, never in silence',
    async run(subject) {
      const device = await subject.open();
      put(device, 0, pattern(1, 50_000), 0);
      await subject.setRoom(100_000);
      const bytes = pattern(2, 20_000);
      let at = 50_000;
      let taken = bytes.length;
      for (let i = 0; i < 100 && taken === bytes.length; i++) {
        taken = offer(device, 0, bytes, at);
        expect(taken >= 0 && taken <= bytes.length, `write took ${taken} of ${bytes.length} bytes.`);
        if (taken === bytes.length) at += taken;
      }
      expect(taken < bytes.length, `${at - 50_000} bytes were taken where there is room for 100,000.`);
      const size = device.size(0);
      expect(size >= at && size <= at + bytes.length, `the slot reports ${size} bytes, and ${at} were written.`);
      expectEqual((await subject.part(device, 0, size, 10)).length, 0, 'the count of a read at the size');
      expectEqual((await subject.part(device, 0, 0, size)).length, size, 'bytes that can be read of the size');
      expectBytes(await subject.part(device, 0, 0, 50_000), pattern(1, 50_000), 'what was there before');
      for (let from = 50_000; from < at; from += bytes.length) {
        expectBytes(await subject.part(device, 0, from, bytes.length), bytes, `what was taken at ${from}`);
      }
      const again = await subject.reopen(device);
      expect(again.size(0) >= at, `${again.size(0)} bytes after reopening, but ${at} were taken.`);
      expectBytes(
        await subject.part(again, 0, 0, 50_000),
        pattern(1, 50_000),
        'what was there before, after reopening',
      );
      for (let from = 50_000; from < at; from += bytes.length) {
        expectBytes(
          await subject.part(again, 0, from, bytes.length),
          bytes,
          `what was taken at ${from}, after reopening`,
        );
      }
    },
  },
  {
    name: 'a full storage overwrites, reads and flushes what it has',
    async run(subject) {
      const device = await subject.open();
      put(device, 0, pattern(3, 50_000), 0);
      device.flush(0);
      await subject.setRoom(0);
      expectEqual(offer(device, 0, pattern(4, 10_000), 20_000), 10_000, 'bytes taken by overwriting');
      device.flush(0);
      const expected = pattern(3, 50_000);
      expected.set(pattern(4, 10_000), 20_000);
      expectBytes(await subject.contents(device, 0), expected, 'the slot');
      expect(offer(device, 1, pattern(5, 50_000), 0) < 50_000, 'a write into an empty slot was taken whole.');
      expectBytes(await subject.contents(await subject.reopen(device), 0), expected, 'the slot after reopening');
    },
  },
  {
    name: 'room that is freed is room again',
    async run(subject) {
      const device = await subject.open();
      put(device, 0, pattern(6, 300_000), 0);
      device.flush(0);
      await subject.setRoom(0);
      device.truncate(0, 0);
      await subject.setRoom(200_000);
      put(device, 1, pattern(7, 100_000), 0);
      device.flush(1);
      await subject.setRoom(undefined);
      put(device, 0, pattern(8, 300_000), 0);
      expectBytes(await subject.contents(device, 0), pattern(8, 300_000), 'a slot written with all room back');
      expectBytes(await subject.contents(device, 1), pattern(7, 100_000), 'a slot written in room that was freed');
    },
  },
];
