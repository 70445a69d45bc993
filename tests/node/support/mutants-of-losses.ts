/** Storages with defects in what survives a loss of power, and in the behaviour of a full storage. */

import type { LockOptions } from '../../../js/src/storage/adapter.ts';
import { type ManagedDevice, SlotError } from '../../../js/src/storage/device.ts';
import { LossyStorage } from '../../../js/src/testing.ts';
import { all, answer, type Break, broken, Mutant, restore } from './mutant.ts';

export const LOSS_BREAKS: Break[] = [
  [
    'flushes that do nothing',
    () => broken((device) => ({ flush: (slot) => void device.size(slot) })),
    ['flushed bytes survive', 'a flush is done when it returns', 'strict writes survive'],
  ],
  [
    'flushes that are done with the next one',
    () =>
      broken((device) => {
        let last: number | undefined;
        return {
          flush: (slot) => {
            if (last !== undefined) device.flush(last);
            last = slot;
          },
        };
      }),
    ['a flush is done when it returns', 'flushed bytes survive'],
  ],
  [
    'a manifest that overtakes the table',
    () =>
      broken((device) => ({
        write: (slot, bytes, at) => {
          const written = device.write(slot, bytes, at);
          if (slot === 3) device.flush(slot);
          return written;
        },
        flush: (slot) => slot !== 2 && device.flush(slot),
      })),
    ['flushes keep their order'],
  ],
  [
    'a loss of power that leaves what was never written',
    () =>
      broken((device, { lostPower }) => {
        if (lostPower > 0) device.write(0, new Uint8Array(10), 100);
        return {};
      }),
    ['flushed bytes survive'],
  ],
  [
    'new slots that a loss of power takes',
    () => broken((device, { lostPower }) => (lostPower > 0 ? { count: () => Math.min(8, device.count()) } : {})),
    ['a slot that was created, written and flushed'],
  ],
  [
    'cuts that no flush makes durable',
    () =>
      broken((device, { kept, lostPower }) => {
        if (lostPower > 0) for (const [slot, bytes] of kept) restore(device, slot, bytes);
        return {
          flush: (slot) => {
            const was = kept.get(slot) ?? new Uint8Array(0);
            const now = all(device, slot);
            const both = new Uint8Array(Math.max(was.length, now.length));
            both.set(was);
            both.set(now);
            kept.set(slot, both);
            device.flush(slot);
          },
        };
      }),
    ['a slot that was cut and flushed'],
  ],
  [
    'a lock that outlives its holder',
    () =>
      new (class extends Mutant {
        override async open(name: string, options: LockOptions): Promise<ManagedDevice> {
          if (this.lostPower > 0) await super.open(name, options);
          return super.open(name, options);
        }
      })(),
    ['a holder that lost its power'],
  ],
  [
    'a short write that is counted as a full one',
    () => broken((device) => ({ write: (slot, bytes, at) => answer(device.write(slot, bytes, at), bytes.length) })),
    ['a full storage reports it', 'a full storage overwrites'],
  ],
  [
    'a full storage that is reported as a broken one',
    () =>
      broken((device) => ({
        write: (slot, bytes, at) => {
          const written = device.write(slot, bytes, at);
          if (written < bytes.length) throw new SlotError('io', 'no space left');
          return written;
        },
      })),
    ['a full storage reports it'],
  ],
  [
    'a size that counts what did not fit',
    () =>
      broken((device) => {
        let most = 0;
        return {
          write: (slot, bytes, at) => {
            if (slot === 0) most = Math.max(most, at + bytes.length);
            return device.write(slot, bytes, at);
          },
          size: (slot) => (slot === 0 ? most : device.size(slot)),
        };
      }),
    ['a full storage reports it'],
  ],
  [
    'a full storage that does not overwrite',
    () =>
      broken((device, storage) => ({
        write: (slot, bytes, at) => (storage.room === 0 ? 0 : device.write(slot, bytes, at)),
      })),
    ['a full storage overwrites'],
  ],
  [
    'room that stays taken',
    () =>
      new (class extends LossyStorage {
        override setRoom(bytes: number | undefined): void {
          super.setRoom(bytes === 200_000 ? 50_000 : bytes);
        }
      })(),
    ['room that is freed'],
  ],
];
