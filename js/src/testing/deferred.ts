/**
 * The additional features of a device over an asynchronous storage: writes that commit later, and reads that have to be fetched.
 *
 * Invariant: each test names one thing that the host of the engine relies on when it acknowledges, runs a call again, or
 * recovers.
 */

import { joined } from '../codec/joined.ts';
import { type DeferredDevice, SLOT_DATA_OFFSET, SlotError } from '../storage/device.ts';
import { open as openSync } from '../synchronous.ts';
import { ContractError, expect, expectBytes, expectEqual, expectRejected } from './assert.ts';
import { soon } from './lifecycle.ts';
import { type Clause, pattern, put, type Subject } from './subject.ts';

/** More bytes than a device keeps in memory without needing them. */
const LONG_BYTES = 6 << 20;

export const deferredClauses: readonly Clause[] = [
  {
    name: 'a write is read back at once, and committed; what is committed is not waited for',
    async run(subject) {
      const device = await subject.openDeferred();
      put(device, 0, pattern(1, 70_000), 0);
      expectBytes(
        await subject.part(device, 0, 0, 70_000),
        pattern(1, 70_000),
        'what was written and not committed yet',
      );
      for (const what of ['a write', 'what is committed']) {
        const first = await soon(device.committed().then(() => 'committed'));
        expectEqual(first, 'committed', `the commit of ${what}`);
      }
    },
  },
  {
    name: 'an attempt reports that bytes were missing; after they are fetched the same call returns, until they are released',
    async run(subject) {
      const first = await subject.openDeferred();
      put(first, 2, pattern(3, LONG_BYTES), 0);
      await first.closeAll();
      const device = await subject.openDeferred();
      const into = new Uint8Array(1000);
      // Not the end of the slot: a storage may read that ahead.
      const places = [50_000, 1_500_000, 3_000_000];
      const read = (): void => {
        for (const at of places) device.read(2, into, at);
      };
      const held: Parameters<typeof device.unpin>[0][number][] = [];
      let attempts = 1;
      while (device.attempt(read) === undefined) {
        attempts++;
        expect(attempts < 10, 'bytes were fetched time and again, and are still missing.');
        await device.fetch(held);
      }
      expect(attempts > 1, 'bytes of a store that was just opened were here without being fetched.');
      await device.resident(() => device.read(2, new Uint8Array(LONG_BYTES), 0));
      expect(device.attempt(read) !== undefined, 'bytes that are pinned are missing.');
      expectBytes(into, pattern(3, LONG_BYTES).subarray(3_000_000, 3_001_000), 'what the last of them read');
      device.unpin(held);
      const failing = device.resident(() => {
        throw new RangeError('of the call');
      });
      await expectFailure(failing, RangeError, 'what a call throws whose bytes are here');
    },
  },
  {
    name: 'a call that recovers writes before it has read: an attempt that came upon missing bytes is taken back',
    async run(subject) {
      const first = await subject.openDeferred();
      for (const slot of [0, 1, 2]) put(first, slot, pattern(slot + 1, 300_000), 0);
      await first.closeAll();
      const device = await subject.openDeferred();
      const seen: number[] = [];
      await device.recover(() => {
        seen.length = 0;
        const byte = new Uint8Array(1);
        for (const slot of [0, 1, 2]) {
          const size = device.size(slot);
          device.read(slot, byte, 200_000);
          seen.push(size, byte[0] ?? 0);
          device.write(slot, new Uint8Array(1), 200_000);
          device.truncate(slot, 250_000);
          device.write(slot, new Uint8Array([9]), 299_999 + slot);
        }
      });
      await device.committed();
      const expected = [0, 1, 2].flatMap((slot) => [300_000, pattern(slot + 1, 300_000)[200_000]]);
      expectEqual(seen, expected, 'sizes and bytes that the last attempt saw');
      const again = await subject.reopen(device);
      for (const slot of [0, 1, 2]) {
        const whole = new Uint8Array(300_000 + slot);
        whole.set(pattern(slot + 1, 300_000).subarray(0, 250_000));
        whole[200_000] = 0;
        whole[299_999 + slot] = 9;
        expectBytes(await subject.contents(again, slot), whole, `slot ${slot}, which it changed`);
      }
    },
  },
  {
    name: 'bytes written apart are there once the write resolves, also for the next opener; discarding them keeps the length of the slot',
    async run(subject) {
      const device = await subject.openDeferred();
      put(device, 0, pattern(1, 1000), 0);
      await device.writeApart(1, pattern(2, 200_000), SLOT_DATA_OFFSET, false);
      await device.writeApart(1, pattern(3, 100_000), SLOT_DATA_OFFSET + 200_000, true);
      put(device, 0, pattern(4, 1000), 1000);
      await device.committed();
      await device.closeAll();
      const again = await subject.openDeferred();
      expectBytes(
        await subject.contents(again, 0),
        joined([pattern(1, 1000), pattern(4, 1000)]),
        'what was written beside',
      );
      const whole = joined([pattern(2, 200_000), pattern(3, 100_000)]);
      expectBytes(await subject.part(again, 1, SLOT_DATA_OFFSET, 300_000), whole, 'what was written apart');
      await again.discard(1);
      expectEqual(again.size(1), SLOT_DATA_OFFSET + 300_000, 'the size of a slot after it was discarded');
      await again.writeApart(1, pattern(5, 50_000), SLOT_DATA_OFFSET, false);
      expectBytes(
        await subject.part(again, 1, SLOT_DATA_OFFSET, 50_000),
        pattern(5, 50_000),
        'what was written apart anew',
      );
    },
  },
  {
    name: 'a synchronous store, which cannot wait for it, is refused',
    async run({ storage, options }: Subject) {
      const opening = openSync('store', { storage, wasm: options.wasm, lockTimeout: 0 });
      await expectRejected(opening, 'VARVE_UNSUPPORTED', 'opening a synchronous store');
    },
  },
];

