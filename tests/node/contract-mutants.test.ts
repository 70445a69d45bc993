/**
 * The contract of storages can fail: storages that are broken in one place each are caught, by the clause that names what
 * is broken; and there is such a storage for every clause.
 */

import { expect, test } from 'vitest';
import type { AdapterWait } from '../../js/src/storage/adapter.ts';
import { type ManagedDevice, SlotError } from '../../js/src/storage/device.ts';
import { ContractError, LossyStorage, storageContract } from '../../js/src/testing.ts';
import { tools, wasm } from './support/engine.ts';

type Change = (device: ManagedDevice, storage: Mutant) => Partial<ManagedDevice>;

/** A storage that is sound but for what its device, or a method of its own, does differently. */
class Mutant extends LossyStorage {
  /** Bytes that a device keeps for the next one, by slot. */
  readonly kept = new Map<number, Uint8Array>();
  lostPower = 0;
  room: number | undefined;
  change: Change = () => ({});

  override async open(name: string, options: AdapterWait): Promise<ManagedDevice> {
    const device = await super.open(name, options);
    const sound: ManagedDevice = {
      kind: device.kind,
      lendable: false,
      slotsMax: device.slotsMax,
      count: () => device.count(),
      isOpen: (slot) => device.isOpen(slot),
      size: (slot) => device.size(slot),
      read: (slot, into, at) => device.read(slot, into, at),
      write: (slot, bytes, at) => device.write(slot, bytes, at),
      flush: (slot) => device.flush(slot),
      truncate: (slot, bytes) => device.truncate(slot, bytes),
      grow: (slots) => device.grow(slots),
      release: (slot) => device.release(slot),
      retake: (slot) => device.retake(slot),
      closeAll: () => device.closeAll(),
    };
    return { ...sound, ...this.change(device, this) };
  }

  override losePower(): void {
    super.losePower();
    this.lostPower++;
  }

  override setRoom(bytes: number | undefined): void {
    super.setRoom(bytes);
    this.room = bytes;
  }
}

/** All bytes of a slot. */
function all(device: ManagedDevice, slot: number): Uint8Array {
  const bytes = new Uint8Array(device.size(slot));
  device.read(slot, bytes, 0);
  return bytes;
}

/** Gives a slot exactly these bytes. */
function restore(device: ManagedDevice, slot: number, bytes: Uint8Array): void {
  device.truncate(slot, 0);
  device.write(slot, bytes, 0);
}

/** The second, once the first has been evaluated. */
function answer<T>(_before: unknown, value: T): T {
  return value;
}

const broken = (change: Change): Mutant => Object.assign(new Mutant(), { change });

/** What is broken, how, and the starts of the names of the clauses that must notice. */
const MUTANTS: [what: string, make: () => LossyStorage, clauses: string[]][] = [
  [
    'a new store that has bytes in it',
    () => broken((device) => answer(device.size(1) === 0 && device.write(1, new Uint8Array(1), 0), {})),
    ['a new store has open, empty slots'],
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
    ['what was written is read back'],
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
    ['a write takes the bytes of the moment'],
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
        override async open(name: string, options: AdapterWait): Promise<ManagedDevice> {
          const device = await super.open(name, { ...options, wait: 0 }).catch(() => undefined);
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
        override open(name: string, { wait }: AdapterWait): Promise<ManagedDevice> {
          return super.open(name, { wait });
        }
      })(),
    ['a signal ends the waiting'],
  ],
  [
    'names that lose their signs',
    () =>
      new (class extends LossyStorage {
        override open(name: string, options: AdapterWait): Promise<ManagedDevice> {
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
  [
    'flushes that do nothing',
    () => broken((device) => ({ flush: (slot) => void device.size(slot) })),
    ['what was flushed survives', 'a flush is done when it is back', 'strict writes survive'],
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
    ['a flush is done when it is back', 'what was flushed survives'],
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
    ['what was flushed survives'],
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
        override async open(name: string, options: AdapterWait): Promise<ManagedDevice> {
          if (this.lostPower > 0) await super.open(name, options);
          return super.open(name, options);
        }
      })(),
    ['a holder that lost its power'],
  ],
  [
    'a short write that is counted as a full one',
    () => broken((device) => ({ write: (slot, bytes, at) => answer(device.write(slot, bytes, at), bytes.length) })),
    ['a full storage says so', 'a full storage overwrites'],
  ],
  [
    'a full storage that is told as a broken one',
    () =>
      broken((device) => ({
        write: (slot, bytes, at) => {
          const written = device.write(slot, bytes, at);
          if (written < bytes.length) throw new SlotError('io', 'no space left');
          return written;
        },
      })),
    ['a full storage says so'],
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
    ['a full storage says so'],
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

/** The clauses of the contract for a storage, by name. */
function clausesFor(create: () => LossyStorage): Map<string, () => Promise<void>> {
  const clauses = new Map<string, () => Promise<void>>();
  storageContract({
    test: (name, run) => clauses.set(name, run),
    create,
    losePower: (storage) => storage.losePower(),
    setRoom: (storage, bytes) => storage.setRoom(bytes),
    wasm,
    tools,
  });
  return clauses;
}

function named(clauses: ReadonlyMap<string, unknown>, start: string): string {
  const found = [...clauses.keys()].filter((name) => name.startsWith(start));
  if (found.length !== 1) throw new Error(`${found.length} clauses begin with "${start}"`);
  return found[0] as string;
}

const isMistake = (error: unknown): boolean => error instanceof TypeError || error instanceof ReferenceError;

test.each(MUTANTS)(
  '%s: caught',
  async (_, create, starts) => {
    const clauses = clausesFor(create);
    for (const start of starts) {
      const name = named(clauses, start);
      // Not by a mistake of the broken storage's own code.
      await expect(clauses.get(name)?.(), name).rejects.not.toSatisfy(isMistake);
    }
  },
  60_000,
);

test('what is caught is told as what was expected of the storage', async () => {
  const clauses = clausesFor(() => broken((device) => ({ size: (slot) => device.size(slot) + 1 })));
  const caught = clauses.get(named(clauses, 'a new store has'))?.();
  await expect(caught).rejects.toThrow(ContractError);
  await expect(clauses.get(named(clauses, 'a new store has'))?.()).rejects.toThrow(
    'slot 0 of a new store: open, size: [true,1] instead of [true,0].',
  );
});

test('every clause is failed by some storage, and none by a sound one', async () => {
  const clauses = clausesFor(() => new Mutant());
  const failed = new Set(MUTANTS.flatMap(([, , starts]) => starts.map((start) => named(clauses, start))));
  expect([...clauses.keys()].filter((name) => !failed.has(name))).toEqual([]);
  for (const run of clauses.values()) await run();
}, 60_000);
