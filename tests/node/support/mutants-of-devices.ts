/** Storages with defects in slots, in their bytes, in openers and in names. */

import type { LockOptions } from '../../../js/src/storage/adapter.ts';
import type { ManagedDevice } from '../../../js/src/storage/device.ts';
import { LossyStorage } from '../../../js/src/testing.ts';
import { all, answer, type Break, broken, Mutant, restore } from './mutant.ts';

export const DEVICE_BREAKS: Break[] = [
  [
    'a new store that has bytes in it',
    () => broken((device) => answer(device.size(1) === 0 && device.write(1, new Uint8Array([7]), 0), {})),
    ['a new store has open slots that contain only'],
  ],
  [
    'a short read that is not reported',
    () => broken((device) => ({ read: (slot, into, at) => answer(device.read(slot, into, at), into.length) })),
    ['a read that passes the end'],
  ],
  [
    'a short read that clears the rest of the buffer',
    () =>
      broken((device) => ({
        read: (slot, into, at) => {
          const count = device.read(slot, into, at);
          into.fill(0, count);
          return count;
        },
      })),
    ['a read that passes the end'],
  ],
  [
    'reads from the start of a page',
    () => broken((device) => ({ read: (slot, into, at) => device.read(slot, into, at - (at % 4096)) })),
    ['written bytes are read back'],
  ],
  [
    'overwriting that ends the slot behind it',
    () =>
      broken((device) => ({
        write: (slot, bytes, at) => {
          const written = device.write(slot, bytes, at);
          device.truncate(slot, at + written);
          return written;
        },
      })),
    ['overwriting changes those bytes only'],
  ],
  [
    'a copy of what was there, behind the end of the last slot',
    () =>
      broken((device, storage) => {
        const last = device.count() - 1;
        for (const bytes of storage.kept.values()) device.write(last, bytes, Math.max(4096, device.size(last)));
        const closeAll = (): Promise<void> => {
          for (let slot = 0; slot < last; slot++) {
            const bytes = all(device, slot);
            if (storage.kept.size === 0 && Buffer.from(bytes).includes('canary')) storage.kept.set(slot, bytes);
          }
          return device.closeAll();
        };
        return { closeAll };
      }),
    ['a store is encrypted where it is'],
  ],
  [
    'writes of which 4096 bytes land, with a count of all',
    () =>
      broken((device) => ({
        write: (slot, bytes, at) => answer(device.write(slot, bytes.subarray(0, 4096), at), bytes.length),
      })),
    ['appending pieces', 'a store is filled'],
  ],
  [
    'writes that copy later',
    () =>
      broken((device) => {
        const waiting: [number, Uint8Array, number][] = [];
        const land = (): void => {
          for (const write of waiting.splice(0)) device.write(...write);
        };
        return {
          write: (slot, bytes, at) => waiting.push([slot, bytes, at]) && bytes.length,
          read: (slot, into, at) => answer(land(), device.read(slot, into, at)),
          size: (slot) => answer(land(), device.size(slot)),
          closeAll: () => answer(land(), device.closeAll()),
        };
      }),
    ['a write takes the bytes at the call'],
  ],
  [
    'reads into buffers that follow later writes',
    () =>
      broken((device) => {
        let last = new Uint8Array(0);
        return {
          read: (slot, into, at) => {
            last = into as typeof last;
            return device.read(slot, into, at);
          },
          write: (slot, bytes, at) => {
            last.set(bytes.subarray(0, last.length));
            return device.write(slot, bytes, at);
          },
        };
      }),
    ['a read gives bytes to keep'],
  ],
  [
    'cutting that gives the old bytes back',
    () =>
      broken((device) => {
        let cut: { slot: number; at: number; bytes: Uint8Array } | undefined;
        return {
          truncate: (slot, bytes) => {
            cut = { slot, at: bytes, bytes: all(device, slot).subarray(bytes) };
            device.truncate(slot, bytes);
          },
          write: (slot, bytes, at) => {
            if (cut?.slot === slot) device.write(slot, cut.bytes, cut.at);
            cut = undefined;
            return device.write(slot, bytes, at);
          },
        };
      }),
    ['a slot that is cut ends there'],
  ],
  [
    'two slots that are one',
    () =>
      broken((device) => ({
        write: (slot, bytes, at) => device.write(slot === 5 ? 4 : slot, bytes, at),
        read: (slot, into, at) => device.read(slot === 5 ? 4 : slot, into, at),
        size: (slot) => device.size(slot === 5 ? 4 : slot),
      })),
    ['slots keep their bytes apart'],
  ],
  [
    'a flush that cuts to whole pages',
    () => broken((device) => ({ flush: (slot) => device.truncate(slot, device.size(slot) & ~4095) })),
    ['a flush changes nothing'],
  ],
  [
    'slots that are open where there are none',
    () => broken(() => ({ isOpen: () => true })),
    ['a slot that there is none of', 'a slot that was released', 'a closed device'],
  ],
  [
    'offsets of 24 bits',
    () => broken((device) => ({ write: (slot, bytes, at) => device.write(slot, bytes, at & 0xffffff) })),
    ['a file larger'],
  ],
  [
    'growths at once that make the same slots',
    () =>
      broken((device) => {
        let growing: Promise<number> | undefined;
        return {
          grow: async (slots) => {
            growing ??= device.grow(slots);
            await growing;
            return slots;
          },
        };
      }),
    ['growing adds open, empty slots'],
  ],
  [
    'growing that says it did what it could not',
    () => broken((device) => ({ grow: async (slots) => answer(await device.grow(slots), slots) })),
    ['growing ends at slotsMax', 'a closed device'],
  ],
  [
    'released slots that still answer',
    () => broken(() => ({ release: () => undefined })),
    ['a slot that was released'],
  ],
  [
    'a released slot that comes back empty',
    () =>
      broken((device) => ({
        retake: async (slot) => {
          await device.retake(slot);
          device.truncate(slot, 0);
        },
      })),
    ['a slot that was released'],
  ],
  [
    'sizes in whole pages after reopening',
    () =>
      broken((device, storage) => {
        const isAgain = storage.kept.size > 0;
        storage.kept.set(0, new Uint8Array(0));
        return isAgain ? { size: (slot) => (device.size(slot) + 4095) & ~4095 } : {};
      }),
    ['a store opens again'],
  ],
  [
    'closing that loses what was not flushed',
    () =>
      broken((device, { kept }) => ({
        flush: (slot) => {
          kept.set(slot, all(device, slot));
          device.flush(slot);
        },
        closeAll: async () => {
          for (let slot = 0; device.isOpen(slot); slot++) restore(device, slot, kept.get(slot) ?? new Uint8Array(0));
          await device.closeAll();
        },
      })),
    ['a store opens again'],
  ],
  [
    'reads of a closed device that answer',
    () => broken((device) => ({ read: (slot, into, at) => (device.isOpen(slot) ? device.read(slot, into, at) : 0) })),
    ['a closed device', 'a slot that there is none of'],
  ],
  [
    'closing in a growth that empties a slot',
    () =>
      broken((device) => {
        let isGrowing = false;
        return {
          grow: async (slots) => {
            isGrowing = true;
            await Promise.resolve();
            isGrowing = false;
            return device.grow(slots);
          },
          closeAll: async () => {
            if (isGrowing) device.truncate(0, 0);
            await device.closeAll();
          },
        };
      }),
    ['closing while slots are created'],
  ],
  [
    'two openers at a time',
    () =>
      new (class extends Mutant {
        override async open(name: string, options: LockOptions): Promise<ManagedDevice> {
          const device = await super.open(name, { ...options, lockTimeout: 0 }).catch(() => undefined);
          if (device !== undefined) return device;
          this.losePower();
          return super.open(name, options);
        }
      })(),
    ['a store has one opener', 'one that waits', 'of several that open at once', 'a store is used through promises'],
  ],
  [
    'a signal that nobody hears',
    () =>
      new (class extends LossyStorage {
        override open(name: string, { lockTimeout }: LockOptions): Promise<ManagedDevice> {
          return super.open(name, { lockTimeout });
        }
      })(),
    ['a signal ends the waiting'],
  ],
  [
    'names that lose their signs',
    () =>
      new (class extends LossyStorage {
        override open(name: string, options: LockOptions): Promise<ManagedDevice> {
          return super.open(name.replace(/\W/g, ''), options);
        }
      })(),
    ['stores of different names'],
  ],
  [
    'deleting that leaves the bytes',
    () =>
      new (class extends LossyStorage {
        readonly #deleted = new Set<string>();
        override async delete(name: string): Promise<boolean> {
          const isThere = (await this.list()).includes(name);
          this.#deleted.add(name);
          return isThere;
        }
        override async list(): Promise<string[]> {
          return (await super.list()).filter((name) => !this.#deleted.has(name));
        }
      })(),
    ['a store that was deleted'],
  ],
];