export const deferredPowerClauses: readonly Clause[] = [
  {
    name: 'a loss of power takes whole turns, the last ones first: what one turn wrote is there or not, as one',
    async run(subject) {
      const device = await subject.openDeferred();
      for (let round = 1; round <= 30; round++) {
        for (const slot of [0, 1, 2]) {
          put(device, slot, Uint8Array.of(round), 0);
          put(device, slot, pattern(round, 20_000), 10_000 * round);
        }
        if (round === 10) {
          device.flush(0);
          await device.committed();
        }
        // A turn ends. The device may commit it before or after the next one.
        if (round % 7 > 0) await Promise.resolve();
        else await device.committed();
      }
      const after = await subject.losePower();
      const rounds: (number | undefined)[] = [];
      for (const slot of [0, 1, 2]) rounds.push((await subject.part(after, slot, 0, 1))[0]);
      const [round = 0] = rounds;
      expectEqual(rounds, [round, round, round], 'the turns that are the last ones found, by slot');
      expect(round >= 10, `the last turn found is ${round}, but that of 10 was flushed and committed.`);
      for (const slot of [0, 1, 2]) {
        expectEqual(after.size(slot), 10_000 * round + 20_000, `the size of slot ${slot} after turn ${round}`);
        expectBytes(await subject.part(after, slot, 10_000 * round, 20_000), pattern(round, 20_000), `slot ${slot}`);
      }
    },
  },
];

export const deferredRoomClauses: readonly Clause[] = [
  {
    name: 'a full storage refuses the commit of a write by an error of kind full; whole turns before it are kept, it is not',
    async run(subject) {
      const { device, bytes, turns } = await filled(subject);
      expectEqual(
        kindOf(() => device.write(0, Uint8Array.of(1), 0)),
        'full',
        'the kind of error of a write after that',
      );
      expectEqual(
        kindOf(() => device.truncate(0, 0)),
        'full',
        'the kind of error of a truncation after that',
      );
      await subject.setRoom(undefined);
      const again = await subject.reopen(device);
      expectBytes(await subject.contents(again, 0), bytes, 'what was committed, after reopening');
      expectEqual(again.size(1), turns, 'bytes in the slot that each turn wrote one to');
    },
  },
  {
    name: 'a write apart that finds no room is refused by an error of kind full, and nothing else is lost',
    async run(subject) {
      const device = await subject.openDeferred();
      let reported: unknown;
      device.onFailure = (error) => {
        reported = error;
      };
      put(device, 0, pattern(1, 1000), 0);
      await device.committed();
      await subject.setRoom(100_000);
      const writing = device.writeApart(1, pattern(2, 2_000_000), SLOT_DATA_OFFSET, false);
      put(device, 0, pattern(3, 1000), 1000);
      const failure = await failureOf(writing);
      const isFull = failure instanceof SlotError && failure.kind === 'full';
      expect(isFull, `a write apart that finds no room throws ${String(failure)}.`);
      await device.committed();
      expectEqual(reported, undefined, 'what onFailure got');
      await device.discard(1);
      put(device, 0, pattern(4, 1000), 2000);
      device.flush(0);
      await device.committed();
      await subject.setRoom(undefined);
      const again = await subject.reopen(device);
      const parts = [pattern(1, 1000), pattern(3, 1000), pattern(4, 1000)];
      expectBytes(await subject.contents(again, 0), joined(parts), 'what was written beside');
    },
  },
  {
    name: 'a full storage that can go back loses no more than the turn it refused, and takes writes again once there is room',
    async run(subject) {
      const { device, bytes } = await filled(subject);
      if (!device.canGoBack) {
        const failure = await failureOf(device.goBack());
        expect(failure instanceof SlotError, `going back, which it cannot, throws ${String(failure)}.`);
        return;
      }
      await device.goBack();
      let seen = -1;
      await device.recover(() => {
        seen = device.size(0);
        device.write(0, Uint8Array.of(77), 10);
      });
      expectEqual(seen, bytes.length, 'the size that a call to recover sees');
      bytes[10] = 77;
      expectBytes(await subject.contents(device, 0), bytes, 'what was committed, and what was recovered');
      await subject.setRoom(undefined);
      expect(await device.moreRoom(Number.POSITIVE_INFINITY), 'slots become longer again once there is room.');
      put(device, 1, pattern(9, 30_000), 0);
      device.flush(1);
      await device.committed();
      const again = await subject.reopen(device);
      expectBytes(
        await subject.contents(again, 0),
        bytes,
        'what was committed and what was recovered, after reopening',
      );
      expectBytes(await subject.contents(again, 1), pattern(9, 30_000), 'what was written when there was room again');
    },
  },
];

/** A device whose storage has refused a turn because it was full. */
interface Filled {
  readonly device: DeferredDevice;
  /** The bytes of slot 0 before that turn. */
  readonly bytes: Uint8Array;
  /** How many turns were committed; each wrote a byte to slot 1. */
  readonly turns: number;
}

async function filled(subject: Subject): Promise<Filled> {
  const device = await subject.openDeferred();
  let reported: unknown;
  device.onFailure = (error) => {
    reported = error;
  };
  let bytes = pattern(1, 50_000);
  let turns = 0;
  put(device, 0, bytes, 0);
  device.flush(0);
  await device.committed();
  await subject.setRoom(100_000);
  for (let round = 2; round < 100; round++) {
    const more = pattern(round, 20_000);
    put(device, 0, more, bytes.length);
    put(device, 1, Uint8Array.of(round), turns);
    const failure = await failureOf(device.committed());
    if (failure !== undefined) {
      const isFull = failure instanceof SlotError && failure.kind === 'full';
      expect(isFull, `a commit without room is refused by ${String(failure)}.`);
      expect(
        reported instanceof SlotError && reported.kind === 'full',
        `of a failure of ${String(failure)}, onFailure got ${String(reported)}.`,
      );
      return { device, bytes, turns };
    }
    turns++;
    bytes = joined([bytes, more]);
  }
  throw new ContractError('Ninety-eight turns of 20,000 bytes were committed where there is room for 100,000.');
}

/** The kind of the error with which a device refuses a call. */
function kindOf(call: () => unknown): string {
  try {
    call();
    return 'none';
  } catch (error) {
    return error instanceof SlotError ? error.kind : String(error);
  }
}

function failureOf(call: Promise<unknown>): Promise<unknown> {
  return call.then(
    () => undefined,
    (error: unknown) => error,
  );
}

async function expectFailure(call: Promise<unknown>, kind: new () => Error, what: string): Promise<void> {
  const failure = await failureOf(call);
  expect(failure instanceof kind, `${what} is ${String(failure)}.`);
}
